//! A plain model of the service: maps in memory, one command after the other.

use std::collections::{BTreeMap, HashSet};

use trestle_proto::table::v1::WriteMode;
use trestle_tests::utf16;

use super::{Command, Condition, Key, Outcome, Properties, Stored, Write};

/// What a write requires of the stored version.
#[derive(Debug, Clone, Copy)]
pub(super) enum Required {
    Any,
    Version(usize),
}

/// The versions that the writes of a command require and, when it succeeds, make.
#[derive(Debug, Default)]
pub(super) struct Versions {
    pub(super) required: Vec<Option<Required>>,
    pub(super) made: Vec<usize>,
}

#[derive(Debug, Clone)]
struct Row {
    version: usize,
    partition: String,
    row: String,
    properties: BTreeMap<Vec<u16>, (String, i32)>,
}

type Rows = BTreeMap<(Vec<u16>, Vec<u16>), Row>;

/// The whole service.
#[derive(Debug, Default)]
pub(super) struct Plain {
    /// By lower-cased name: the name as created, and its rows.
    tables: BTreeMap<String, (String, Rows)>,
    /// Writes so far, a batch being one; each makes the version of its number.
    writes: usize,
}

fn rejected(reason: &str, index: Option<usize>) -> Outcome {
    Outcome::Rejected { reason: reason.to_owned(), index }
}

fn ordered((partition, row): Key) -> (Vec<u16>, Vec<u16>) {
    (utf16(partition), utf16(row))
}

impl Plain {
    pub(super) fn execute(&mut self, command: &Command) -> (Outcome, Versions) {
        let outcome = match command {
            Command::Create(name) => self.create(name),
            Command::Drop(name) => match self.tables.remove(&name.to_lowercase()) {
                Some(_) => Outcome::Done,
                None => rejected("RESOURCE_NOT_FOUND", None),
            },
            Command::List => {
                Outcome::Names(self.tables.values().map(|(name, _)| name.clone()).collect())
            }
            Command::Get(table, key) => match self.rows(table) {
                None => rejected("TABLE_NOT_FOUND", None),
                Some(rows) => rows.get(&ordered(*key)).map_or_else(
                    || rejected("RESOURCE_NOT_FOUND", None),
                    |row| Outcome::Entities(vec![row.plainly()]),
                ),
            },
            Command::Query(table, partition, _) => match self.rows(table) {
                None => rejected("TABLE_NOT_FOUND", None),
                Some(rows) => {
                    let expected = |row: &&Row| partition.is_none_or(|p| row.partition == p);
                    Outcome::Entities(rows.values().filter(expected).map(Row::plainly).collect())
                }
            },
            Command::Write(table, write) => {
                let writes = std::slice::from_ref(write);
                let (outcome, versions) = self.write(table, writes);
                let outcome = match outcome {
                    Outcome::Rejected { reason, .. } => rejected(&reason, None),
                    other => other,
                };
                return (outcome, versions);
            }
            Command::Batch(table, writes) => return self.write(table, writes),
        };
        (outcome, Versions::default())
    }

    fn rows(&self, table: &str) -> Option<&Rows> {
        self.tables.get(&table.to_lowercase()).map(|(_, rows)| rows)
    }

    fn create(&mut self, name: &str) -> Outcome {
        let folded = name.to_lowercase();
        if self.tables.contains_key(&folded) {
            return rejected("TABLE_ALREADY_EXISTS", None);
        }
        self.tables.insert(folded, (name.to_owned(), Rows::new()));
        Outcome::Done
    }

    fn write(&mut self, table: &str, writes: &[Write]) -> (Outcome, Versions) {
        let mut rows = self.rows(table).cloned();
        let none = Rows::new();
        let required = |write: &Write| {
            let stored = rows.as_ref().unwrap_or(&none).get(&ordered(write.key()));
            self.required(write, stored)
        };
        let mut versions =
            Versions { required: writes.iter().map(required).collect(), made: Vec::new() };
        let Some(rows) = &mut rows else {
            return (rejected("TABLE_NOT_FOUND", Some(0)), versions);
        };
        if let Some(error) = misfit(writes) {
            return (error, versions);
        }
        // The entities of a batch are written at one time, which is their version.
        let number = self.writes + 1;
        for (index, write) in writes.iter().enumerate() {
            if let Err(reason) = apply(rows, write, versions.required[index], number) {
                return (rejected(reason, Some(index)), versions);
            }
            versions.made.push(number);
        }
        self.writes = number;
        if let Some((_, stored)) = self.tables.get_mut(&table.to_lowercase()) {
            stored.clone_from(rows);
        }
        (Outcome::Done, versions)
    }

    fn required(&self, write: &Write, stored: Option<&Row>) -> Option<Required> {
        let (Write::Update(_, _, _, condition) | Write::Delete(_, condition)) = write else {
            return None;
        };
        match condition {
            Condition::None => None,
            Condition::Any => Some(Required::Any),
            Condition::Newest => Some(Required::Version(stored.map_or(0, |row| row.version))),
            Condition::Earlier(number) => Some(Required::Version(number % (self.writes + 1))),
        }
    }
}

impl Row {
    fn plainly(&self) -> Stored {
        let properties = self.properties.values().cloned().collect();
        (self.partition.clone(), self.row.clone(), properties)
    }
}

/// The error of a batch as a whole.
fn misfit(writes: &[Write]) -> Option<Outcome> {
    let mut names = HashSet::new();
    for (index, write) in writes.iter().enumerate() {
        let key = write.key();
        if key.0 != writes[0].key().0 {
            let reason = "COMMANDS_IN_BATCH_ACT_ON_DIFFERENT_PARTITIONS";
            return Some(rejected(reason, Some(index)));
        }
        if !names.insert(key.1) {
            return Some(rejected("INVALID_DUPLICATE_ROW", Some(index)));
        }
    }
    None
}

fn apply(
    rows: &mut Rows,
    write: &Write,
    required: Option<Required>,
    version: usize,
) -> Result<(), &'static str> {
    let position = ordered(write.key());
    let stored = rows.get(&position);
    match (write, stored) {
        (Write::Insert(..), Some(_)) => return Err("ENTITY_ALREADY_EXISTS"),
        (Write::Update(..) | Write::Delete(..), None) => return Err("RESOURCE_NOT_FOUND"),
        _ => {}
    }
    if let (Some(Required::Version(number)), Some(row)) = (required, stored)
        && row.version != number
    {
        return Err("UPDATE_CONDITION_NOT_SATISFIED");
    }
    let (key, properties, mode) = match write {
        Write::Delete(..) => {
            rows.remove(&position);
            return Ok(());
        }
        Write::Insert(key, properties) => (key, properties, WriteMode::Replace),
        Write::Update(key, properties, mode, _) | Write::Upsert(key, properties, mode) => {
            (key, properties, *mode)
        }
    };
    let before = match (mode, stored) {
        (WriteMode::Merge, Some(row)) => row.properties.clone(),
        _ => BTreeMap::new(),
    };
    let row = Row {
        version,
        partition: key.0.to_owned(),
        row: key.1.to_owned(),
        properties: merged(before, properties),
    };
    rows.insert(position, row);
    Ok(())
}

fn merged(
    mut properties: BTreeMap<Vec<u16>, (String, i32)>,
    update: &Properties,
) -> BTreeMap<Vec<u16>, (String, i32)> {
    for (name, number) in update {
        properties.insert(utf16(name), ((*name).to_owned(), *number));
    }
    properties
}
