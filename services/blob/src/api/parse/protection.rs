//! What is kept of blobs that are overwritten or deleted.

#[cfg(test)]
mod tests;

use std::time::Duration;

use trestle_model::fault::{Fault, Reason};
use trestle_model::limits::DELETE_RETENTION_DAYS_MAX;
use trestle_proto::blob::v1 as proto;

use super::RequestParser;
use crate::record::Retention;

/// A day.
const DAY: Duration = Duration::from_secs(24 * 3600);

/// The parts of the settings to change.
#[derive(Debug, Clone, Copy)]
pub(in crate::api) struct RetentionChange {
    deleted_for: Option<Option<Duration>>,
    versions: Option<bool>,
    containers_deleted_for: Option<Option<Duration>>,
}

impl RetentionChange {
    /// The settings after the change.
    pub(in crate::api) fn apply(self, current: Retention) -> Retention {
        let Self { deleted_for, versions, containers_deleted_for } = self;
        Retention {
            deleted_for: deleted_for.unwrap_or(current.deleted_for),
            versions: versions.unwrap_or(current.versions),
            containers_deleted_for: containers_deleted_for
                .unwrap_or(current.containers_deleted_for),
        }
    }
}

/// The parts of the settings that a request changes.
///
/// # Errors
/// Every violated rule.
pub(in crate::api) fn protection(
    settings: &proto::DataProtection,
) -> Result<RetentionChange, Fault> {
    let mut parser = RequestParser::default();
    let mut period = |policy: &Option<proto::DeleteRetentionPolicy>, name: &str| {
        let field = format!("data_protection.{name}");
        policy.as_ref().map(|policy| parser.retention(policy, &field))
    };
    let deleted_for = period(&settings.delete_retention_policy, "delete_retention_policy");
    let containers = &settings.container_delete_retention_policy;
    let containers_deleted_for = period(containers, "container_delete_retention_policy");
    let versions = settings.is_versioning_enabled;
    parser.finish(Some(RetentionChange { deleted_for, versions, containers_deleted_for }))
}

impl RequestParser {
    /// How long something can be restored, if it can.
    fn retention(
        &mut self,
        policy: &proto::DeleteRetentionPolicy,
        field: &str,
    ) -> Option<Duration> {
        if !policy.enabled {
            return None;
        }
        let days = u32::try_from(policy.days).ok();
        let days = days.filter(|days| (1..=DELETE_RETENTION_DAYS_MAX).contains(days));
        if days.is_none() {
            let rule = format!("must be 1 to {DELETE_RETENTION_DAYS_MAX}: value=`{}`", policy.days);
            self.push(Reason::InvalidServiceProperty, &format!("{field}.days"), rule);
        }
        days.map(|days| DAY * days)
    }
}
