//! The history of the clients of a queue, checked against its guarantees.

use std::collections::BTreeMap;

/// An outcome of a call.
#[derive(Debug, Clone)]
pub(super) enum Event {
    Sent {
        message: Named,
    },
    Received {
        message: Named,
        side: Side,
        count: u32,
        invisible_until: i128,
    },
    Extended {
        id: String,
        invisible_until: i128,
    },
    Deleted {
        id: String,
    },
    /// The call failed with an unknown outcome.
    Unsure {
        id: String,
    },
}

/// The queue of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    /// In the queue of work.
    Work,
    /// Among its dead letters.
    Dead,
}

/// A call that moved dead letters back to the queue of work, or may have.
#[derive(Debug, Clone, Copy)]
pub(super) struct Redrive {
    pub(super) begun: i128,
    pub(super) answered: i128,
}

/// The history of a message, as its clients recorded it.
#[derive(Debug, Clone)]
pub(super) struct Named {
    pub(super) id: String,
    /// The number of its sender, a dash, and its own among those of the sender.
    pub(super) text: String,
    /// Its ordering group; empty where it has none. Each group has one sender.
    pub(super) group: String,
}

/// An event between the start of its call and its answer, in nanoseconds of the wall clock.
#[derive(Debug, Clone)]
pub(super) struct CallOutcome {
    pub(super) begun: i128,
    pub(super) answered: i128,
    pub(super) event: Event,
}

impl Event {
    fn id(&self) -> &str {
        match self {
            Self::Sent { message } | Self::Received { message, .. } => &message.id,
            Self::Extended { id, .. } | Self::Deleted { id } | Self::Unsure { id } => id,
        }
    }

    pub(super) fn is_delivery(&self) -> bool {
        matches!(self, Self::Received { .. })
    }

    pub(super) fn is_of_dead_letter(&self) -> bool {
        matches!(self, Self::Received { side: Side::Dead, .. })
    }

    fn may_delete(&self) -> bool {
        matches!(self, Self::Deleted { .. } | Self::Unsure { .. })
    }
}

/// Whether the holder of a message may have released it by a call in flight when another client
/// received it.
fn given_back(history: &[CallOutcome], received: &CallOutcome) -> bool {
    let now = received.answered;
    let under_way =
        history.iter().filter(|outcome| outcome.begun <= now && outcome.answered >= now);
    under_way.into_iter().any(|outcome| match outcome.event {
        Event::Extended { invisible_until, .. } => invisible_until <= now,
        Event::Unsure { .. } => true,
        _ => false,
    })
}

/// The state of one message by its history.
#[derive(Default)]
pub(super) struct MessageHistory {
    pub(super) events: Vec<CallOutcome>,
}

impl MessageHistory {
    pub(super) fn is_deleted(&self) -> bool {
        self.events.iter().any(|outcome| matches!(outcome.event, Event::Deleted { .. }))
    }

    pub(super) fn may_be_deleted(&self) -> bool {
        self.events.iter().any(|outcome| outcome.event.may_delete())
    }

    /// Its group and its number, where it has a group.
    fn position(&self) -> Option<(&str, u64)> {
        let named = self.events.iter().find_map(|outcome| match &outcome.event {
            Event::Sent { message } | Event::Received { message, .. } => Some(message),
            _ => None,
        })?;
        let number = named.text.rsplit('-').next()?.parse().expect("a number");
        (!named.group.is_empty()).then_some((&*named.group, number))
    }

    /// Checks the history of one message against the guarantees.
    pub(super) fn check(&mut self, id: &str, redrives: &[Redrive]) {
        self.events.sort_by_key(|outcome| outcome.answered);
        let (mut live_until, mut deleted_at) = (i128::MIN, None);
        // The delivery before: when it was requested, by which site, and its count.
        let mut before = (i128::MIN, Side::Work, 0);
        for outcome in &self.events {
            match outcome.event {
                Event::Received { side, count, invisible_until, .. } => {
                    let history = &self.events;
                    let is_in_order =
                        outcome.answered >= live_until || given_back(history, outcome);
                    assert!(is_in_order, "{id}: received while held: {outcome:?} in {history:#?}");
                    let (since, from, counted) = before;
                    let is_counted = side == from && count > counted;
                    let is_dead_lettered = (from, side) == (Side::Work, Side::Dead);
                    let is_back =
                        redrives.iter().any(|r| r.begun <= outcome.answered && r.answered >= since);
                    assert!(
                        is_counted || is_dead_lettered || is_back,
                        "{id}: {count} in {side:?} after {counted} in {from:?}: {history:#?}"
                    );
                    let after_delete = deleted_at.is_some_and(|at| outcome.begun > at);
                    assert!(!after_delete, "{id}: received after its delete: {outcome:?}");
                    (live_until, before) = (invisible_until, (outcome.begun, side, count));
                }
                Event::Extended { invisible_until, .. } => live_until = invisible_until,
                Event::Deleted { .. } => deleted_at = Some(outcome.answered),
                // It may have been released at once.
                Event::Unsure { .. } => live_until = i128::MIN,
                Event::Sent { .. } => {}
            }
        }
    }
}

/// The histories of clients by message.
pub(super) fn histories<'a>(
    outcome: impl Iterator<Item = &'a CallOutcome>,
) -> BTreeMap<String, MessageHistory> {
    let mut histories: BTreeMap<String, MessageHistory> = BTreeMap::new();
    for outcome in outcome {
        histories.entry(outcome.event.id().to_owned()).or_default().events.push(outcome.clone());
    }
    histories
}

/// In a group, no message is delivered before the previous one is deleted. How often
/// that could be observed.
pub(super) fn check_groups(histories: &BTreeMap<String, MessageHistory>) -> usize {
    let mut groups: BTreeMap<&str, BTreeMap<u64, &MessageHistory>> = BTreeMap::new();
    for history in histories.values() {
        if let Some((group, number)) = history.position() {
            groups.entry(group).or_default().insert(number, history);
        }
    }
    let mut observed = 0;
    for histories in groups.values() {
        for (first, second) in histories.values().zip(histories.values().skip(1)) {
            let deleted_at = first.events.iter().filter(|outcome| outcome.event.may_delete());
            let deleted_at = deleted_at.map(|outcome| outcome.begun).min();
            for outcome in second.events.iter().filter(|outcome| outcome.event.is_delivery()) {
                let is_in_order =
                    deleted_at.is_some_and(|deleted_at| deleted_at < outcome.answered);
                assert!(is_in_order, "{outcome:?} before its turn, after {:#?}", first.events);
                observed += 1;
            }
        }
    }
    observed
}
