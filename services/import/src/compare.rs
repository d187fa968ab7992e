//! The comparison of source and target: read, stored and skipped items.

#[cfg(test)]
mod tests;

use futures::{StreamExt as _, TryStreamExt as _};
use serde_json::{Value, json};
use trestle_command::{
    errors::CliError,
    output::{self, Output, counted, escaped, thousands},
};

use super::{
    ImportTarget,
    args::CopyArgs,
    plan::ImportPlan,
    progress::{ContainerProgress, QueueProgress, Skipped, TableProgress},
    queues, tables,
};
use crate::digest::Digest;

/// Most skipped items that are shown to a person.
const SHOWN_MAX: usize = 20;

/// The result of the comparison.
#[derive(Debug)]
pub(super) struct Report {
    tables: Vec<ComparedTable>,
    queues: Vec<ComparedQueue>,
    containers: Vec<ComparedContainer>,
    skipped: Vec<Skipped>,
    skipped_more: u64,
    why_remaining: &'static str,
}

#[derive(Debug)]
struct ComparedTable {
    name: String,
    progress: TableProgress,
    target: Digest,
}

impl ComparedTable {
    fn matches(&self) -> bool {
        self.progress.complete
            && self.progress.rejected == 0
            && self.target == self.progress.written
    }

    fn record(&self) -> Value {
        let progress = &self.progress;
        json!({
            "table": self.name, "read": progress.read, "written": progress.written.count,
            "rejected": progress.rejected, "target": self.target.count, "match": self.matches(),
            "digest_written": progress.written.text(), "digest_target": self.target.text(),
        })
    }
}

#[derive(Debug)]
struct ComparedQueue {
    name: String,
    progress: QueueProgress,
    /// Messages that it holds now.
    target: u64,
    /// Whether the first messages are among those that were sent first.
    begins_alike: bool,
}

impl ComparedQueue {
    fn matches(&self) -> bool {
        let progress = &self.progress;
        let most = progress.before.saturating_add(progress.sent.count);
        // Deduplicated messages may be counted among those from before the import.
        let repeated = if progress.before > 0 { progress.repeated } else { 0 };
        let counts = most.saturating_sub(repeated)..=most;
        let is_all_copied = progress.rejected == 0 && progress.remaining == 0;
        progress.complete && is_all_copied && counts.contains(&self.target) && self.begins_alike
    }

    fn record(&self) -> Value {
        let progress = &self.progress;
        json!({
            "queue": self.name, "read": progress.read, "sent": progress.sent.count,
            "expired": progress.expired, "rejected": progress.rejected, "remaining": progress.remaining,
            "repeated": progress.repeated, "received_before": progress.received_before,
            "before": progress.before, "target": self.target, "match": self.matches(),
            "digest_sent": progress.sent.text(),
        })
    }
}

#[derive(Debug)]
struct ComparedContainer {
    name: String,
    progress: ContainerProgress,
    target: Digest,
}

impl ComparedContainer {
    fn matches(&self) -> bool {
        let progress = &self.progress;
        progress.is_complete() && progress.rejected == 0 && self.target == progress.written
    }

    fn record(&self) -> Value {
        let progress = &self.progress;
        json!({
            "container": self.name, "read": progress.read, "written": progress.written.count,
            "rejected": progress.rejected, "bytes": progress.bytes, "target": self.target.count,
            "match": self.matches(),
            "digest_written": progress.written.text(), "digest_target": self.target.text(),
        })
    }
}

/// Reads back what was written and compares it with what was read.
pub(super) async fn compare(
    target: ImportTarget<'_>,
    plan: &ImportPlan,
    args: &CopyArgs,
) -> Result<Report, CliError> {
    let at_once = args.parallel.into();
    let progress = target.tracker.read(Clone::clone);
    let of_table = |name: &str| progress.tables.get(&tables::folded(name)).cloned();
    let found = plan.tables.iter().filter_map(|table| Some((&table.name, of_table(&table.name)?)));
    let compared = found.map(|(name, progress)| async move {
        let target = target.read_back(name).await?;
        Ok::<_, CliError>(ComparedTable { name: name.clone(), progress, target })
    });
    let tables = futures::stream::iter(compared).buffered(at_once).try_collect().await?;
    let compared =
        progress.queues.iter().map(|(name, progress)| compare_queue(target, name, progress));
    let queues = futures::stream::iter(compared).buffered(at_once).try_collect().await?;
    let compared = progress.containers.iter().map(|(name, progress)| async move {
        let target = target.list_back(name, args).await?;
        let (name, progress) = (name.clone(), progress.clone());
        Ok::<_, CliError>(ComparedContainer { name, progress, target })
    });
    let containers = futures::stream::iter(compared).buffered(at_once).try_collect().await?;
    let (skipped, skipped_more) = (progress.skipped, progress.skipped_more);
    let why_remaining = plan.why_remaining;
    Ok(Report { tables, queues, containers, skipped, skipped_more, why_remaining })
}

async fn compare_queue(
    queues: ImportTarget<'_>,
    name: &str,
    progress: &QueueProgress,
) -> Result<ComparedQueue, CliError> {
    let target = queues.count(name).await?;
    // Messages from before the import come first.
    let begins_alike = progress.before > 0 || queues.begins_with(name, &progress.first).await?;
    Ok(ComparedQueue { name: name.to_owned(), progress: progress.clone(), target, begins_alike })
}

impl Report {
    /// Prints both sides, and the items that were not copied.
    pub(super) fn print(&self, output: &mut Output) -> Result<(), CliError> {
        let counts = ["read", "written", "rejected", "target", "match"];
        let tables: Vec<_> = self.tables.iter().map(ComparedTable::record).collect();
        output.records(&tables, &[&["table"], &counts[..]].concat())?;
        let counts = ["read", "sent", "expired", "rejected", "remaining", "target", "match"];
        let queues: Vec<_> = self.queues.iter().map(ComparedQueue::record).collect();
        output.records(&queues, &[&["queue"], &counts[..]].concat())?;
        let counts = ["read", "written", "rejected", "bytes", "target", "match"];
        let containers: Vec<_> = self.containers.iter().map(ComparedContainer::record).collect();
        output.records(&containers, &[&["container"], &counts[..]].concat())?;
        if output.is_json() {
            for Skipped { whose, which, why } in self.not_copied() {
                let object = json!({ "not_copied": whose, "which": which, "why": why });
                output.records(&[object], &[])?;
            }
            let summary = json!({
                "tables": self.tables.len(), "queues": self.queues.len(),
                "containers": self.containers.len(), "blobs": self.blobs(), "bytes": self.bytes(),
                "not_copied": self.not_copied_count(), "match": self.differing() == 0,
            });
            return output.records(&[summary], &[]);
        }
        let received: u64 = self.queues.iter().map(|queue| queue.progress.received_before).sum();
        if received > 0 {
            let received = thousands(received);
            output.line(&format!(
                "{received} messages had been received before; their dequeue counts start again"
            ))?;
        }
        let not_copied = self.not_copied();
        let items = not_copied.len().saturating_sub(SHOWN_MAX);
        let more = u64::try_from(items).unwrap_or(u64::MAX).saturating_add(self.skipped_more);
        for Skipped { whose, which, why } in not_copied.into_iter().take(SHOWN_MAX) {
            let which = if which.is_empty() { String::new() } else { format!(", {which}") };
            output.line(&format!("not copied: {whose}{which}: {}", escaped(&why)))?;
        }
        if more > 0 {
            output.line(&format!("not copied: {} more, see --json", thousands(more)))?;
        }
        output.line(&self.summary())
    }

    /// What was copied, on one line.
    fn summary(&self) -> String {
        let count = |items: usize, thing| counted(u64::try_from(items).unwrap_or(u64::MAX), thing);
        format!(
            "copied {}, {}, {}, {} ({})",
            count(self.tables.len(), "table"),
            count(self.queues.len(), "queue"),
            count(self.containers.len(), "container"),
            counted(self.blobs(), "blob"),
            output::bytes(self.bytes()),
        )
    }

    /// How many blobs and snapshots were written.
    fn blobs(&self) -> u64 {
        self.containers.iter().map(|container| container.progress.written.count).sum()
    }

    fn bytes(&self) -> u64 {
        self.containers.iter().map(|container| container.progress.bytes).sum()
    }

    /// The items that were not copied, and first the messages of each queue that were not received.
    fn not_copied(&self) -> Vec<Skipped> {
        let remaining = self.queues.iter().filter(|queue| queue.progress.remaining > 0);
        let remaining = remaining.map(|ComparedQueue { name, progress, .. }| {
            let (whose, which) = (queues::whose(name), counted(progress.remaining, "message"));
            Skipped::new(whose, which, self.why_remaining.to_owned())
        });
        remaining.chain(self.skipped.iter().cloned()).collect()
    }

    /// How many items and messages were not copied.
    fn not_copied_count(&self) -> u64 {
        let skipped = u64::try_from(self.skipped.len()).unwrap_or(u64::MAX);
        let remaining = self.queues.iter().map(|queue| queue.progress.remaining);
        remaining.fold(skipped.saturating_add(self.skipped_more), u64::saturating_add)
    }

    fn differing(&self) -> usize {
        let tables = self.tables.iter().filter(|table| !table.matches()).count();
        let queues = self.queues.iter().filter(|queue| !queue.matches()).count();
        tables + queues + self.containers.iter().filter(|it| !it.matches()).count()
    }

    /// Success where everything was copied and both sides match.
    pub(super) fn verdict(&self) -> Result<(), CliError> {
        match (self.differing(), self.not_copied_count()) {
            (0, 0) => Ok(()),
            (differing, not_copied) => Err(CliError::Rows(format!(
                "the target does not match the source: tables, queues and containers that differ: \
                 {differing}, items and messages that were not copied: {}",
                thousands(not_copied)
            ))),
        }
    }
}
