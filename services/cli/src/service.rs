//! What services have in common: their properties, and the stored access policies of tables, queues and containers.

use serde_json::{Map, Value, json};
use trestle_proto::service::v1::{Durability, QuotaUsage, StoreProcess};

mod policies;
mod properties;

pub use policies::PolicyCommand;
pub(crate) use policies::{PolicyOwner, run as run_policy};
pub use properties::PropertiesCommand;
pub(crate) use properties::run as run_properties;

/// A service with properties.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DataService {
    /// Tables.
    Table,
    /// Queues.
    Queue,
}

/// The id of the process of a service; none where an older server reports none.
pub(crate) fn instance_id(id: String) -> Option<String> {
    (!id.is_empty()).then_some(id)
}

/// The quotas of the account on what it stores, each a field with its usage.
pub(crate) fn quotas(quotas: Vec<QuotaUsage>) -> Value {
    let field = |QuotaUsage { quota, usage, limit }: QuotaUsage| {
        let name = quota.strip_suffix("_max").unwrap_or(&quota).to_owned();
        (name, json!({ "usage": usage, "quota": limit }))
    };
    Value::Object(quotas.into_iter().map(field).collect::<Map<_, _>>())
}

/// The processes that serve the store; none where one has it to itself.
pub(crate) fn processes(processes: Vec<StoreProcess>) -> Option<Value> {
    let row = |process: StoreProcess| {
        let StoreProcess { instance_id, roles, jobs, queues } = process;
        json!({ "instance_id": instance_id, "roles": roles, "jobs": jobs, "queues": queues })
    };
    (!processes.is_empty()).then(|| processes.into_iter().map(row).collect())
}

/// The name of a durability.
pub(crate) fn durability_name(durability: i32) -> &'static str {
    let name = Durability::try_from(durability).unwrap_or_default().as_str_name();
    name.strip_prefix("DURABILITY_").unwrap_or(name)
}
