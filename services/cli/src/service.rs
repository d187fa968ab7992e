//! What services have in common: their properties, and the stored access policies of tables, queues and containers.

use trestle_proto::service::v1::Durability;

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

/// The name of a durability.
pub(crate) fn durability_name(durability: i32) -> &'static str {
    let name = Durability::try_from(durability).unwrap_or_default().as_str_name();
    name.strip_prefix("DURABILITY_").unwrap_or(name)
}
