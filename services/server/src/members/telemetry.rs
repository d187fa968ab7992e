//! The metrics of the processes of a store.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering::Relaxed},
};

use opentelemetry::metrics::Meter;
use trestle_rpc::semconv;

use super::{SharedStore, StoreMember};
use crate::{observed_stats::ObservedStats, roles::TABLE};

/// Other processes that came or went since this one began to look.
#[derive(Default)]
pub(super) struct MemberChanges(AtomicU64);

impl MemberChanges {
    /// Counts the differences between two looks. The first one finds everything and counts nothing.
    pub(super) fn note(&self, own: &StoreMember, before: &[StoreMember], now: &[StoreMember]) {
        if before.is_empty() {
            return;
        }
        let is_among = |members: &[StoreMember], it: &StoreMember| {
            it.key == own.key || members.iter().any(|member| member.key == it.key)
        };
        let gone = before.iter().filter(|member| !is_among(now, member)).count();
        let new = now.iter().filter(|member| !is_among(before, member)).count();
        self.0.fetch_add((gone + new) as u64, Relaxed);
    }

    pub(super) fn count(&self) -> u64 {
        self.0.load(Relaxed)
    }
}

impl SharedStore {
    /// Reports what this process knows of the others and does itself.
    pub(super) fn observe(self: &Arc<Self>, meter: &Meter) {
        let store = ObservedStats::new(meter, self, Arc::clone);
        // A process that serves no tables shares no rates.
        if self.own.has(TABLE.name) {
            store.gauge(semconv::PROCESSES, |store| store.sharing(&store.known()) as u64);
        }
        store.counter(semconv::PROCESS_CHANGES, |store| store.changes.count());
        store.gauge(semconv::STORE_JOBS, |store| store.own_jobs().len() as u64);
        store.age(semconv::RENEWAL_AGE, |store| store.since_renewal().unwrap_or_default());
    }
}
