//! What a process shows of those that serve its store: to operators, and to the callers of services.

use std::{
    collections::HashMap,
    sync::{Arc, MutexGuard, PoisonError},
};

use serde_json::json;
use trestle_proto::service::v1::StoreProcess;
use trestle_rpc::served_store::StoreProcesses;
use trestle_runtime::admin::AdminPage;

use super::{SharedStore, StoreMember, StoreMembers};
use crate::roles::QUEUE;

impl StoreMembers {
    /// What services report of the processes. They have no addresses: callers reach all of them at the same one.
    pub(crate) fn processes(&self) -> StoreProcesses {
        let Some(store) = self.0.clone() else { return StoreProcesses::default() };
        StoreProcesses::new(move || {
            let known = store.known().clone();
            store.listed(&known)
        })
    }

    /// The page of the processes.
    pub(crate) fn page(&self) -> Option<AdminPage> {
        let store = Arc::clone(self.0.as_ref()?);
        let about = "the processes that serve the store, and what each does, as JSON";
        Some(AdminPage { path: "/members", about, json: Arc::new(move || store.json()) })
    }

    /// Counts the queues of the store by the process that serves them.
    pub(crate) fn count_queues(&self) -> QueueOwners {
        QueueOwners { store: self.0.clone(), counts: HashMap::new() }
    }
}

/// How many queues each process serves, while they are counted.
pub(crate) struct QueueOwners {
    store: Option<Arc<SharedStore>>,
    counts: HashMap<Vec<u8>, u64>,
}

impl QueueOwners {
    /// Counts a queue.
    pub(crate) fn count(&mut self, account: &str, queue: &str) {
        let Some(store) = &self.store else { return };
        let known = store.known();
        let Some(owner) = store.owner(&known, QUEUE.name, &[account, queue]) else { return };
        match self.counts.get_mut(&owner.key) {
            Some(count) => *count += 1,
            None => drop(self.counts.insert(owner.key.clone(), 1)),
        }
    }

    /// Shows the counts from now on.
    pub(crate) fn publish(self) {
        if let Some(store) = self.store {
            *store.queues() = Some(self.counts);
        }
    }
}

impl SharedStore {
    fn queues(&self) -> MutexGuard<'_, Option<HashMap<Vec<u8>, u64>>> {
        self.queues.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// These processes, each with the jobs that it does of those which this one has.
    fn listed(&self, known: &[StoreMember]) -> Vec<StoreProcess> {
        let (jobs, queues) = (self.jobs().clone(), self.queues().clone());
        let listed = |member: &StoreMember| {
            let is_owner = |(role, name): &&(&str, &str)| {
                self.owner(known, role, &[name]).is_some_and(|owner| owner.key == member.key)
            };
            let count = |counts: &HashMap<Vec<u8>, u64>| counts.get(&member.key).copied();
            StoreProcess {
                instance_id: String::from_utf8_lossy(member.id()).into_owned(),
                roles: member.roles.split(',').map(str::to_owned).collect(),
                jobs: jobs.iter().filter(is_owner).map(|(_, name)| (*name).to_owned()).collect(),
                queues: queues.as_ref().map(|counts| count(counts).unwrap_or(0)),
            }
        };
        known.iter().map(listed).collect()
    }

    pub(super) fn json(&self) -> String {
        let known = self.known().clone();
        let rows = self.listed(&known).into_iter().zip(&known).map(|(process, member)| {
            json!({
                "instance_id": process.instance_id,
                "roles": member.roles,
                "address": member.address,
                "this": self.is_own(member),
                "jobs": process.jobs,
                "queues": process.queues,
            })
        });
        format!("{:#}\n", json!({ "members": rows.collect::<Vec<_>>() }))
    }
}
