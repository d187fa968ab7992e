//! The contract as functions. An engine is accepted when all of them pass on it.
//!
//! Each function takes an empty engine that serves [`KEYSPACES`], and panics where the engine
//! breaks the contract. They use public means only, so they run on any engine, also over a
//! network. [`run_all`] runs every one on an engine of its own.

#![allow(clippy::panic, clippy::missing_panics_doc, reason = "assertions are its purpose")]

mod commits;
mod limits;
mod scans;

use std::pin::Pin;
use std::sync::Arc;

use bytes::Bytes;

pub use self::commits::*;
pub use self::limits::*;
pub use self::scans::*;
use crate::{
    Change, ChangeSpec, CommitError, Domain, DomainRef, Engine, Entry, Keyspace, Lock, Scan,
    ScanLimit, Snapshot, Span, Version, Write,
};

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

const NO_LIMIT: ScanLimit = ScanLimit { rows: usize::MAX, bytes: usize::MAX };

type Running = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Runs every function of the contract, each on an engine that `open` makes for it.
pub async fn run_all(mut open: impl FnMut() -> Arc<dyn Engine>) {
    type Rule = fn(Arc<dyn Engine>) -> Running;
    let rules: &[Rule] = &[
        |engine| Box::pin(changes_are_atomic_across_kinds(engine)),
        |engine| Box::pin(the_last_write_of_a_key_in_a_change_counts(engine)),
        |engine| Box::pin(decisions_read_the_newest_values_by_name(engine)),
        |engine| Box::pin(contended_increments_all_count(engine)),
        |engine| Box::pin(only_one_of_many_inserts_of_a_key_wins(engine)),
        |engine| Box::pin(a_change_without_writes_succeeds_and_writes_nothing(engine)),
        |engine| Box::pin(an_error_of_a_decision_comes_back_and_writes_nothing(engine)),
        |engine| Box::pin(a_panic_of_a_decision_refuses_that_change_alone(engine)),
        |engine| Box::pin(deletes_remove_and_need_nothing_to_be_there(engine)),
        |engine| Box::pin(a_dropped_caller_does_not_tear_its_change(engine)),
        |engine| Box::pin(a_snapshot_never_changes(engine)),
        |engine| Box::pin(a_scan_never_sees_half_a_change(engine)),
        |engine| Box::pin(scans_are_ordered_and_bounded_both_ways(engine)),
        |engine| Box::pin(scans_continue_where_they_ended(engine)),
        |engine| Box::pin(scans_end_after_the_entry_that_meets_the_byte_limit(engine)),
        |engine| Box::pin(empty_ranges_are_empty(engine)),
        |engine| Box::pin(long_scans_return_everything_once(engine)),
        |engine| Box::pin(keys_are_taken_up_to_their_bound(engine)),
        |engine| Box::pin(values_are_taken_up_to_their_bound(engine)),
        |engine| Box::pin(changes_are_taken_up_to_their_bounds(engine)),
    ];
    for rule in rules {
        rule(open()).await;
    }
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
