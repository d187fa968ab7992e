//! The contents of a server, read through its API.

use std::collections::BTreeMap;

use tonic::transport::Channel;
use trestle_proto::table::v1::{Entity, ListTablesRequest, value::Kind};
use trestle_tests::{Table, value_of};

use crate::write_history::{Item, Stamp, State};

/// The table of every row; others are created and deleted.
pub(crate) const MAIN: &str = "main";

/// The contents of a server.
#[derive(Debug)]
pub(crate) struct Contents {
    rows: BTreeMap<(String, String), (i64, Stamp)>,
    tables: BTreeMap<String, Vec<String>>,
}

impl Contents {
    /// Reads everything.
    pub(crate) async fn take(channel: &Channel) -> Self {
        let main = Table::over(channel, MAIN);
        let listed = main.client().list_tables(ListTablesRequest::default()).await;
        let mut tables = BTreeMap::new();
        for table in listed.expect("tables are listed").into_inner().tables {
            if table.name != MAIN {
                let rows = Table::over(channel, &table.name).rows("").await;
                tables.insert(table.name, rows.expect("a listed table is read"));
            }
        }
        let rows = main.query("").await.expect("the table is read").into_iter().map(row);
        let rows = rows.collect();
        Self { rows, tables }
    }

    /// The state of an item, and the version of a row.
    ///
    /// # Panics
    /// If it is stored in part.
    pub(crate) fn of(&self, item: &Item) -> (State, Option<Stamp>) {
        let state = |value: Option<&i64>| value.map_or(State::Absent, |value| State::Value(*value));
        match item {
            Item::Row(partition, row) => {
                let found = self.rows.get(&(partition.clone(), row.clone()));
                (state(found.map(|(value, _)| value)), found.map(|(_, stamp)| stamp.clone()))
            }
            Item::Group(partition) => {
                let values = self.values(partition);
                let is_whole = values.is_empty() || values.len() == crate::writer::GROUP;
                let is_one = values.iter().all(|(_, value)| *value == values[0].1);
                assert!(is_whole && is_one, "half a batch: {partition}: {values:?}");
                (state(values.first().map(|(_, value)| value)), None)
            }
            Item::Token(partition) => {
                let values = self.values(partition);
                assert!(values.len() < 2, "half a batch: {partition}: {values:?}");
                let is_row = values.iter().all(|(row, value)| row.parse() == Ok(*value));
                assert!(is_row, "{partition}: {values:?}");
                (state(values.first().map(|(_, value)| value)), None)
            }
            Item::Table(name) => (state(self.tables.get(name).map(|_| &0)), None),
            Item::Inside(name) => {
                let rows = self.tables.get(name).map(Vec::as_slice).unwrap_or_default();
                assert!(rows.len() < 2, "rows of a deleted table are back: {name}: {rows:?}");
                let generation = rows.first().map(|row| row.parse().expect("a number"));
                (state(generation.as_ref()), None)
            }
        }
    }

    /// Checks that nothing exists that was never written.
    pub(crate) fn has_only(&self, allowed: &[&Item]) {
        for (partition, row) in self.rows.keys() {
            let is_of = |item: &&&Item| match item {
                Item::Row(p, r) => p == partition && r == row,
                Item::Group(p) | Item::Token(p) => p == partition,
                Item::Table(_) | Item::Inside(_) => false,
            };
            assert!(allowed.iter().any(|item| is_of(&item)), "never written: {partition}/{row}");
        }
        for name in self.tables.keys() {
            let item = Item::Table(name.clone());
            assert!(allowed.contains(&&item), "never created: {name}");
        }
    }

    fn values(&self, partition: &str) -> Vec<(&str, i64)> {
        let rows = self.rows.iter().filter(|((own, _), _)| own == partition);
        rows.map(|((_, row), (value, _))| (row.as_str(), *value)).collect()
    }
}

fn row(entity: Entity) -> ((String, String), (i64, Stamp)) {
    let value = match value_of(&entity, "n") {
        Some(Kind::Int64Value(value)) => *value,
        other => panic!("a row without its value: {other:?}"),
    };
    let time = entity.timestamp.expect("a row has a time");
    let stamp = Stamp { time: (time.seconds, time.nanos), etag: entity.etag };
    ((entity.partition_key, entity.row_key), (value, stamp))
}

#[cfg(test)]
mod tests;
