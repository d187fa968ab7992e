//! Every rule of the contract is broken by an engine that was made to break it: a rule that nothing breaks asserts
//! nothing.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use bytes::Bytes;
use trestle_kv::conformance::{self, RULES, TestStore};
use trestle_kv::{
    Change, CommitError, Direction, Durability, Engine, EngineError, EngineStatus, Entry, Limits,
    Reads, Scan, ScanLimit, Snapshot, Span, Version, Write,
};
use trestle_model::time::{Clock as _, ManualClock, Ticks};

/// The bound of a wait for a rule: what takes longer hangs, also on a machine that is busy with other programs.
const HANG: Duration = Duration::from_secs(120);

/// What is wrong with the engine, beside that it checks nothing.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Defect {
    /// Nothing: it takes every key, span, size and domain, and a panic of a decision spreads.
    ChecksNothing,
    /// Only the first write of a change is done.
    TearsChanges,
    /// Writes apply last to first.
    ReversesWrites,
    /// Decisions are given no values.
    ReadsNothing,
    /// Other commits come between the reads and the decision.
    ReadsEarly,
    /// Other reads come between the writes of a change.
    WritesOneByOne,
    /// Writes a row where the decision writes none.
    WritesAlways,
    IgnoresDeletes,
    DropsEmptyValues,
    CutsKeys,
    /// Snapshots show what is newest.
    LiveSnapshots,
    /// Handles show what there was when they were made.
    LateHandles,
    IgnoresDirection,
    IgnoresBytes,
    AlwaysMore,
    RejectsFurtherDomains,
    LosesDataOnReopening,
    /// Versions are what the clock shows.
    VersionsOfTheClock,
    VersionsWithoutClock,
    VersionsWithoutRoom,
    ReturnsAnotherVersion,
    /// Time is that of the wall clock.
    StepsWithTheWallClock,
}

/// A defect by which each rule is broken.
const BREAKS: &[(&str, Defect)] = &[
    ("changes_are_atomic_across_kinds", Defect::TearsChanges),
    ("the_last_write_of_a_key_in_a_change_counts", Defect::ReversesWrites),
    ("decisions_read_the_newest_values_by_name", Defect::ReadsNothing),
    ("contended_increments_all_count", Defect::ReadsEarly),
    ("only_one_of_many_inserts_of_a_key_wins", Defect::ReadsEarly),
    ("a_change_without_writes_succeeds_and_writes_nothing", Defect::WritesAlways),
    ("an_error_of_a_decision_comes_back_and_writes_nothing", Defect::ReadsNothing),
    ("a_panic_of_a_decision_rejects_that_change_alone", Defect::ChecksNothing),
    ("deletes_remove_and_need_nothing_to_be_there", Defect::IgnoresDeletes),
    ("a_dropped_caller_does_not_tear_its_change", Defect::TearsChanges),
    ("a_snapshot_never_changes", Defect::LiveSnapshots),
    ("a_scan_never_sees_half_a_change", Defect::WritesOneByOne),
    ("scans_are_ordered_and_bounded_both_ways", Defect::IgnoresDirection),
    ("scans_continue_where_they_ended", Defect::CutsKeys),
    ("scans_end_after_the_entry_that_meets_the_byte_limit", Defect::IgnoresBytes),
    ("scans_end_at_the_limit_of_the_engine", Defect::ChecksNothing),
    ("empty_ranges_are_empty", Defect::AlwaysMore),
    ("empty_values_are_values", Defect::DropsEmptyValues),
    ("long_scans_return_everything_once", Defect::IgnoresDirection),
    ("long_keys_are_kept_in_order", Defect::CutsKeys),
    ("keys_are_accepted_up_to_their_bound", Defect::ChecksNothing),
    ("values_are_accepted_up_to_their_bound", Defect::ChecksNothing),
    ("changes_are_accepted_up_to_their_bounds", Defect::ChecksNothing),
    ("keys_in_named_domains_are_accepted", Defect::RejectsFurtherDomains),
    ("keys_outside_the_named_domains_are_rejected", Defect::ChecksNothing),
    ("writes_in_shared_domains_are_rejected", Defect::ChecksNothing),
    ("keys_of_no_keyspace_are_rejected", Defect::ChecksNothing),
    ("spans_over_two_keyspaces_are_rejected", Defect::ChecksNothing),
    ("no_update_is_lost_between_handles", Defect::ReadsEarly),
    ("changes_that_read_what_the_other_writes_are_serialised", Defect::ReadsEarly),
    ("a_commit_is_seen_by_every_handle", Defect::LateHandles),
    ("a_retry_finds_what_its_first_try_committed", Defect::TearsChanges),
    ("acknowledged_changes_are_there_after_reopening", Defect::LosesDataOnReopening),
    ("versions_rise_across_handles_and_reopenings", Defect::VersionsOfTheClock),
    ("versions_follow_the_clock", Defect::VersionsWithoutClock),
    ("versions_leave_room_for_the_writes_of_a_change", Defect::VersionsWithoutRoom),
    ("a_decision_is_given_the_version_of_its_commit", Defect::ReturnsAnotherVersion),
    ("time_elapses_whatever_the_wall_clock_does", Defect::StepsWithTheWallClock),
];

/// How long a defect that needs another task waits for its call: longer than a busy machine may keep that task.
const OTHER_CALL: Duration = Duration::from_millis(250);
/// How long it waits in all, since there may be no other task.
const OTHER_CALLS: Duration = Duration::from_secs(2);

type Map = BTreeMap<Bytes, Bytes>;

#[derive(Clone)]
struct Broken {
    defect: Defect,
    clock: Arc<ManualClock>,
    /// The rows, and the newest version.
    state: Arc<Mutex<(Map, u64)>>,
    /// Commits decided and snapshots opened so far.
    calls: Arc<AtomicU64>,
    /// Milliseconds for which other tasks were waited for.
    waited_ms: Arc<AtomicU64>,
    late: Option<Map>,
}

impl Broken {
    fn new(defect: Defect, clock: Arc<ManualClock>) -> Self {
        Self {
            defect,
            clock,
            state: Arc::default(),
            calls: Arc::default(),
            waited_ms: Arc::default(),
            late: None,
        }
    }

    /// Waits until another task calls the engine, so that a race is lost in every run; a bounded time only, since there
    /// may be no other task.
    async fn wait_for_another_call(&self) {
        let waited = Duration::from_millis(self.waited_ms.load(Ordering::SeqCst));
        let limit = OTHER_CALLS.saturating_sub(waited).min(OTHER_CALL);
        let (before, start) = (self.calls.load(Ordering::SeqCst), Instant::now());
        while self.calls.load(Ordering::SeqCst) == before && start.elapsed() < limit {
            tokio::task::yield_now().await;
        }
        let waited_ms = u64::try_from(start.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.waited_ms.fetch_add(waited_ms, Ordering::SeqCst);
    }

    fn version(&self, newest: &mut u64) -> Version {
        let now = self.clock.now().get();
        *newest = match self.defect {
            Defect::VersionsOfTheClock => now,
            Defect::VersionsWithoutClock => *newest + 1,
            _ => now.max(*newest + 1),
        };
        Version::new(Ticks::new(*newest).unwrap())
    }

    fn write(&self, map: &mut Map, write: Write) {
        match write {
            Write::Put { key, value } if self.defect == Defect::DropsEmptyValues => {
                if !value.is_empty() {
                    map.insert(key, value);
                }
            }
            Write::Put { key, value } if self.defect == Defect::CutsKeys => {
                let length = if key.len() < 100 { key.len().min(1) } else { key.len().min(2_400) };
                map.insert(key.slice(..length), value);
            }
            Write::Put { key, value } => drop(map.insert(key, value)),
            Write::Delete { key } if self.defect != Defect::IgnoresDeletes => {
                map.remove(&key);
            }
            Write::Delete { .. } => {}
        }
    }
}

fn read(map: &Map, change: &Change) -> Vec<Option<Bytes>> {
    change.spec.reads.keys().iter().map(|key| map.get(key).cloned()).collect()
}

#[async_trait]
impl Engine for Broken {
    async fn snapshot(&self) -> Result<Box<dyn Snapshot>, EngineError> {
        let map = match &self.late {
            Some(late) => late.clone(),
            None => self.state.lock().unwrap().0.clone(),
        };
        self.calls.fetch_add(1, Ordering::SeqCst);
        Ok(Box::new(View { engine: self.clone(), map }))
    }

    async fn commit(&self, mut change: Change) -> Result<Version, CommitError> {
        if self.defect == Defect::RejectsFurtherDomains && !change.spec.also.is_empty() {
            return Err(CommitError::Rejected { reason: "on purpose".into() });
        }
        let early = read(&self.state.lock().unwrap().0, &change);
        if self.defect == Defect::ReadsEarly {
            self.wait_for_another_call().await;
        }
        self.calls.fetch_add(1, Ordering::SeqCst);
        let (version, mut writes) = {
            let mut state = self.state.lock().unwrap();
            let current = match self.defect {
                Defect::ReadsNothing => vec![None; change.spec.reads.keys().len()],
                Defect::ReadsEarly => early,
                _ => read(&state.0, &change),
            };
            let version = self.version(&mut state.1);
            let decided = (change.decide)(&Reads::new(&change.spec.reads, &current), version);
            let mut writes: Vec<_> = decided.into_iter().collect();
            if self.defect != Defect::VersionsWithoutRoom {
                state.1 += writes.len() as u64;
            }
            match self.defect {
                Defect::TearsChanges => writes.truncate(1),
                Defect::ReversesWrites => writes.reverse(),
                Defect::WritesAlways if writes.is_empty() => {
                    let (key, value) = (Bytes::from_static(&[1]), Bytes::new());
                    writes.push(Write::Put { key, value });
                }
                _ => {}
            }
            if self.defect != Defect::WritesOneByOne {
                for write in writes.drain(..) {
                    self.write(&mut state.0, write);
                }
            }
            (version, writes)
        };
        for (at, write) in writes.drain(..).enumerate() {
            self.write(&mut self.state.lock().unwrap().0, write);
            if at == 0 {
                self.wait_for_another_call().await;
            }
        }
        let is_other = self.defect == Defect::ReturnsAnotherVersion;
        Ok(if is_other { version.nth(1) } else { version })
    }

    fn limits(&self) -> Limits {
        Limits::default()
    }

    fn now(&self) -> Ticks {
        self.clock.now()
    }

    fn status(&self) -> EngineStatus {
        EngineStatus {
            name: "broken",
            durability: Durability::Always,
            stopped: None,
            disk: None,
            is_read_only: false,
            clock_offset_ms: 0,
        }
    }
}

struct View {
    engine: Broken,
    map: Map,
}

impl View {
    fn map(&self) -> Map {
        match self.engine.defect {
            Defect::LiveSnapshots => self.engine.state.lock().unwrap().0.clone(),
            _ => self.map.clone(),
        }
    }
}

#[async_trait]
impl Snapshot for View {
    async fn get(&self, key: &[u8]) -> Result<Option<Bytes>, EngineError> {
        Ok(self.map().get(key).cloned())
    }

    async fn scan(&self, span: &Span, limit: ScanLimit) -> Result<Scan, EngineError> {
        let defect = self.engine.defect;
        let map = self.map();
        let mut rows: Vec<_> = map
            .range(span.start.clone()..span.end.clone().max(span.start.clone()))
            .map(|(key, value)| Entry { key: key.clone(), value: value.clone() })
            .collect();
        if span.direction == Direction::Backward && defect != Defect::IgnoresDirection {
            rows.reverse();
        }
        let (mut scan, mut bytes) = (Scan { entries: Vec::new(), more: false }, 0);
        let mut rows = rows.into_iter();
        for row in rows.by_ref() {
            bytes += row.key.len() + row.value.len();
            scan.entries.push(row);
            let is_full = bytes >= limit.bytes && defect != Defect::IgnoresBytes;
            if scan.entries.len() >= limit.rows || is_full {
                break;
            }
        }
        scan.more = rows.next().is_some() || defect == Defect::AlwaysMore;
        Ok(scan)
    }
}

impl TestStore for Broken {
    fn handle(&self) -> Arc<dyn Engine> {
        let mut handle = self.clone();
        if self.defect == Defect::LateHandles {
            handle.late = Some(self.state.lock().unwrap().0.clone());
        }
        Arc::new(handle)
    }

    fn reopen(&mut self) {
        if self.defect == Defect::LosesDataOnReopening {
            self.state.lock().unwrap().0.clear();
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_rule_is_broken_by_an_engine_that_breaks_it() {
    for (name, rule) in RULES {
        let found = BREAKS.iter().find(|(rule, _)| rule == name);
        let (_, defect) = found.unwrap_or_else(|| panic!("no defect is given for {name}"));
        let check = conformance::run(*rule, |clock| Box::new(Broken::new(*defect, clock)));
        let ended = tokio::time::timeout(HANG, tokio::spawn(check)).await;
        let outcome = ended.unwrap_or_else(|_| panic!("{name} does not end with {defect:?}"));
        assert!(outcome.is_err(), "{name} does not notice {defect:?}");
    }
}
