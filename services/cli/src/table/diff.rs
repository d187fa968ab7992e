//! What differs between a table at two times, on two servers that have it as it was at each.

use std::{cmp::Ordering, collections::VecDeque};

use prost::Message;
use serde_json::{Value, json};
use tonic::Code;
use trestle_command::{
    client::Session,
    errors::CliError,
    output::{Output, counted},
    retry::repeated,
    scan::{TableScan, decoded},
};
use trestle_proto::table::v1::{Entity, GetTableRequest, StreamEntitiesRequest};

/// The columns of a difference.
const COLUMNS: [&str; 5] = ["change", "table", "partition_key", "row_key", "properties"];

/// Prints each entity of a table that was added, changed or removed between what `then` has and what `now` has, in key
/// order, with the properties of a changed one that differ. An entity that was written again as it was is none. A table
/// that one side has not has no entities there. Memory does not grow with the table.
///
/// # Errors
/// A table that neither side has, errors of a server, and of the output.
pub async fn diff_table(
    (then, now): (&Session, &Session),
    table: &str,
    output: &mut Output,
) -> Result<(), CliError> {
    let (mut before, mut after) = tokio::try_join!(side(then, table), side(now, table))?;
    for (side, when, other) in [(&before, "then", &after), (&after, "now", &before)] {
        if side.scan.is_none() {
            let rule = match other.scan {
                Some(_) => format!("the table does not exist {when}: table=`{table}`"),
                None => return Err(CliError::Usage(format!("no such table: table=`{table}`"))),
            };
            output.note(&rule);
        }
    }
    let mut counts = DiffCounts::default();
    output.records(&[], &COLUMNS)?;
    let differences = differences(&mut before, &mut after, |difference| {
        counts.add(difference);
        output.records(&[difference.record(table)], &COLUMNS)
    });
    differences.await?;
    if !output.is_json() {
        output.note(&counts.text(table));
    }
    Ok(())
}

/// Calls `found` for each entity that differs, in key order.
async fn differences(
    before: &mut DiffSide,
    after: &mut DiffSide,
    mut found: impl FnMut(&Difference<'_>) -> Result<(), CliError>,
) -> Result<(), CliError> {
    loop {
        let (old, new) = (before.peek().await?, after.peek().await?);
        let Some(order) = first(old, new) else { return Ok(()) };
        if let Some(difference) = difference(old, new, order) {
            found(&difference)?;
        }
        if order.is_le() {
            before.advance();
        }
        if order.is_ge() {
            after.advance();
        }
    }
}

/// A table on one server.
struct DiffSide {
    /// The rest of it; none where the server has no such table.
    scan: Option<TableScan>,
    read: VecDeque<Entity>,
}

async fn side(session: &Session, table: &str) -> Result<DiffSide, CliError> {
    let request = GetTableRequest { table: table.to_owned() };
    let found = repeated(async || session.table().get_table(request.clone()).await).await;
    let scan = match found {
        Ok(_) => {
            let request = StreamEntitiesRequest {
                table: table.to_owned(),
                ..StreamEntitiesRequest::default()
            };
            Some(TableScan::new(session, request))
        }
        Err(status) if status.code() == Code::NotFound => None,
        Err(status) => return Err(status.into()),
    };
    Ok(DiffSide { scan, read: VecDeque::new() })
}

impl DiffSide {
    /// The next entity.
    async fn peek(&mut self) -> Result<Option<&Entity>, CliError> {
        while self.read.is_empty() {
            let Some(scan) = &mut self.scan else { break };
            let Some(message) = scan.next().await? else { break };
            self.read.extend(decoded(&message)?);
        }
        Ok(self.read.front())
    }

    fn advance(&mut self) {
        self.read.pop_front();
    }
}

/// Which of two next entities comes first; none where both sides have ended.
fn first(old: Option<&Entity>, new: Option<&Entity>) -> Option<Ordering> {
    // The order of the contract is that of UTF-16 code units.
    let compared = |a: &str, b: &str| a.encode_utf16().cmp(b.encode_utf16());
    match (old, new) {
        (None, None) => None,
        (Some(_), None) => Some(Ordering::Less),
        (None, Some(_)) => Some(Ordering::Greater),
        (Some(old), Some(new)) => Some(
            compared(&old.partition_key, &new.partition_key)
                .then_with(|| compared(&old.row_key, &new.row_key)),
        ),
    }
}

/// An entity that differs.
#[derive(Debug, PartialEq)]
struct Difference<'a> {
    change: DiffKind,
    entity: &'a Entity,
    /// The properties of a changed entity that differ, in the order of their names.
    properties: Vec<&'a str>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum DiffKind {
    Added,
    Changed,
    Removed,
}

impl DiffKind {
    fn name(self) -> &'static str {
        match self {
            Self::Added => "added",
            Self::Changed => "changed",
            Self::Removed => "removed",
        }
    }
}

/// How the first of two next entities differs, if it does.
fn difference<'a>(
    old: Option<&'a Entity>,
    new: Option<&'a Entity>,
    order: Ordering,
) -> Option<Difference<'a>> {
    let whole = |change, entity| Difference { change, entity, properties: Vec::new() };
    match order {
        Ordering::Less => Some(whole(DiffKind::Removed, old?)),
        Ordering::Greater => Some(whole(DiffKind::Added, new?)),
        Ordering::Equal => {
            let properties = changed_properties(old?, new?);
            let is_changed = !properties.is_empty();
            let change = DiffKind::Changed;
            is_changed.then_some(Difference { change, entity: new?, properties })
        }
    }
}

/// The names of properties that two states of an entity have with other values, or one of them alone.
fn changed_properties<'a>(old: &'a Entity, new: &'a Entity) -> Vec<&'a str> {
    // As bytes, by which a NaN is itself and zero has a sign.
    let value_of = |entity: &Entity, name: &str| -> Option<Vec<u8>> {
        let found = entity.properties.iter().find(|property| property.name == name);
        found.and_then(|property| property.value.as_ref()).map(Message::encode_to_vec)
    };
    let names = old.properties.iter().chain(&new.properties);
    let mut names: Vec<_> = names.map(|property| property.name.as_str()).collect();
    names.sort_unstable();
    names.dedup();
    names.retain(|name| value_of(old, name) != value_of(new, name));
    names
}

impl Difference<'_> {
    fn record(&self, table: &str) -> Value {
        let Entity { partition_key, row_key, .. } = self.entity;
        json!({
            "change": self.change.name(), "table": table, "partition_key": partition_key,
            "row_key": row_key, "properties": self.properties,
        })
    }
}

/// How many entities differ.
#[derive(Debug, Default)]
struct DiffCounts {
    added: u64,
    changed: u64,
    removed: u64,
}

impl DiffCounts {
    fn add(&mut self, difference: &Difference<'_>) {
        let count = match difference.change {
            DiffKind::Added => &mut self.added,
            DiffKind::Changed => &mut self.changed,
            DiffKind::Removed => &mut self.removed,
        };
        *count += 1;
    }

    fn text(&self, table: &str) -> String {
        let Self { added, changed, removed } = self;
        let total = counted(added + changed + removed, "entity");
        format!("{table}: {total} differ: {added} added, {changed} changed, {removed} removed")
    }
}

#[cfg(test)]
mod tests;
