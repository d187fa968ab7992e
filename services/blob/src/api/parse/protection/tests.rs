//! Tests of the settings of data protection: which of them a request changes, and their bounds.

use super::*;
use crate::api::parse::tests::assert_rejected;

fn policy(enabled: bool, days: i32) -> Option<proto::DeleteRetentionPolicy> {
    Some(proto::DeleteRetentionPolicy { enabled, days })
}

/// Settings in which every part is set.
fn current() -> Retention {
    let (deleted_for, containers_deleted_for) = (Some(DAY * 7), Some(DAY * 9));
    Retention { deleted_for, versions: true, containers_deleted_for }
}

#[test]
fn a_part_that_the_request_does_not_state_remains() {
    let after =
        |settings: &proto::DataProtection| protection(settings).expect("valid").apply(current());
    let unchanged = proto::DataProtection::default();
    assert_eq!(after(&unchanged), current());

    let blobs = proto::DataProtection { delete_retention_policy: policy(true, 3), ..unchanged };
    assert_eq!(after(&blobs), Retention { deleted_for: Some(DAY * 3), ..current() });

    let container_delete_retention_policy = policy(true, 4);
    let containers = proto::DataProtection { container_delete_retention_policy, ..unchanged };
    let expected = Retention { containers_deleted_for: Some(DAY * 4), ..current() };
    assert_eq!(after(&containers), expected);

    let versions = proto::DataProtection { is_versioning_enabled: Some(false), ..unchanged };
    assert_eq!(after(&versions), Retention { versions: false, ..current() });
}

#[test]
fn a_disabled_policy_keeps_nothing_whatever_its_days() {
    for days in [i32::MIN, 0, 7, 366] {
        let settings = proto::DataProtection {
            delete_retention_policy: policy(false, days),
            container_delete_retention_policy: policy(false, days),
            is_versioning_enabled: None,
        };
        let after = protection(&settings).expect("valid").apply(current());
        let expected =
            Retention { deleted_for: None, versions: true, containers_deleted_for: None };
        assert_eq!(after, expected, "{days}");
        assert!(after.keeps(), "versions are kept");
    }
}

#[test]
fn days_are_1_to_365_for_blobs_and_for_containers() {
    for days in [1, 365] {
        let settings = proto::DataProtection {
            delete_retention_policy: policy(true, days),
            ..Default::default()
        };
        let after = protection(&settings).expect("valid").apply(Retention::default());
        let period = Duration::from_secs(u64::from(days.unsigned_abs()) * 86_400);
        assert_eq!(after.deleted_for, Some(period));
        assert!(after.keeps() && !after.versions);
    }
    for days in [i32::MIN, -1, 0, 366, i32::MAX] {
        let settings = proto::DataProtection {
            delete_retention_policy: policy(true, days),
            container_delete_retention_policy: policy(true, days),
            is_versioning_enabled: None,
        };
        let fields = [
            "data_protection.delete_retention_policy.days",
            "data_protection.container_delete_retention_policy.days",
        ];
        let expected = fields.map(|field| (Reason::InvalidServiceProperty, field));
        assert_rejected(protection(&settings), &expected);
    }
}
