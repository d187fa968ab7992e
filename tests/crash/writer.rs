//! Load: writers that keep a history of their writes.
//!
//! Each writes its own items, one write at a time, with values that only grow; so the contents
//! after a crash can be compared with the history exactly.

use std::sync::Arc;

use futures::future::join_all;
use tonic::{Code, transport::Channel};
use trestle_proto::table::v1::{
    self as proto, CreateTableRequest, DeleteTableRequest, Entity, WriteMode, value::Kind,
};
use trestle_tests::{
    CallError, Table, Version, delete_op, entity, insert_op, prop, string, upsert_op,
};

use crate::{
    contents::{Contents, MAIN},
    progress::Progress,
    write_history::{Item, Stamp, State, WriteHistory},
};

/// Rows that a batch of [`Job::Batch`] writes.
pub(crate) const GROUP: usize = 5;

/// The repeated operation of a writer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Job {
    /// Inserts rows.
    Insert,
    /// Upserts few rows with growing values.
    Upsert,
    /// Upserts the rows of a group in one batch.
    Batch,
    /// Inserts rows and deletes most of them.
    Delete,
    /// Moves a row from key to key: a delete and an insert in one batch.
    Move,
    /// Creates tables, writes into them, and deletes them.
    Tables,
}

const JOBS: [Job; 9] = [
    Job::Insert,
    Job::Insert,
    Job::Upsert,
    Job::Upsert,
    Job::Batch,
    Job::Batch,
    Job::Delete,
    Job::Move,
    Job::Tables,
];

/// A writer, across restarts of the server.
#[derive(Debug)]
pub(crate) struct Writer {
    job: Job,
    name: String,
    next: i64,
    history: WriteHistory,
    /// Writes acknowledged so far.
    pub(crate) acknowledged: Arc<Progress>,
    /// What ended its last run.
    pub(crate) error: Option<CallError>,
}

/// Writers of every kind.
pub(crate) fn crew() -> Vec<Writer> {
    let writer = |(index, job): (usize, &Job)| Writer {
        job: *job,
        name: format!("w{index}"),
        next: 0,
        history: WriteHistory::default(),
        acknowledged: Arc::default(),
        error: None,
    };
    JOBS.iter().enumerate().map(writer).collect()
}

/// Runs the writers until each has had a failed write.
pub(crate) async fn work(crew: Vec<Writer>, channel: &Channel) -> Vec<Writer> {
    join_all(crew.into_iter().map(|writer| writer.run(channel.clone()))).await
}

/// Compares the contents of a server with the acknowledged writes.
pub(crate) fn check(crew: &[Writer], contents: &Contents) {
    for writer in crew {
        writer.history.check(contents);
    }
    let written: Vec<&Item> = crew.iter().flat_map(|writer| writer.history.items()).collect();
    contents.has_only(&written);
}

/// The same, and replaces the history by the stored contents.
pub(crate) fn resolve(crew: &mut [Writer], contents: &Contents) {
    check(crew, contents);
    for writer in crew {
        writer.history.resolve(contents);
    }
}

type Outcome = Result<Option<Stamp>, CallError>;

impl Writer {
    /// Writes until a write fails.
    async fn run(mut self, channel: Channel) -> Self {
        self.error = None;
        let main = Table::over(&channel, MAIN);
        while self.error.is_none() {
            self.next += 1;
            match self.job {
                Job::Insert => self.insert(&main).await,
                Job::Upsert => self.upsert(&main).await,
                Job::Batch => self.batch(&main).await,
                Job::Delete => self.delete(&main).await,
                Job::Move => self.shift(&main).await,
                Job::Tables => self.tables(&channel).await,
            }
        }
        self
    }

    async fn insert(&mut self, main: &Table) {
        let (row, value) = (format!("{:08}", self.next), State::Value(self.next));
        let item = Item::Row(self.name.clone(), row.clone());
        let call = main.insert(self.row(&row));
        self.write(&[(item, value)], async { call.await.map(stamp) }).await;
    }

    async fn upsert(&mut self, main: &Table) {
        let row = (self.next % 4).to_string();
        let item = Item::Row(self.name.clone(), row.clone());
        let mode = match self.next % 3 {
            0 => WriteMode::Replace,
            _ => WriteMode::Merge,
        };
        let call = main.upsert(self.row(&row), mode);
        let value = State::Value(self.next);
        self.write(&[(item, value)], async { call.await.map(stamp) }).await;
    }

    async fn batch(&mut self, main: &Table) {
        let rows = (0..GROUP).map(|row| self.row(&row.to_string()));
        let operations = rows.map(|row| upsert_op(row, WriteMode::Replace)).collect();
        let item = Item::Group(self.name.clone());
        let call = main.batch(operations);
        let value = State::Value(self.next);
        self.write(&[(item, value)], async { call.await.map(|_| None) }).await;
    }

    async fn delete(&mut self, main: &Table) {
        let row = format!("{:08}", self.next);
        let item = Item::Row(self.name.clone(), row.clone());
        let call = main.insert(self.row(&row));
        let value = State::Value(self.next);
        self.write(&[(item.clone(), value)], async { call.await.map(stamp) }).await;
        if self.error.is_none() && self.next % 5 != 0 {
            let name = self.name.clone();
            let call = main.delete(&name, &row, None);
            self.write(&[(item, State::Absent)], async { call.await.map(|()| None) }).await;
        }
    }

    async fn shift(&mut self, main: &Table) {
        let item = Item::Token(self.name.clone());
        let from = match self.history.state(&item) {
            State::Absent => None,
            State::Value(value) => Some(delete_op(&self.name, &value.to_string(), None)),
        };
        let to = insert_op(self.row(&self.next.to_string()));
        let call = main.batch(from.into_iter().chain([to]).collect());
        let value = State::Value(self.next);
        self.write(&[(item, value)], async { call.await.map(|_| None) }).await;
    }

    async fn tables(&mut self, channel: &Channel) {
        let name = format!("{}x{}", self.name, self.next % 3);
        let (item, inside) = (Item::Table(name.clone()), Item::Inside(name.clone()));
        let table = Table::over(channel, &name);
        if self.history.state(&item) == State::Absent {
            let call = create(&table);
            self.write(&[(item, State::Value(0))], async { call.await.map(|()| None) }).await;
            let row = entity("p", &self.next.to_string(), []);
            if self.error.is_none() {
                let call = table.insert(row);
                let value = State::Value(self.next);
                self.write(&[(inside, value)], async { call.await.map(|_| None) }).await;
            }
        } else {
            let call = drop_table(&table);
            let states = [(item, State::Absent), (inside, State::Absent)];
            self.write(&states, async { call.await.map(|()| None) }).await;
        }
    }

    /// A row with the next value.
    fn row(&self, row: &str) -> Entity {
        let filling = "x".repeat(100 + usize::try_from(self.next % 400).unwrap());
        let value = prop("n", Kind::Int64Value(self.next));
        entity(&self.name, row, [value, string("filling", &filling)])
    }

    /// Makes one call and records it.
    async fn write(&mut self, states: &[(Item, State)], call: impl Future<Output = Outcome>) {
        for (item, state) in states {
            self.history.attempt(item, *state);
        }
        match call.await {
            Ok(stamp) => {
                self.acknowledged.step();
                for (item, state) in states {
                    self.history.acknowledge(item, *state, stamp.clone());
                }
            }
            Err(error) => {
                // With a reason of the server nothing was written; a client without an outcome has
                // no reason.
                if error.code == Code::Unavailable && !error.reason.is_empty() {
                    for (item, _) in states {
                        self.history.retract(item);
                    }
                }
                self.error = Some(error);
            }
        }
    }
}

fn stamp(version: Version) -> Option<Stamp> {
    let time = (version.timestamp.seconds, version.timestamp.nanos);
    let etag = version.etag;
    Some(Stamp { time, etag })
}

/// Creates a table.
pub(crate) async fn create(table: &Table) -> Result<(), CallError> {
    let request = CreateTableRequest {
        table: Some(proto::Table { name: table.name(), ..Default::default() }),
    };
    let response = table.client().create_table(request).await;
    response.map(drop).map_err(|status| CallError::of(&status))
}

async fn drop_table(table: &Table) -> Result<(), CallError> {
    let request = DeleteTableRequest { table: table.name() };
    let response = table.client().delete_table(request).await;
    response.map(drop).map_err(|status| CallError::of(&status))
}
