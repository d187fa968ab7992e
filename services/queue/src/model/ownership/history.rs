//! The history of calls on two services, and whether a queue allows it.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use trestle_model::time::Ticks;

/// Begin and end of a call, by a counter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct RecordedCall {
    pub(super) begin: usize,
    pub(super) end: usize,
}

/// The outcome of a call that writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Outcome {
    /// It was acknowledged.
    Done,
    /// It was rejected; nothing was written.
    Rejected,
    /// It was cancelled, so its outcome is unknown.
    Unknown,
}

/// A delivery or an update: a new generation of the state of a message.
#[derive(Debug, Clone)]
pub(super) struct Generation {
    pub(super) text: String,
    pub(super) is_delivery: bool,
    pub(super) at: Ticks,
    pub(super) visible_at: Ticks,
}

/// A message in one queue: a number of the queue, its sequence there, and its id.
pub(super) type MessageKey = (usize, u64, u128);

#[derive(Debug, Default)]
pub(super) struct History {
    clock: usize,
    pub(super) sends: BTreeMap<String, (RecordedCall, Outcome)>,
    /// By message and generation.
    pub(super) generations: BTreeMap<(MessageKey, u32), Generation>,
    pub(super) deletes: HashMap<String, Vec<(MessageKey, u32, Outcome)>>,
    /// The messages of an ordering group that were sent one after the other, in order.
    pub(super) groups: HashMap<String, Vec<String>>,
    /// Clears and replacements of the queue.
    pub(super) clears: Vec<(RecordedCall, Outcome)>,
    /// The sent messages by deduplication id, without duplicates.
    pub(super) originals: HashMap<String, Vec<(RecordedCall, String)>>,
}

impl History {
    pub(super) fn tick(&mut self) -> usize {
        self.clock += 1;
        self.clock
    }

    /// Adds a generation; no message has the same one twice.
    pub(super) fn add_generation(&mut self, key: MessageKey, number: u32, new: &Generation) {
        let before = self.generations.insert((key, number), new.clone());
        assert!(before.is_none(), "twice generation {number} of {key:?}: {before:?} and {new:?}");
    }

    /// Whether the messages at the end, after every message was received and deleted, follow from the calls.
    pub(super) fn check(&self, found: &[String]) {
        let mut remaining = BTreeSet::new();
        for text in found {
            assert!(remaining.insert(text), "duplicate: {text}");
            assert!(self.sends.contains_key(text), "never sent: {text}");
        }
        for (text, (call, outcome)) in &self.sends {
            let remains = remaining.contains(text);
            match (self.is_expected(text, *call, *outcome), remains) {
                (Some(true), false) => panic!("lost: {text}, sent by {call:?}"),
                (Some(false), true) => panic!("neither rejected nor removed: {text}, {outcome:?}"),
                _ => {}
            }
        }
        self.check_deliveries();
        self.check_groups();
        self.check_originals();
    }

    /// Whether a message must exist at the end; none where both are allowed.
    fn is_expected(&self, text: &str, sent: RecordedCall, outcome: Outcome) -> Option<bool> {
        if outcome == Outcome::Rejected {
            return Some(false);
        }
        let deletes = self.deletes.get(text).into_iter().flatten();
        if deletes.clone().any(|(_, _, outcome)| *outcome == Outcome::Done) {
            return Some(false);
        }
        let mut is_certain = outcome == Outcome::Done;
        is_certain &= !deletes.clone().any(|(_, _, outcome)| *outcome == Outcome::Unknown);
        for (clear, outcome) in &self.clears {
            if *outcome == Outcome::Rejected || sent.begin > clear.end {
                continue;
            }
            if *outcome == Outcome::Done && sent.end < clear.begin {
                return Some(false);
            }
            is_certain = false;
        }
        is_certain.then_some(true)
    }

    /// No message was delivered while it was invisible, nor after a delete of it; and no sequence was used for
    /// two messages.
    fn check_deliveries(&self) {
        let mut before: Option<(MessageKey, &Generation)> = None;
        for ((key, number), generation) in &self.generations {
            let is_reused =
                |other: &MessageKey| (other.0, other.1) == (key.0, key.1) && other.2 != key.2;
            // A queue that was cleared begins with the first sequence again, under another id.
            assert!(
                !self.clears.is_empty() || !before.is_some_and(|(other, _)| is_reused(&other)),
                "one sequence for two messages: {key:?}"
            );
            if let Some((_, earlier)) = before.filter(|(other, _)| other == key) {
                assert!(
                    !generation.is_delivery || generation.at >= earlier.visible_at,
                    "delivered while it was invisible: {earlier:?}, then {generation:?}"
                );
            }
            let deletes = self.deletes.get(&generation.text).into_iter().flatten();
            for (deleted, last, outcome) in deletes {
                assert!(
                    *outcome != Outcome::Done || deleted != key || number <= last,
                    "changed after its delete: {generation:?}"
                );
            }
            before = Some((*key, generation));
        }
    }

    /// The first deliveries of a group are in the order of its sends.
    fn check_groups(&self) {
        for (group, texts) in &self.groups {
            let mut last = None;
            for text in texts {
                let deliveries = self.generations.values().filter(|g| g.text == *text);
                let Some(first) = deliveries.filter(|g| g.is_delivery).map(|g| g.at).min() else {
                    continue;
                };
                assert!(
                    last.is_none_or(|last| last <= first),
                    "{group} is out of order: {texts:?}"
                );
                last = Some(first);
            }
        }
    }

    /// Of the sends with one deduplication id, one was not a duplicate, unless the queue was cleared in between.
    fn check_originals(&self) {
        for (id, originals) in &self.originals {
            for (first, second) in originals.iter().zip(originals.iter().skip(1)) {
                let between = |(clear, outcome): &(RecordedCall, Outcome)| {
                    *outcome != Outcome::Rejected
                        && clear.end > first.0.begin
                        && clear.begin < second.0.end
                };
                let is_cleared = self.clears.iter().any(between);
                assert!(is_cleared, "both were new for {id}: {first:?}, {second:?}");
            }
        }
    }
}
