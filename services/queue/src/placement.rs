//! Which process serves a queue, where several serve one store.

use futures::future::BoxFuture;
use trestle_model::name::{AccountName, QueueName};
use trestle_rpc::upstream::Upstream;

use crate::delivery::OwnershipPolicy;

/// Places each queue in one of the processes that serve a store. All of them agree once they know the same processes.
/// Nothing is correct because of it: a process that is wrong about a queue is fenced.
pub trait QueuePlacement: Send + Sync + 'static {
    /// The process that serves a queue; none for this one.
    fn elsewhere(&self, account: &str, queue: &str) -> Option<Upstream>;

    /// Looks at once which processes there are.
    fn look(&self) -> BoxFuture<'_, ()>;
}

/// Takes over the queues that are placed in this process.
pub(crate) struct TakeOverPlaced(pub(crate) std::sync::Arc<dyn QueuePlacement>);

impl OwnershipPolicy for TakeOverPlaced {
    fn may_own(&self, account: &AccountName, queue: &QueueName) -> bool {
        self.0.elsewhere(account.as_str(), queue.as_str()).is_none()
    }
}
