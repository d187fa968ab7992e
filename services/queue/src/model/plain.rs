//! A plain model of a queue: a list of messages, and the rules in their simplest form.

use std::time::Duration;

use trestle_model::time::Ticks;

use crate::sweep::GRACE;

/// A message of the model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Message {
    /// Its content.
    pub(super) text: String,
    /// When it can be received.
    pub(super) visible_at: Ticks,
    /// Its slot among those that become visible together.
    pub(super) order: usize,
    /// When it expires.
    pub(super) expires_at: Option<Ticks>,
    /// How often it was received.
    pub(super) dequeue_count: u32,
    /// Its last receipt, by number.
    pub(super) receipt: Option<usize>,
    /// Its group, until it leaves it.
    pub(super) group: Option<u8>,
    /// Whether an earlier message of its group exists.
    pub(super) waits: bool,
}

/// The queues: the work queue, and the dead-letter queue.
#[derive(Debug, Default)]
pub(super) struct Plain {
    /// Messages of the work queue, including expired ones that are not removed yet.
    pub(super) work: Vec<Message>,
    /// Messages of the dead-letter queue.
    pub(super) dead: Vec<Message>,
    /// How many receipts were issued.
    pub(super) receipts: usize,
    orders: usize,
    /// Deduplication ids with their expiration.
    deduplication_ids: Vec<(String, Ticks)>,
}

/// Deliveries before a message is dead-lettered.
pub(super) const DEQUEUES_MAX: u32 = 2;
/// The deduplication window.
pub(super) const WINDOW: Duration = Duration::from_secs(20);

impl Message {
    pub(super) fn has_expired(&self, now: Ticks) -> bool {
        self.expires_at.is_some_and(|at| at <= now)
    }
}

/// The slots of visible messages, in the order of delivery.
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

/// Removes every message that `is_removed`, and only those: the messages that take their slots remain for now.
fn remove_all(messages: &mut Vec<Message>, now: Ticks, is_removed: impl Fn(&Message) -> bool) {
    let removed: Vec<_> =
        (0..messages.len()).filter(|index| is_removed(&messages[*index])).collect();
    for index in removed.into_iter().rev() {
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

    /// Sends a message; returns whether it was new.
    pub(super) fn send(
        &mut self,
        text: String,
        (delay, time_to_live): (Duration, Option<Duration>),
        (id, group): (Option<&str>, Option<u8>),
        now: Ticks,
    ) -> bool {
        let order = self.next_order();
        if let Some(id) = id {
            // Stored until it is swept: a restart may set the time back slightly.
            if self.deduplication_ids.iter().any(|(recorded, until)| recorded == id && *until > now)
            {
                return false;
            }
            self.deduplication_ids.retain(|(recorded, _)| recorded != id);
            self.deduplication_ids.push((id.to_owned(), now.after(WINDOW)));
        }
        let waits = group.is_some() && self.work.iter().any(|message| message.group == group);
        let receipt = if waits { None } else { Some(self.next_receipt()) };
        let expires_at = time_to_live.map(|time_to_live| now.after(time_to_live));
        let visible_at = now.after(delay);
        let dequeue_count = 0;
        let message =
            Message { text, visible_at, order, expires_at, dequeue_count, receipt, group, waits };
        self.work.push(message);
        true
    }

    /// Receives up to `max` messages of the work queue.
    pub(super) fn receive(&mut self, max: usize, timeout: Duration, now: Ticks) -> Vec<Message> {
        loop {
            let batch: Vec<_> = due(&self.work, now).into_iter().take(max).collect();
            if batch.is_empty() {
                return Vec::new();
            }
            let (mut delivered, mut exhausted) = (Vec::new(), Vec::new());
            let mut found_expired = false;
            for index in batch {
                if self.work[index].has_expired(now) {
                    found_expired = true;
                } else if self.work[index].dequeue_count >= DEQUEUES_MAX {
                    exhausted.push(self.work[index].order);
                } else {
                    let receipt = Some(self.next_receipt());
                    let message = &mut self.work[index];
                    message.dequeue_count += 1;
                    message.visible_at = now.after(timeout);
                    message.receipt = receipt;
                    delivered.push(message.clone());
                }
            }
            if found_expired {
                let is_removed = |message: &Message| {
                    !message.waits && message.has_expired(now) && message.visible_at <= now
                };
                remove_all(&mut self.work, now, is_removed);
            }
            // Afterwards: a message that becomes the first of its group by this remains for now, even if it has
            // expired.
            for order in exhausted {
                let index = self.work.iter().position(|message| message.order == order);
                let moved = remove(&mut self.work, index.expect("it has not expired"), now);
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

    /// The visible messages, in order.
    pub(super) fn peek(messages: &[Message], now: Ticks) -> Vec<Message> {
        let due = due(messages, now).into_iter().map(|index| messages[index].clone());
        due.filter(|message| !message.has_expired(now)).collect()
    }

    fn index_of_valid(&self, receipt: usize, now: Ticks) -> Option<usize> {
        let is_held =
            |message: &Message| message.receipt == Some(receipt) && !message.has_expired(now);
        self.work.iter().position(is_held)
    }

    /// Deletes by receipt; returns whether the receipt was valid.
    pub(super) fn delete(&mut self, receipt: usize, now: Ticks) -> bool {
        let found = self.index_of_valid(receipt, now);
        found.map(|index| remove(&mut self.work, index, now)).is_some()
    }

    /// Updates by receipt; returns whether the receipt was valid.
    pub(super) fn update(
        &mut self,
        receipt: usize,
        timeout: Duration,
        text: Option<String>,
        now: Ticks,
    ) -> bool {
        let Some(index) = self.index_of_valid(receipt, now) else { return false };
        let receipt = Some(self.next_receipt());
        let message = &mut self.work[index];
        message.visible_at = now.after(timeout);
        message.receipt = receipt;
        message.text = text.unwrap_or_else(|| message.text.clone());
        true
    }

    /// Moves the visible dead letters back; returns their number.
    pub(super) fn redrive(&mut self, now: Ticks) -> usize {
        let mut moved: Vec<_> = due(&self.dead, now);
        moved.retain(|index| !self.dead[*index].has_expired(now));
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

    /// Removes every message and every deduplication id of the work queue.
    pub(super) fn clear(&mut self) {
        self.work.clear();
        self.deduplication_ids.clear();
    }

    /// Removes expired messages, also those that become the first of their groups by it, and deduplication ids.
    pub(super) fn sweep(&mut self, now: Ticks) {
        let is_removed = |message: &Message| !message.waits && message.has_expired(now);
        for messages in [&mut self.work, &mut self.dead] {
            while messages.iter().any(is_removed) {
                remove_all(messages, now, is_removed);
            }
        }
        self.deduplication_ids.retain(|(_, until)| *until > now.before(GRACE));
    }
}
