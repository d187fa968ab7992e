//! `protection`: what is kept of blobs that are overwritten or deleted.

use serde_json::json;
use trestle_command::{errors::CliError, output::Context};
use trestle_proto::blob::v1::{
    DataProtection, DeleteRetentionPolicy, GetServicePropertiesRequest, SetServicePropertiesRequest,
};

/// Changes the settings that are given, and prints all of them. 0 days keep nothing.
pub(super) async fn run(
    context: &mut Context,
    (keep_deleted, keep_containers): (Option<u16>, Option<u16>),
    versions: Option<bool>,
) -> Result<(), CliError> {
    if keep_deleted.is_some() || keep_containers.is_some() || versions.is_some() {
        let policy = |days: u16| DeleteRetentionPolicy { enabled: days > 0, days: days.into() };
        let data_protection = Some(DataProtection {
            delete_retention_policy: keep_deleted.map(policy),
            is_versioning_enabled: versions,
            container_delete_retention_policy: keep_containers.map(policy),
        });
        let request = SetServicePropertiesRequest { data_protection, ..Default::default() };
        context.session.blobs().set_service_properties(request).await?;
    }
    let request = GetServicePropertiesRequest {};
    let found = context.session.blobs().get_service_properties(request).await?.into_inner();
    let found = found.data_protection.unwrap_or_default();
    let days = |policy: Option<DeleteRetentionPolicy>| {
        policy.filter(|policy| policy.enabled).map(|policy| policy.days)
    };
    let object = json!({
        "keep_deleted_days": days(found.delete_retention_policy),
        "keep_containers_days": days(found.container_delete_retention_policy),
        "versions": found.is_versioning_enabled.unwrap_or_default(),
    });
    context.output.record(["Property", "Value"], &object)
}
