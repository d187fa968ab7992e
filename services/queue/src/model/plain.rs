//! A plain model of a queue: a list of messages, and the rules read out loud.

use std::time::Duration;

use trestle_service::clock::Ticks;

use crate::sweep::GRACE;

/// A message of the model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Message {
    /// What it carries.
    pub(super) text: String,
    /// When it can be received.
    pub(super) visible_at: Ticks,
    /// Its slot among those that become visible together.
    pub(super) order: usize,
    /// When it is gone.
    pub(super) expires_at: Option<Ticks>,
    /// How often it was received.
    pub(super) dequeue_count: u32,
    /// Its last receipt, by number.
    pub(super) receipt: Option<usize>,
    /// Its group, as long as it has a slot there.
    pub(super) group: Option<u8>,
    /// Whether another one of its group is before it.
    pub(super) waits: bool,
}

/// The queues: one of work, and one of dead letters.
#[derive(Debug, Default)]
pub(super) struct Plain {
    /// Messages of the queue of work, those that expired and were not removed yet included.
    pub(super) work: Vec<Message>,
    /// Messages of the queue of dead letters.
    pub(super) dead: Vec<Message>,
    /// How many receipts were given.
    pub(super) receipts: usize,
    orders: usize,
    /// Deduplication ids with the time until which they are remembered.
    remembered: Vec<(String, Ticks)>,
}

/// Deliveries before a message goes to the dead letters.
pub(super) const DEQUEUES_MAX: u32 = 2;
/// How long deduplication ids are remembered.
pub(super) const WINDOW: Duration = Duration::from_secs(20);

impl Message {
    pub(super) fn is_over(&self, now: Ticks) -> bool {
        self.expires_at.is_some_and(|at| at <= now)
    }
}

/// The slots of what is visible, in the order of delivery.
fn due(messages: &[Message], now: Ticks) -> Vec<usize> {
    let is_due = |message: &Message| !message.waits && message.visible_at <= now;
    let mut due: Vec<_> = (0..messages.len()).filter(|i| is_due(&messages[*i])).collect();
    due.sort_by_key(|i| (messages[*i].visible_at, messages[*i].order));
    due
}

/// Removes a message; the next one of its group takes its slot.
fn remove(messages: &mut Vec<Message>, index: usize, now: Ticks) -> Message {
    let removed = messages.remove(index);
    let is_next = |message: &&mut Message| message.waits && message.group == removed.group;
    if removed.group.is_some()
        && !removed.waits
        && let Some(next) = messages.iter_mut().find(is_next)
    {
        next.waits = false;
        next.visible_at = next.visible_at.max(now);
    }
    removed
}

/// Removes every message that `is_gone`, and those only: what takes their slots stays for now.
fn remove_all(messages: &mut Vec<Message>, now: Ticks, is_gone: impl Fn(&Message) -> bool) {
    let gone: Vec<_> = (0..messages.len()).filter(|index| is_gone(&messages[*index])).collect();
    for index in gone.into_iter().rev() {
        remove(messages, index, now);
    }
}

impl Plain {
    fn next_order(&mut self) -> usize {
        self.orders += 1;
        self.orders
    }

    fn next_receipt(&mut self) -> usize {
        self.receipts += 1;
        self.receipts - 1
    }

    /// Sends a message; whether it was new.
    pub(super) fn send(
        &mut self,
        text: String,
        (delay, life): (Duration, Option<Duration>),
        (id, group): (Option<&str>, Option<u8>),
        now: Ticks,
    ) -> bool {
        let order = self.next_order();
        if let Some(id) = id {
            // Kept until it is swept: a restart may take the time back a little.
            if self.remembered.iter().any(|(known, until)| known == id && *until > now) {
                return false;
            }
            self.remembered.retain(|(known, _)| known != id);
            self.remembered.push((id.to_owned(), now.after(WINDOW)));
        }
        let waits = group.is_some() && self.work.iter().any(|message| message.group == group);
        let receipt = if waits { None } else { Some(self.next_receipt()) };
        let expires_at = life.map(|life| now.after(life));
        let visible_at = now.after(delay);
        let dequeue_count = 0;
        let message =
            Message { text, visible_at, order, expires_at, dequeue_count, receipt, group, waits };
        self.work.push(message);
        true
    }

    /// Receives up to `max` messages of the queue of work.
    pub(super) fn receive(&mut self, max: usize, hidden: Duration, now: Ticks) -> Vec<Message> {
        loop {
            let batch: Vec<_> = due(&self.work, now).into_iter().take(max).collect();
            if batch.is_empty() {
                return Vec::new();
            }
            let (mut delivered, mut gone) = (Vec::new(), Vec::new());
            let mut found_expired = false;
            for index in batch {
                if self.work[index].is_over(now) {
                    found_expired = true;
                } else if self.work[index].dequeue_count >= DEQUEUES_MAX {
                    gone.push(self.work[index].order);
                } else {
                    let receipt = Some(self.next_receipt());
                    let message = &mut self.work[index];
                    message.dequeue_count += 1;
                    message.visible_at = now.after(hidden);
                    message.receipt = receipt;
                    delivered.push(message.clone());
                }
            }
            if found_expired {
                let is_gone = |message: &Message| {
                    !message.waits && message.is_over(now) && message.visible_at <= now
                };
                remove_all(&mut self.work, now, is_gone);
            }
            // Afterwards: what comes to be first of its group by this stays for now, also if it is over.
            for gone in gone {
                let index = self.work.iter().position(|message| message.order == gone);
                let moved = remove(&mut self.work, index.expect("it is not over"), now);
                let (order, visible_at) = (self.next_order(), now);
                let (dequeue_count, receipt, group) = (0, None, None);
                let dead = Message { order, visible_at, dequeue_count, receipt, group, ..moved };
                self.dead.push(dead);
            }
            if !delivered.is_empty() {
                return delivered;
            }
        }
    }

    /// What is visible, in order.
    pub(super) fn peek(messages: &[Message], now: Ticks) -> Vec<Message> {
        let due = due(messages, now).into_iter().map(|index| messages[index].clone());
        due.filter(|message| !message.is_over(now)).collect()
    }

    fn held(&self, receipt: usize, now: Ticks) -> Option<usize> {
        let is_held = |message: &Message| message.receipt == Some(receipt) && !message.is_over(now);
        self.work.iter().position(is_held)
    }

    /// Deletes by receipt; whether it did.
    pub(super) fn delete(&mut self, receipt: usize, now: Ticks) -> bool {
        let held = self.held(receipt, now);
        held.map(|index| remove(&mut self.work, index, now)).is_some()
    }

    /// Updates by receipt; whether it did.
    pub(super) fn update(
        &mut self,
        receipt: usize,
        hidden: Duration,
        text: Option<String>,
        now: Ticks,
    ) -> bool {
        let Some(index) = self.held(receipt, now) else { return false };
        let receipt = Some(self.next_receipt());
        let message = &mut self.work[index];
        message.visible_at = now.after(hidden);
        message.receipt = receipt;
        message.text = text.unwrap_or_else(|| message.text.clone());
        true
    }

    /// Moves what is visible of the dead letters back; how many.
    pub(super) fn redrive(&mut self, now: Ticks) -> usize {
        let mut moved: Vec<_> = due(&self.dead, now);
        moved.retain(|index| !self.dead[*index].is_over(now));
        for index in &moved {
            let order = self.next_order();
            let message = self.dead[*index].clone();
            self.work.push(Message { order, visible_at: now, ..message });
        }
        let count = moved.len();
        moved.sort_unstable();
        for index in moved.into_iter().rev() {
            self.dead.remove(index);
        }
        count
    }

    /// Removes everything of the queue of work, and what it remembers.
    pub(super) fn clear(&mut self) {
        self.work.clear();
        self.remembered.clear();
    }

    /// Removes what is over.
    pub(super) fn sweep(&mut self, now: Ticks) {
        for messages in [&mut self.work, &mut self.dead] {
            remove_all(messages, now, |message| !message.waits && message.is_over(now));
        }
        self.remembered.retain(|(_, until)| *until > now.before(GRACE));
    }
}
