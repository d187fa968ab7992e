//! The record of a queue: its number, its settings, its access policies.
//!
//! ```text
//! version (1) = 1 | id u64 | record version u64 | created ticks u64 | flags u8 | deduplication window ticks u64
//! | dead letter: most deliveries u32, queue | number of metadata u32 | each: name, value | access policies
//! ```
//!
//! Flag 1 marks a deduplication window, flag 2 a dead-letter policy; absent fields take no bytes. The policies are
//! stored as `SetQueueAccessPoliciesRequest` without its queue, in the form of the public contract, whose rules keep
//! old bytes readable.

use std::time::Duration;

use bytes::Bytes;
use trestle_model::{fault::Violations, name::QueueName, time::Ticks};

use crate::{
    error::QueueError,
    keys::QueueId,
    wire::{self, RecordReader},
};

const VERSION: u8 = 1;
/// The version of the record of a new queue.
pub(crate) const FIRST_VERSION: u64 = 1;
const HAS_WINDOW: u8 = 1;
const HAS_DEAD_LETTER: u8 = 2;

/// The settings of a queue, as its client chose them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct QueueSettings {
    /// Names and values of the application, by name.
    pub(crate) metadata: Vec<(String, String)>,
    /// The dead-letter policy.
    pub(crate) dead_letter: Option<DeadLetter>,
    /// The deduplication window.
    pub(crate) deduplication_window: Option<Duration>,
}

/// A dead-letter policy: where messages are moved that were received too often.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DeadLetter {
    /// The queue.
    pub(crate) queue: QueueName,
    /// Deliveries before a message is moved.
    pub(crate) dequeue_count_max: u32,
}

/// The stored record of a queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct QueueRecord {
    /// The number in the keys of its messages; another one after it was cleared.
    pub(crate) id: QueueId,
    /// How often the record was written, which the head of the queue repeats.
    pub(crate) version: u64,
    /// When it was created.
    pub(crate) created_at: Ticks,
    /// The settings that its client chose.
    pub(crate) settings: QueueSettings,
    /// Its access policies, encoded.
    pub(crate) policies: Bytes,
}

impl QueueSettings {
    /// Whether a queue with these settings matches the `requested` settings. Names of metadata are compared
    /// without regard to case, values exactly, as Azure does. Settings that only gRPC supports are compared where the
    /// request has them: a client that creates a queue by REST cannot send them, and must not receive a conflict.
    pub(crate) fn fits(&self, requested: &Self) -> bool {
        let folded = |settings: &Self| {
            let fold =
                |(name, value): &(String, String)| (name.to_ascii_lowercase(), value.clone());
            let mut folded: Vec<_> = settings.metadata.iter().map(fold).collect();
            folded.sort();
            folded
        };
        let (letters, window) = (&requested.dead_letter, &requested.deduplication_window);
        (letters.is_none() || *letters == self.dead_letter)
            && (window.is_none() || *window == self.deduplication_window)
            && folded(self) == folded(requested)
    }
}

impl QueueRecord {
    /// The stored form.
    pub(crate) fn encode(&self) -> Bytes {
        let mut value = vec![VERSION];
        value.extend_from_slice(&self.id.0.to_be_bytes());
        value.extend_from_slice(&self.version.to_be_bytes());
        value.extend_from_slice(&self.created_at.get().to_be_bytes());
        let QueueSettings { metadata, dead_letter, deduplication_window } = &self.settings;
        let window = deduplication_window.map_or(0, |_| HAS_WINDOW);
        value.push(window | dead_letter.as_ref().map_or(0, |_| HAS_DEAD_LETTER));
        if let Some(window) = deduplication_window {
            let ticks = u64::try_from(window.as_nanos() / 100).unwrap_or(u64::MAX);
            value.extend_from_slice(&ticks.to_be_bytes());
        }
        if let Some(dead_letter) = dead_letter {
            value.extend_from_slice(&dead_letter.dequeue_count_max.to_be_bytes());
            wire::push_bytes(&mut value, dead_letter.queue.as_str().as_bytes());
        }
        let count = u32::try_from(metadata.len()).unwrap_or(u32::MAX);
        value.extend_from_slice(&count.to_be_bytes());
        for (name, text) in metadata {
            wire::push_bytes(&mut value, name.as_bytes());
            wire::push_bytes(&mut value, text.as_bytes());
        }
        value.extend_from_slice(&self.policies);
        value.into()
    }

    /// From the stored form.
    ///
    /// # Errors
    /// [`QueueError::Corrupt`].
    pub(crate) fn decode(value: &Bytes) -> Result<Self, QueueError> {
        Self::fields(value).ok_or_else(|| QueueError::corrupt("record of a queue"))
    }

    fn fields(value: &Bytes) -> Option<Self> {
        let mut fields = RecordReader::of(value, VERSION)?;
        let (id, version) = (QueueId(fields.u64()?), fields.u64()?);
        let created_at = fields.ticks()?;
        let flags = fields.u8()?;
        let mut settings = QueueSettings::default();
        if flags & HAS_WINDOW != 0 {
            let ticks = fields.u64()?;
            settings.deduplication_window = Some(Duration::from_nanos(ticks.checked_mul(100)?));
        }
        if flags & HAS_DEAD_LETTER != 0 {
            let dequeue_count_max = fields.u32()?;
            let queue = QueueName::parse(fields.text()?, "queue", &mut Violations::default())?;
            settings.dead_letter = Some(DeadLetter { queue, dequeue_count_max });
        }
        for _ in 0..fields.u32()? {
            settings.metadata.push((fields.text()?, fields.text()?));
        }
        let policies = value.slice_ref(fields.rest());
        Some(Self { id, version, created_at, settings, policies })
    }
}

#[cfg(test)]
mod tests;
