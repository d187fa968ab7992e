//! Random commands have the same results on every engine and on a plain model of the service.
//!
//! In process only. Times and etags differ from run to run, so a version is named by the number of
//! the write that made it, and each run translates the numbers to its own etags.

mod plain;

use std::{collections::HashMap, sync::Arc};

use proptest::{
    prelude::*,
    sample::select,
    test_runner::{Config, TestRunner},
};
use trestle_kv::{Engine, MemoryEngine};
use trestle_kv_fjall::{FjallEngine, FjallOptions};
use trestle_proto::table::v1::{QueryEntitiesRequest, WriteMode, batch_operation::Operation};
use trestle_tests::{
    CallError, Table, World, delete_op, entity_of, insert_op, int, update_op, upsert_op,
};

use self::plain::Plain;

/// What a write requires of the version of the entity.
#[derive(Debug, Clone, Copy)]
enum Condition {
    None,
    Any,
    /// The newest version of the entity, if any.
    Newest,
    /// A version of an earlier write, by its number modulo their count.
    Earlier(usize),
}

/// The key of an entity: indexes in [`TEXTS`].
type Key = (&'static str, &'static str);
type Properties = Vec<(&'static str, i32)>;

#[derive(Debug, Clone)]
enum Write {
    Insert(Key, Properties),
    Update(Key, Properties, WriteMode, Condition),
    Upsert(Key, Properties, WriteMode),
    Delete(Key, Condition),
}

#[derive(Debug, Clone)]
enum Command {
    Create(&'static str),
    Drop(&'static str),
    Write(&'static str, Write),
    Batch(&'static str, Vec<Write>),
    Get(&'static str, Key),
    Query(&'static str, Option<&'static str>, i32),
    List,
}

/// The outcome of a command, without what differs between runs.
#[derive(Debug, Clone, PartialEq)]
enum Outcome {
    Done,
    Rejected { reason: String, index: Option<usize> },
    Entities(Vec<Stored>),
    Names(Vec<String>),
}

/// Both keys and the properties of an entity.
type Stored = (String, String, Vec<(String, i32)>);

const TEXTS: [&str; 4] = ["", "a", "\u{E000}", "\u{10000}"];
const TABLES: [&str; 3] = ["one", "ONE", "two"];

impl Write {
    fn key(&self) -> Key {
        match self {
            Self::Insert(key, _)
            | Self::Update(key, ..)
            | Self::Upsert(key, ..)
            | Self::Delete(key, _) => *key,
        }
    }

    fn in_partition(mut self, partition: &'static str) -> Self {
        match &mut self {
            Self::Insert(key, _)
            | Self::Update(key, ..)
            | Self::Upsert(key, ..)
            | Self::Delete(key, _) => key.0 = partition,
        }
        self
    }
}

fn write() -> impl Strategy<Value = Write> {
    let key = || (select(&TEXTS[..]), select(&TEXTS[..]));
    let properties = || {
        let one = (select(&["a", "b", "c"][..]), 0..9_i32);
        prop::collection::btree_map(one.0, one.1, 0..3).prop_map(|map| map.into_iter().collect())
    };
    let mode = || select(&[WriteMode::Merge, WriteMode::Replace][..]);
    let condition = prop_oneof![
        Just(Condition::None),
        Just(Condition::Any),
        Just(Condition::Newest),
        any::<usize>().prop_map(Condition::Earlier),
    ];
    prop_oneof![
        4 => (key(), properties()).prop_map(|(k, p)| Write::Insert(k, p)),
        4 => (key(), properties(), mode(), condition.clone())
            .prop_map(|(k, p, m, c)| Write::Update(k, p, m, c)),
        3 => (key(), properties(), mode()).prop_map(|(k, p, m)| Write::Upsert(k, p, m)),
        2 => (key(), condition).prop_map(|(k, c)| Write::Delete(k, c)),
    ]
}

fn command() -> impl Strategy<Value = Command> {
    let table = || select(&TABLES[..]);
    let text = || select(&TEXTS[..]);
    let writes = prop::collection::vec(write(), 1..4);
    prop_oneof![
        2 => table().prop_map(Command::Create),
        1 => table().prop_map(Command::Drop),
        10 => (table(), write()).prop_map(|(table, write)| Command::Write(table, write)),
        5 => (table(), text(), writes).prop_map(|(table, partition, writes)| {
            // Mostly of one partition: the last operation keeps its own.
            let last = writes.len();
            let moved = writes.into_iter().enumerate().map(|(position, write)| {
                if position == 2 && last == 3 { write } else { write.in_partition(partition) }
            });
            Command::Batch(table, moved.collect())
        }),
        3 => (table(), text(), text()).prop_map(|(t, p, r)| Command::Get(t, (p, r))),
        3 => (table(), prop::option::of(text()), 1..5_i32)
            .prop_map(|(table, partition, size)| Command::Query(table, partition, size)),
        1 => Just(Command::List),
    ]
}

/// A real service, and the etags that it assigned.
struct Real {
    world: World,
    etags: HashMap<usize, String>,
}

impl Real {
    async fn new(engine: Arc<dyn Engine>) -> Self {
        Self { world: World::on_engine(engine).await, etags: HashMap::new() }
    }

    /// Executes a command, whose writes require and make the versions that the model has.
    async fn execute(&mut self, command: &Command, versions: &plain::Versions) -> Outcome {
        match command {
            Command::Create(name) => done(self.world.create(name).await.map(drop)),
            Command::Drop(name) => done(self.world.drop_table(name).await),
            Command::List => match self.world.list("", None, "").await {
                Ok((names, _)) => Outcome::Names(names),
                Err(error) => rejected(error),
            },
            Command::Get(table, (partition, row)) => {
                let read = self.world.existing_table(table).get(partition, row).await;
                read.map_or_else(rejected, |entity| Outcome::Entities(vec![plainly(entity)]))
            }
            Command::Query(table, partition, size) => {
                query(&self.world.existing_table(table), *partition, *size).await
            }
            Command::Write(table, write) => {
                let etag = self.etag(versions.required.first().copied().flatten());
                let table = self.world.existing_table(table);
                match one(&table, write, etag.as_deref()).await {
                    Ok(etag) => self.made(versions, vec![etag]),
                    Err(error) => rejected(error),
                }
            }
            Command::Batch(table, writes) => {
                let required = versions.required.iter().map(|version| self.etag(*version));
                let operations = writes.iter().zip(required.collect::<Vec<_>>());
                let operations = operations.map(|(write, etag)| operation(write, etag.as_deref()));
                let table = self.world.existing_table(table);
                match table.batch(operations.collect()).await {
                    Ok(etags) => self.made(versions, etags),
                    Err(error) => rejected(error),
                }
            }
        }
    }

    fn etag(&self, version: Option<plain::Required>) -> Option<String> {
        match version? {
            plain::Required::Any => Some("*".to_owned()),
            plain::Required::Version(number) => {
                let unknown = || "W/\"datetime'2001-01-01T00%3A00%3A00Z'\"".to_owned();
                Some(self.etags.get(&number).cloned().unwrap_or_else(unknown))
            }
        }
    }

    fn made(&mut self, versions: &plain::Versions, etags: Vec<String>) -> Outcome {
        // A deletion makes no version.
        let made = versions.made.iter().zip(etags);
        let made = made.filter(|(_, etag)| !etag.is_empty());
        self.etags.extend(made.map(|(number, etag)| (*number, etag)));
        Outcome::Done
    }
}

fn done(outcome: Result<(), CallError>) -> Outcome {
    outcome.map_or_else(rejected, |()| Outcome::Done)
}

fn rejected(error: CallError) -> Outcome {
    Outcome::Rejected { reason: error.reason, index: error.index }
}

fn operation(write: &Write, etag: Option<&str>) -> Operation {
    let entity = |key: &Key, properties: &Properties| {
        let properties = properties.iter().map(|(name, n)| int(name, *n));
        entity_of(key.0, key.1, properties.collect())
    };
    match write {
        Write::Insert(key, properties) => insert_op(entity(key, properties)),
        Write::Update(key, properties, mode, _) => update_op(entity(key, properties), *mode, etag),
        Write::Upsert(key, properties, mode) => upsert_op(entity(key, properties), *mode),
        Write::Delete((partition, row), _) => delete_op(partition, row, etag),
    }
}

async fn one(table: &Table, write: &Write, etag: Option<&str>) -> Result<String, CallError> {
    let version = match operation(write, etag) {
        Operation::Insert(insert) => table.insert(insert.entity.unwrap()).await,
        Operation::Update(update) => {
            let mode = update.mode();
            table.update(update.entity.unwrap(), mode, etag).await
        }
        Operation::Upsert(upsert) => {
            let mode = upsert.mode();
            table.upsert(upsert.entity.unwrap(), mode).await
        }
        Operation::Delete(delete) => {
            let deleted = table.delete(&delete.partition_key, &delete.row_key, etag).await;
            return deleted.map(|()| String::new());
        }
    };
    Ok(version?.etag)
}

async fn query(table: &Table, partition: Option<&str>, size: i32) -> Outcome {
    let partition = partition.map(|partition| format!("PartitionKey eq '{partition}'"));
    let filter = partition.unwrap_or_default();
    let (mut all, mut page_token) = (Vec::new(), String::new());
    loop {
        let request = QueryEntitiesRequest {
            filter: filter.clone(),
            page_size: Some(size),
            page_token,
            ..Default::default()
        };
        let (entities, response) = match table.page(request).await {
            Ok(page) => page,
            Err(error) => return rejected(error),
        };
        all.extend(entities.into_iter().map(plainly));
        page_token = response.next_page_token;
        if page_token.is_empty() {
            return Outcome::Entities(all);
        }
    }
}

fn plainly(entity: trestle_proto::table::v1::Entity) -> Stored {
    use trestle_proto::table::v1::value::Kind;
    let number = |property: trestle_proto::table::v1::Property| match property
        .value
        .and_then(|value| value.kind)
    {
        Some(Kind::Int32Value(number)) => (property.name, number),
        other => panic!("{} is {other:?}", property.name),
    };
    let properties = entity.properties.into_iter().map(number).collect();
    (entity.partition_key, entity.row_key, properties)
}

async fn run(commands: Vec<Command>) {
    let data = tempfile::tempdir().unwrap();
    let options = FjallOptions::new(data.path(), trestle::storage::keyspaces());
    let mut on_disk = Real::new(Arc::new(FjallEngine::open(options).unwrap())).await;
    let mut in_memory = Real::new(Arc::new(MemoryEngine::new(trestle::storage::keyspaces()))).await;
    let mut plain = Plain::default();
    for (position, command) in commands.iter().enumerate() {
        let (expected, versions) = plain.execute(command);
        let memory = in_memory.execute(command, &versions).await;
        assert_eq!(memory, expected, "memory engine, {position}: {command:?} of {commands:?}");
        let disk = on_disk.execute(command, &versions).await;
        assert_eq!(disk, expected, "fjall engine, {position}: {command:?} of {commands:?}");
    }
}

#[test]
fn random_commands_do_the_same_on_every_engine_and_on_a_plain_model() {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let config =
        Config { cases: 60, failure_persistence: None, max_shrink_iters: 200, ..Config::default() };
    let created = [Command::Create("one"), Command::Create("two")];
    let commands = prop::collection::vec(command(), 1..60);
    TestRunner::new(config)
        .run(&commands, |commands| {
            let all = created.iter().cloned().chain(commands).collect();
            runtime.block_on(run(all));
            Ok(())
        })
        .unwrap();
}
