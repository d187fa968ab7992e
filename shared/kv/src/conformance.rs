//! The contract as functions. An engine is accepted when all of them pass on it.
//!
//! Each function takes an empty engine that serves [`KEYSPACES`], or a [`TestStore`] that gives several
//! handles on one, and panics where it breaks the contract. They use public means only, so they run
//! on any engine, also over a network. [`run_all`] runs every one on a store of its own.

#![allow(clippy::panic, clippy::missing_panics_doc, reason = "assertions are its purpose")]

/// A rule over one handle.
macro_rules! of_engine {
    ($rule:ident) => {
        (stringify!($rule), |opened| {
            Box::pin(async move {
                // The store stays until the rule ends.
                let engine = opened.store.handle();
                $rule(engine).await;
            })
        })
    };
}

/// A rule over a store.
macro_rules! of_store {
    ($rule:ident) => {
        (stringify!($rule), |opened| Box::pin($rule(opened)))
    };
}

mod commits;
mod domains;
mod handles;
mod limits;
pub mod rows;
mod scans;
mod versions;

use std::pin::Pin;
use std::sync::Arc;

use bytes::Bytes;

pub use self::commits::*;
pub use self::domains::*;
pub use self::handles::*;
pub use self::limits::*;
pub use self::scans::*;
pub use self::versions::*;
use crate::{
    Change, ChangeSpec, CommitError, Domain, DomainRef, Engine, Entry, Keyspace, Lock, Scan,
    ScanLimit, Snapshot, Span, Version, Write,
};
use trestle_model::time::{ManualClock, Ticks};

/// The keyspaces of the engine under test.
pub const KEYSPACES: [Keyspace; 2] = [
    Keyspace { name: "first", kinds: 1..=1, domain: domain_of },
    Keyspace { name: "second", kinds: 0x40..=0xFF, domain: domain_of },
];

/// The domain of a key: what is between its kind and the first `/`.
#[must_use]
pub fn domain_of(key: &[u8]) -> DomainRef<'_> {
    let name = key.get(1..).unwrap_or_default();
    DomainRef { group: 1, part: name.split(|byte| *byte == b'/').next().unwrap_or_default() }
}

/// A change that holds the domains of these keys exclusively and reads nothing yet.
pub fn covering<'a>(keys: impl IntoIterator<Item = &'a Bytes>) -> ChangeSpec {
    let mut domains: Vec<_> = keys.into_iter().map(|key| Domain::of_key(key, domain_of)).collect();
    domains.sort();
    domains.dedup();
    let mut spec = ChangeSpec::new(domains.pop().unwrap_or(Domain::new(1, "none")));
    spec.also.extend(domains.into_iter().map(|domain| (domain, Lock::Exclusive)));
    spec
}

/// A change that reads these keys and holds their domains exclusively.
pub fn reading<'a>(keys: impl IntoIterator<Item = &'a Bytes> + Clone) -> ChangeSpec {
    let mut spec = covering(keys.clone());
    for key in keys {
        spec.read(key.clone());
    }
    spec
}

/// A kind of the first keyspace, and one of the second.
const KIND: u8 = 1;
const OTHER_KIND: u8 = 0x41;

/// Where the clock of each rule starts: in 2026.
pub const START: Ticks = match Ticks::new(639_000_000_000_000_000) {
    Some(start) => start,
    None => Ticks::MIN,
};

const NO_LIMIT: ScanLimit = ScanLimit { rows: usize::MAX, bytes: usize::MAX };

/// A store under test.
pub trait TestStore: Send {
    /// A handle on the store. All of them show the same data.
    fn handle(&self) -> Arc<dyn Engine>;

    /// Closes the store and opens it again; every handle was dropped before. A store without
    /// durability stays open.
    fn reopen(&mut self);
}

/// A store of its own for one rule, and the clock that it was opened with.
pub struct OpenStore {
    /// Empty, and serves [`KEYSPACES`].
    pub store: Box<dyn TestStore>,
    /// Does not advance until a rule moves it.
    pub clock: Arc<ManualClock>,
}

type RunningRule = Pin<Box<dyn Future<Output = ()> + Send>>;

/// A rule of the contract: panics where the store breaks it.
pub type ConformanceRule = fn(OpenStore) -> RunningRule;

/// Every rule of the contract with its name.
pub const RULES: &[(&str, ConformanceRule)] = &[
    of_engine!(changes_are_atomic_across_kinds),
    of_engine!(the_last_write_of_a_key_in_a_change_counts),
    of_engine!(decisions_read_the_newest_values_by_name),
    of_engine!(contended_increments_all_count),
    of_engine!(only_one_of_many_inserts_of_a_key_wins),
    of_engine!(a_change_without_writes_succeeds_and_writes_nothing),
    of_engine!(an_error_of_a_decision_comes_back_and_writes_nothing),
    of_engine!(a_panic_of_a_decision_rejects_that_change_alone),
    of_engine!(deletes_remove_and_need_nothing_to_be_there),
    of_engine!(a_dropped_caller_does_not_tear_its_change),
    of_engine!(a_snapshot_never_changes),
    of_engine!(a_scan_never_sees_half_a_change),
    of_engine!(scans_are_ordered_and_bounded_both_ways),
    of_engine!(scans_continue_where_they_ended),
    of_engine!(scans_end_after_the_entry_that_meets_the_byte_limit),
    of_engine!(scans_end_at_the_limit_of_the_engine),
    of_engine!(empty_ranges_are_empty),
    of_engine!(empty_values_are_values),
    of_engine!(long_scans_return_everything_once),
    of_engine!(long_keys_are_kept_in_order),
    of_engine!(keys_are_accepted_up_to_their_bound),
    of_engine!(values_are_accepted_up_to_their_bound),
    of_engine!(changes_are_accepted_up_to_their_bounds),
    of_engine!(keys_in_named_domains_are_accepted),
    of_engine!(keys_outside_the_named_domains_are_rejected),
    of_engine!(writes_in_shared_domains_are_rejected),
    of_engine!(keys_of_no_keyspace_are_rejected),
    of_engine!(spans_over_two_keyspaces_are_rejected),
    of_store!(no_update_is_lost_between_handles),
    of_store!(changes_that_read_what_the_other_writes_are_serialised),
    of_store!(a_commit_is_seen_by_every_handle),
    of_store!(a_retry_finds_what_its_first_try_committed),
    of_store!(acknowledged_changes_are_there_after_reopening),
    of_store!(versions_rise_across_handles_and_reopenings),
    of_store!(versions_follow_the_clock),
    of_store!(versions_leave_room_for_the_writes_of_a_change),
    of_store!(a_decision_is_given_the_version_of_its_commit),
    of_store!(time_elapses_whatever_the_wall_clock_does),
];

/// Runs every rule of the contract, each on a store that `open` makes for it, with the clock that
/// it is given.
pub async fn run_all(mut open: impl FnMut(Arc<ManualClock>) -> Box<dyn TestStore>) {
    for (_, rule) in RULES {
        run(*rule, &mut open).await;
    }
}

/// Runs one rule on a store that `open` makes.
pub async fn run(
    rule: ConformanceRule,
    mut open: impl FnMut(Arc<ManualClock>) -> Box<dyn TestStore>,
) {
    let clock = Arc::new(ManualClock::new(START));
    rule(OpenStore { store: open(Arc::clone(&clock)), clock }).await;
}

fn key(kind: u8, rest: &str) -> Bytes {
    let mut key = vec![kind];
    key.extend_from_slice(rest.as_bytes());
    key.into()
}

fn put(key: Bytes, value: impl Into<Bytes>) -> Write {
    Write::Put { key, value: value.into() }
}

async fn commit(engine: &dyn Engine, writes: Vec<Write>) -> Result<Version, CommitError> {
    let spec = covering(writes.iter().map(Write::key));
    engine.commit(Change::new(spec, move |_, _| writes.clone().into())).await
}

async fn store(engine: &dyn Engine, writes: Vec<Write>) {
    commit(engine, writes).await.expect("the writes are within the limits");
}

async fn snapshot(engine: &dyn Engine) -> Box<dyn Snapshot> {
    engine.snapshot().await.expect("the engine can be read")
}

async fn get(engine: &dyn Engine, key: &[u8]) -> Option<Bytes> {
    snapshot(engine).await.get(key).await.expect("the engine can be read")
}

async fn scan(engine: &dyn Engine, span: &Span, limit: ScanLimit) -> Scan {
    snapshot(engine).await.scan(span, limit).await.expect("the engine can be read")
}

fn keys(entries: &[Entry]) -> Vec<Bytes> {
    entries.iter().map(|entry| entry.key.clone()).collect()
}

fn number(value: Option<&Bytes>) -> u64 {
    value.map_or(0, |bytes| {
        u64::from_be_bytes(bytes.as_ref().try_into().expect("a number has eight bytes"))
    })
}
