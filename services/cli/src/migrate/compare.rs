//! Both sides side by side: what was read there, what is here now, and what stayed behind.

use futures::{StreamExt as _, TryStreamExt as _};
use serde_json::json;

use super::{
    digest::Digest,
    notes::{Ledger, Left, QueueNotes, TableNotes},
    plan::Plan,
    queues::Queues,
    tables,
};
use crate::{
    client::Session,
    errors::CliError,
    output::{Output, thousands},
};

/// Most things left behind that a person is shown.
const SHOWN_MAX: usize = 20;

/// How the two sides compare.
#[derive(Debug)]
pub(super) struct Report {
    tables: Vec<ComparedTable>,
    queues: Vec<ComparedQueue>,
    left: Vec<Left>,
    left_more: u64,
}

#[derive(Debug)]
struct ComparedTable {
    name: String,
    notes: TableNotes,
    here: Digest,
}

impl ComparedTable {
    fn is_equal(&self) -> bool {
        self.notes.complete && self.notes.refused == 0 && self.here == self.notes.written
    }
}

#[derive(Debug)]
struct ComparedQueue {
    name: String,
    notes: QueueNotes,
    /// Messages that are here now.
    here: u64,
    /// Whether those that come first are among those that were sent first.
    begins_so: bool,
}

impl ComparedQueue {
    fn is_equal(&self) -> bool {
        let notes = &self.notes;
        let most = notes.before.saturating_add(notes.sent.count);
        // What was there already may be counted among what was there before.
        let repeated = if notes.before > 0 { notes.repeated } else { 0 };
        let counts = most.saturating_sub(repeated)..=most;
        let nothing_left = notes.refused == 0 && notes.stayed == 0;
        notes.complete && nothing_left && counts.contains(&self.here) && self.begins_so
    }
}

/// Reads back what was written and compares it with what was read.
pub(super) async fn compare(
    session: &Session,
    ledger: &Ledger,
    plan: &Plan,
    at_once: usize,
) -> Result<Report, CliError> {
    let notes = ledger.read(Clone::clone);
    let of_table = |name: &str| notes.tables.get(&tables::folded(name)).cloned();
    let found = plan.tables.iter().filter_map(|table| Some((&table.name, of_table(&table.name)?)));
    let compared = found.map(|(name, notes)| async move {
        let here = tables::read_back(session, name).await?;
        Ok::<_, CliError>(ComparedTable { name: name.clone(), notes, here })
    });
    let tables = futures::stream::iter(compared).buffered(at_once).try_collect().await?;
    let compared = notes.queues.iter().map(|(name, notes)| compare_queue(session, name, notes));
    let queues = futures::stream::iter(compared).buffered(at_once).try_collect().await?;
    Ok(Report { tables, queues, left: notes.left, left_more: notes.left_more })
}

async fn compare_queue(
    session: &Session,
    name: &str,
    notes: &QueueNotes,
) -> Result<ComparedQueue, CliError> {
    let mut queues = Queues::new(session);
    let here = queues.get(name).await?.map_or(0, |(_, messages)| messages);
    // Others come first where there were others before.
    let begins_so = notes.before > 0 || queues.begins_with(name, &notes.first).await?;
    Ok(ComparedQueue { name: name.to_owned(), notes: notes.clone(), here, begins_so })
}

impl Report {
    /// Prints both sides, and what was not copied.
    pub(super) fn print(&self, output: &mut Output) -> Result<(), CliError> {
        if output.is_json() {
            return self.print_json(output);
        }
        if !self.tables.is_empty() {
            let header = ["Table", "Read", "Written", "Refused", "Here", "Equal"];
            output.table(&header, &self.tables.iter().map(table_row).collect::<Vec<_>>())?;
        }
        if !self.queues.is_empty() {
            let header = ["Queue", "Read", "Sent", "Expired", "Refused", "Stayed", "Here", "Equal"];
            output.table(&header, &self.queues.iter().map(queue_row).collect::<Vec<_>>())?;
        }
        let received: u64 = self.queues.iter().map(|queue| queue.notes.received_before).sum();
        if received > 0 {
            let received = thousands(received);
            output.line(&format!(
                "{received} messages had been received before; here they count anew"
            ))?;
        }
        for Left { whose, which, why } in self.left.iter().take(SHOWN_MAX) {
            let which = if which.is_empty() { String::new() } else { format!(", {which}") };
            output.line(&format!("not copied: {whose}{which}: {}", why.escape_debug()))?;
        }
        let more = u64::try_from(self.left.len().saturating_sub(SHOWN_MAX)).unwrap_or(u64::MAX);
        match more.saturating_add(self.left_more) {
            0 => Ok(()),
            more => output.line(&format!("not copied: {} more, see --json", thousands(more))),
        }
    }

    fn print_json(&self, output: &mut Output) -> Result<(), CliError> {
        for table in &self.tables {
            let notes = &table.notes;
            let object = json!({
                "table": table.name, "read": notes.read, "written": notes.written.count,
                "refused": notes.refused, "here": table.here.count, "equal": table.is_equal(),
                "digest_written": notes.written.text(), "digest_here": table.here.text(),
            });
            output.line(&object.to_string())?;
        }
        for queue in &self.queues {
            let notes = &queue.notes;
            let object = json!({
                "queue": queue.name, "read": notes.read, "sent": notes.sent.count,
                "expired": notes.expired, "refused": notes.refused, "stayed": notes.stayed,
                "repeated": notes.repeated, "received_before": notes.received_before,
                "before": notes.before, "here": queue.here, "equal": queue.is_equal(),
                "digest_sent": notes.sent.text(),
            });
            output.line(&object.to_string())?;
        }
        for Left { whose, which, why } in &self.left {
            let object = json!({ "not_copied": whose, "which": which, "why": why });
            output.line(&object.to_string())?;
        }
        let summary = json!({
            "tables": self.tables.len(), "queues": self.queues.len(),
            "not_copied": self.left_count(), "equal": self.differing() == 0,
        });
        output.line(&summary.to_string())
    }

    fn left_count(&self) -> u64 {
        u64::try_from(self.left.len()).unwrap_or(u64::MAX).saturating_add(self.left_more)
    }

    fn differing(&self) -> usize {
        let tables = self.tables.iter().filter(|table| !table.is_equal()).count();
        tables.saturating_add(self.queues.iter().filter(|queue| !queue.is_equal()).count())
    }

    /// Success where everything was copied and both sides are equal.
    pub(super) fn verdict(&self) -> Result<(), CliError> {
        match (self.differing(), self.left_count()) {
            (0, 0) => Ok(()),
            (differing, left) => Err(CliError::Rows(format!(
                "not everything is here as it was there: {differing} tables and queues differ, {} \
                 things were not copied",
                thousands(left)
            ))),
        }
    }
}

fn yes(equal: bool) -> String {
    if equal { "yes" } else { "NO" }.to_owned()
}

fn table_row(table: &ComparedTable) -> Vec<String> {
    let notes = &table.notes;
    let counts = [notes.read, notes.written.count, notes.refused, table.here.count].map(thousands);
    let name = std::iter::once(table.name.clone());
    name.chain(counts).chain([yes(table.is_equal())]).collect()
}

fn queue_row(queue: &ComparedQueue) -> Vec<String> {
    let notes = &queue.notes;
    let counts =
        [notes.read, notes.sent.count, notes.expired, notes.refused, notes.stayed, queue.here];
    let name = std::iter::once(queue.name.clone());
    name.chain(counts.map(thousands)).chain([yes(queue.is_equal())]).collect()
}
