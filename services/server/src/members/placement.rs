//! What each process of a store does: the queues that it serves, the streams that it seals, and the jobs in the
//! background.

use std::{
    sync::{Arc, atomic::Ordering::SeqCst},
    time::Duration,
};

use futures::future::BoxFuture;
use tracing::debug;
use trestle_log::StreamPlacement;
use trestle_queue::QueuePlacement;
use trestle_rpc::upstream::Upstream;
use trestle_runtime::task::{Task, TickError};
use xxhash_rust::xxh3::Xxh3;

use super::{LOOK_AGAIN, SharedStore, StoreMember, StoreMembers};
use crate::roles::{LOG, QUEUE};

impl StoreMembers {
    /// A job of a role in the background.
    pub(crate) fn job(&self, role: &'static str, name: &'static str) -> StoreJob {
        let job = StoreJob { store: self.0.clone(), role, name };
        if let Some(store) = &self.0 {
            store.jobs().push((role, name));
        }
        job
    }

    /// A task of a role and a name that one of the processes with the role does at a time.
    pub(crate) fn task_of_one<F, A>(
        &self,
        (role, name): (&'static str, &'static str),
        every: Duration,
        mut tick: F,
    ) -> Task
    where
        F: FnMut() -> A + Send + 'static,
        A: Future<Output = Result<bool, TickError>> + Send + 'static,
    {
        let job = self.job(role, name);
        Task::new(name, every, move || {
            let ticked = job.is_ours().then(&mut tick);
            async move {
                match ticked {
                    Some(ticked) => ticked.await,
                    None => Ok(false),
                }
            }
        })
    }

    /// Which process works on streams; none where this process has the store to itself.
    pub(crate) fn streams(&self) -> Option<Arc<dyn StreamPlacement>> {
        Some(Arc::<SharedStore>::clone(self.0.as_ref()?))
    }

    /// Where queues are served; none where this process has the store to itself.
    pub(crate) fn queues(&self) -> Option<Arc<dyn QueuePlacement>> {
        Some(Arc::<SharedStore>::clone(self.0.as_ref()?))
    }
}

/// A job that one of the processes of a store does at a time.
#[derive(Clone)]
pub(crate) struct StoreJob {
    store: Option<Arc<SharedStore>>,
    role: &'static str,
    name: &'static str,
}

impl StoreJob {
    /// Whether this process does it, among those that have the role: the others agree once they know the same
    /// processes.
    pub(crate) fn is_ours(&self) -> bool {
        self.store.as_ref().is_none_or(|it| !it.is_of_another(self.role, &[self.name]))
    }
}

impl SharedStore {
    /// The names of the jobs that this process does.
    pub(super) fn own_jobs(&self) -> Vec<&'static str> {
        let jobs = self.jobs().clone();
        let own = jobs.into_iter().filter(|(role, name)| !self.is_of_another(role, &[name]));
        own.map(|(_, name)| name).collect()
    }

    /// Which of these processes has what these parts name, among those with a role.
    pub(super) fn owner<'a>(
        &self,
        known: &'a [StoreMember],
        role: &str,
        parts: &[&str],
    ) -> Option<&'a StoreMember> {
        let is_leaving = self.is_leaving.load(SeqCst);
        let takes_part =
            |member: &&StoreMember| member.has(role) && !(is_leaving && self.is_own(member));
        let placed = known.iter().filter(takes_part);
        placed.max_by_key(|member| (weight(parts, member.id()), &member.key))
    }

    /// Whether another process has what these parts name, among those with a role.
    fn is_of_another(&self, role: &str, parts: &[&str]) -> bool {
        self.owner(&self.known(), role, parts).is_some_and(|owner| !self.is_own(owner))
    }
}

impl StreamPlacement for SharedStore {
    fn is_elsewhere(&self, stream: u64) -> bool {
        self.is_of_another(LOG.name, &["stream", &stream.to_string()])
    }
}

impl QueuePlacement for SharedStore {
    fn elsewhere(&self, account: &str, queue: &str) -> Option<Upstream> {
        let owner = self.owner(&self.known(), QUEUE.name, &[account, queue]).cloned()?;
        if self.is_own(&owner) { None } else { self.links.to(&owner) }
    }

    fn look(&self) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            if let Err(error) = self.read_others(LOOK_AGAIN).await {
                debug!(%error, "the other processes cannot be looked at");
            }
        })
    }
}

/// How much something is drawn to a process: the greatest has it, so that a process that comes or goes moves only its
/// own. All versions of the program must agree.
pub(super) fn weight(parts: &[&str], id: &[u8]) -> u64 {
    let mut hasher = Xxh3::new();
    for part in parts {
        hasher.update(part.as_bytes());
        hasher.update(&[0]);
    }
    hasher.update(id);
    hasher.digest()
}
