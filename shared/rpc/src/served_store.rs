//! What every service reports of the store that it serves.

use std::sync::Arc;

use trestle_kv::Durability;
use trestle_proto::service::v1 as proto;

/// When a store answers a write, as the contract names it.
#[must_use]
pub fn durability(of: Durability) -> proto::Durability {
    match of {
        Durability::Always => proto::Durability::Always,
        Durability::Interval => proto::Durability::Interval,
        Durability::Os => proto::Durability::Os,
        Durability::None => proto::Durability::None,
    }
}

/// The processes that serve a store together, as this one knows them. By default there are none: it has the store to
/// itself.
#[derive(Clone, Default)]
pub struct StoreProcesses(Option<Arc<dyn Fn() -> Vec<proto::StoreProcess> + Send + Sync>>);

impl StoreProcesses {
    /// Those that `list` returns at each call.
    #[must_use]
    pub fn new(list: impl Fn() -> Vec<proto::StoreProcess> + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(list)))
    }

    /// Those of now.
    #[must_use]
    pub fn list(&self) -> Vec<proto::StoreProcess> {
        self.0.as_ref().map(|list| list()).unwrap_or_default()
    }
}
