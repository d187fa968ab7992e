//! Requests on queues and their settings.

use std::time::Duration;

use trestle_model::fault::{Fault, Reason, Violations, quoted};
use trestle_model::limits::{
    DEDUPLICATION_WINDOW_MAX, DEDUPLICATION_WINDOW_MIN, DEQUEUE_COUNT_MAX, PAGE_QUEUES_MAX,
    QUEUE_NAME_CHARS_MAX,
};
use trestle_model::metadata;
use trestle_model::name::QueueName;
use trestle_proto::queue::v1 as proto;

use super::{Between, finish, ranged};
use crate::record::{DeadLetter, QueueSettings};

/// The settings that an update changes; absent ones remain unchanged.
#[derive(Debug, Clone, Default)]
pub(in crate::api) struct SettingsChange {
    metadata: Option<Vec<(String, String)>>,
    dead_letter: Option<Option<DeadLetter>>,
    deduplication_window: Option<Option<Duration>>,
}

impl SettingsChange {
    /// Changes the settings.
    pub(in crate::api) fn apply(self, settings: &mut QueueSettings) {
        settings.metadata = self.metadata.unwrap_or_else(|| settings.metadata.clone());
        settings.dead_letter = self.dead_letter.unwrap_or_else(|| settings.dead_letter.clone());
        settings.deduplication_window =
            self.deduplication_window.unwrap_or(settings.deduplication_window);
    }
}

/// A queue to create.
pub(in crate::api) fn new_queue(
    queue: Option<proto::Queue>,
) -> Result<(QueueName, QueueSettings), Fault> {
    let mut violations = Violations::default();
    let queue = required(queue, &mut violations).unwrap_or_default();
    if violations.is_empty() {
        let parsed = settings(queue, &mut violations);
        return finish(violations, parsed);
    }
    finish(violations, None)
}

fn required(queue: Option<proto::Queue>, violations: &mut Violations) -> Option<proto::Queue> {
    if queue.is_none() {
        violations.push(Reason::PropertiesNeedValue, "queue", "required: the queue");
    }
    queue
}

fn settings(
    queue: proto::Queue,
    violations: &mut Violations,
) -> Option<(QueueName, QueueSettings)> {
    let name = QueueName::parse(queue.name, "queue.name", violations);
    let metadata = metadata::parse(queue.metadata, "queue.metadata", violations);
    let dead_letter = queue.dead_letter.map(|policy| dead_letter(policy, violations));
    let between = Between(DEDUPLICATION_WINDOW_MIN, DEDUPLICATION_WINDOW_MAX);
    let rejected = (Reason::OutOfRangeInput, "queue.deduplication_window");
    let deduplication_window = ranged(queue.deduplication_window, between, rejected, violations);
    let dead_letter = match dead_letter {
        None => None,
        Some(parsed) => Some(parsed?),
    };
    let name = name?;
    if dead_letter.as_ref().is_some_and(|policy| policy.queue == name) {
        let rule = "must be another queue";
        violations.push(Reason::InvalidInput, "queue.dead_letter.queue", rule);
    }
    Some((name, QueueSettings { metadata, dead_letter, deduplication_window }))
}

fn dead_letter(policy: proto::DeadLetterPolicy, violations: &mut Violations) -> Option<DeadLetter> {
    let queue = QueueName::parse(policy.queue, "queue.dead_letter.queue", violations);
    let dequeue_count_max = policy.max_dequeue_count;
    if !(1..=DEQUEUE_COUNT_MAX).contains(&dequeue_count_max) {
        let rule = format!("must be 1 to {DEQUEUE_COUNT_MAX}: value=`{dequeue_count_max}`");
        let field = "queue.dead_letter.max_dequeue_count";
        violations.push(Reason::OutOfRangeInput, field, rule);
    }
    queue.map(|queue| DeadLetter { queue, dequeue_count_max })
}

/// An update of a queue.
pub(in crate::api) fn queue_update(
    request: proto::UpdateQueueRequest,
) -> Result<(QueueName, SettingsChange), Fault> {
    let mut violations = Violations::default();
    let mask = request.update_mask.unwrap_or_default().paths;
    if mask.is_empty() {
        let rule = "required: which settings to change";
        violations.push(Reason::PropertiesNeedValue, "update_mask", rule);
    }
    let queue = required(request.queue, &mut violations);
    let parsed = queue.and_then(|queue| settings(queue, &mut violations));
    let parsed = parsed.map(|(name, settings)| {
        let mut change = SettingsChange::default();
        for path in &mask {
            match path.as_str() {
                "metadata" => change.metadata = Some(settings.metadata.clone()),
                "dead_letter" => change.dead_letter = Some(settings.dead_letter.clone()),
                "deduplication_window" => {
                    change.deduplication_window = Some(settings.deduplication_window);
                }
                other => {
                    let rule = "must be of metadata, dead_letter, deduplication_window";
                    let rule = format!("{rule}: value=`{}`", quoted(other));
                    violations.push(Reason::InvalidInput, "update_mask", rule);
                }
            }
        }
        (name, change)
    });
    finish(violations, parsed)
}

/// The size of a page of a listing: absent for the largest, larger ones capped.
pub(in crate::api) fn list(request: &proto::ListQueuesRequest) -> Result<usize, Fault> {
    let mut violations = Violations::default();
    if request.prefix.len() > QUEUE_NAME_CHARS_MAX {
        let rule = format!("must have at most {QUEUE_NAME_CHARS_MAX} bytes");
        let rule = format!("{rule}: value=`{}`", quoted(&request.prefix));
        violations.push(Reason::OutOfRangeInput, "prefix", rule);
    }
    let size = request.page_size.map_or(Ok(PAGE_QUEUES_MAX), usize::try_from);
    if size.is_err() {
        let rule = format!("must be 0 or more: value=`{}`", request.page_size.unwrap_or_default());
        violations.push(Reason::InvalidInput, "page_size", rule);
    }
    finish(violations, size.ok().map(|size| size.min(PAGE_QUEUES_MAX)))
}

#[cfg(test)]
mod tests;
