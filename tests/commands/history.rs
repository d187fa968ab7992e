//! Two servers on one database, one of them killed: whether what they acknowledged about one entity, and about two that
//! are written together, can have happened one call after the other, in an order that clients can have seen.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex,
        atomic::{AtomicI32, Ordering::Relaxed},
    },
    time::Instant,
};

use tonic::Code;
use trestle_kv_postgres::testing::PostgresServer;
use trestle_proto::table::v1::{Entity, WriteMode, value::Kind};
use trestle_tests::{CallError, Server, Table, entity, int, upsert_op, value_of};

/// What a call did to a register: an entity, or two that are written together.
#[derive(Debug, Clone, PartialEq)]
enum Effect {
    /// It returned this value, and the version with it.
    Read,
    /// It wrote the value, if the register had this version, or in any case.
    Write { replaces: Option<String> },
}

/// An acknowledged call, between two instants of one clock.
#[derive(Debug, Clone)]
struct Call {
    began: u128,
    ended: u128,
    effect: Effect,
    value: i32,
    /// In the order of the texts.
    version: String,
}

/// Why a history cannot have happened one call after the other, if so. Versions are in the order of writes, so it can
/// where no call has an older version than one that ended before it began, each value was written with the version
/// that it is read with, and no write that names a version skips another one. `lost` are values of calls without an
/// answer, which may have been written.
fn violation(calls: &[Call], lost: &[i32]) -> Option<String> {
    let mut written = HashMap::new();
    let mut versions = Vec::new();
    for call in calls.iter().filter(|call| call.effect != Effect::Read) {
        written.insert(call.value, &call.version);
        versions.push(&call.version);
    }
    versions.sort();
    if let Some(twice) = versions.windows(2).find(|pair| pair[0] == pair[1]) {
        return Some(format!("two writes have one version: {}", twice[0]));
    }
    for call in calls {
        let is_known = match written.get(&call.value) {
            Some(version) => **version == call.version,
            None => lost.contains(&call.value),
        };
        if !is_known {
            return Some(format!("nothing wrote what was read: {call:?}"));
        }
        if let Effect::Write { replaces: Some(replaced) } = &call.effect {
            let skipped = versions.iter().find(|it| **it > replaced && **it < &call.version);
            if let Some(skipped) = skipped {
                return Some(format!("a write is lost: {skipped} before {call:?}"));
            }
        }
        let before = calls.iter().filter(|other| other.ended < call.began);
        if let Some(newest) = before.max_by_key(|other| &other.version) {
            let is_new = call.effect != Effect::Read;
            if newest.version > call.version || (is_new && newest.version == call.version) {
                return Some(format!("older than what was seen before: {call:?} after {newest:?}"));
            }
        }
    }
    None
}

fn call(times: (u128, u128), effect: Effect, value: i32, version: &str) -> Call {
    Call { began: times.0, ended: times.1, effect, value, version: version.to_owned() }
}

#[test]
fn violations_are_found_where_there_are_some() {
    let write =
        |times, value, version| call(times, Effect::Write { replaces: None }, value, version);
    let swap = |times, value, version, replaced: &str| {
        call(times, Effect::Write { replaces: Some(replaced.to_owned()) }, value, version)
    };
    let read = |times, value, version| call(times, Effect::Read, value, version);
    let found = |calls: &[Call]| violation(calls, &[9]).unwrap_or_default();

    // Reads during a write may see either value, and a lost call may have had its effect.
    let valid = [
        write((0, 1), 1, "a"),
        write((2, 9), 2, "b"),
        read((3, 4), 1, "a"),
        read((5, 6), 2, "b"),
        swap((10, 11), 3, "c", "b"),
        read((12, 13), 9, "d"),
    ];
    assert_eq!(violation(&valid, &[9]), None);
    assert!(violation(&valid, &[]).unwrap().starts_with("nothing wrote"));

    let stale = [write((0, 1), 1, "a"), write((2, 3), 2, "b"), read((4, 5), 1, "a")];
    assert!(found(&stale).starts_with("older than"), "{}", found(&stale));
    let back =
        [write((0, 1), 1, "a"), write((2, 9), 2, "b"), read((3, 4), 2, "b"), read((5, 6), 1, "a")];
    assert!(found(&back).starts_with("older than"), "{}", found(&back));
    let lost = [write((0, 1), 1, "a"), write((2, 9), 2, "b"), swap((3, 8), 3, "c", "a")];
    assert!(found(&lost).starts_with("a write is lost"), "{}", found(&lost));
    let torn = [write((0, 1), 1, "a"), read((2, 3), 1, "b")];
    assert!(found(&torn).starts_with("nothing wrote"), "{}", found(&torn));
    let twice = [write((0, 3), 1, "a"), write((0, 3), 2, "a")];
    assert!(found(&twice).starts_with("two writes"), "{}", found(&twice));
    let late = [write((0, 1), 1, "b"), write((2, 3), 2, "a")];
    assert!(found(&late).starts_with("older than"), "{}", found(&late));
}

/// What clients saw.
#[derive(Debug, Default)]
struct History {
    one: Vec<Call>,
    pair: Vec<Call>,
    lost: Vec<i32>,
}

/// A client of two servers, of which the first may end.
struct Client {
    tables: [Table; 2],
    clock: Instant,
    values: Arc<AtomicI32>,
    history: Arc<Mutex<History>>,
}

/// The version that an etag has: the time in it, whose fraction has no zeros at the end.
fn version(etag: &str) -> String {
    let time = etag.trim_end_matches(['"', '\'', 'Z']);
    let (seconds, fraction) = time.split_once('.').unwrap_or((time, ""));
    format!("{seconds}.{fraction:0<7}")
}

/// The number of an entity.
fn number(entity: &Entity) -> i32 {
    match value_of(entity, "v") {
        Some(Kind::Int32Value(value)) => *value,
        other => panic!("a number: {other:?}"),
    }
}

impl Client {
    fn now(&self) -> u128 {
        self.clock.elapsed().as_nanos()
    }

    /// Writes a new value with `write`, and records what became of it.
    async fn writes(
        &self,
        effect: Effect,
        register: fn(&mut History) -> &mut Vec<Call>,
        write: impl AsyncFn(i32) -> Result<String, CallError>,
    ) -> Result<(), CallError> {
        let (value, began) = (self.values.fetch_add(1, Relaxed), self.now());
        let written = write(value).await;
        let times = (began, self.now());
        let mut history = self.history.lock().unwrap();
        match written {
            Ok(etag) => register(&mut history).push(call(times, effect, value, &version(&etag))),
            // The version that it named was not the newest.
            Err(error) if error.code == Code::Aborted => {}
            Err(error) => {
                history.lost.push(value);
                return Err(error);
            }
        }
        Ok(())
    }

    /// Reads with `read`, and records it.
    async fn reads(
        &self,
        register: fn(&mut History) -> &mut Vec<Call>,
        read: impl AsyncFn() -> Result<Entity, CallError>,
    ) -> Result<Entity, CallError> {
        let began = self.now();
        let found = read().await?;
        let seen = call((began, self.now()), Effect::Read, number(&found), &version(&found.etag));
        register(&mut self.history.lock().unwrap()).push(seen);
        Ok(found)
    }

    /// One round of reads and writes at a server.
    async fn round(&self, table: &Table) -> Result<(), CallError> {
        let one: fn(&mut History) -> &mut Vec<Call> = |history| &mut history.one;
        let pair: fn(&mut History) -> &mut Vec<Call> = |history| &mut history.pair;
        let merge = |row: &'static str, value| {
            upsert_op(entity("p", row, [int("v", value)]), WriteMode::Merge)
        };

        let found = self.reads(one, async || table.get("p", "one").await).await?;
        let swap = Effect::Write { replaces: Some(version(&found.etag)) };
        self.writes(swap, one, async |value| {
            let changed = entity("p", "one", [int("v", value)]);
            Ok(table.update(changed, WriteMode::Merge, Some(&found.etag)).await?.etag)
        })
        .await?;
        let blind = || Effect::Write { replaces: None };
        self.writes(blind(), one, async |value| {
            let changed = entity("p", "one", [int("v", value)]);
            Ok(table.upsert(changed, WriteMode::Replace).await?.etag)
        })
        .await?;
        self.writes(blind(), pair, async |value| {
            let etags = table.batch(vec![merge("pair-a", value), merge("pair-b", value)]).await?;
            Ok(etags.into_iter().next().expect("an etag"))
        })
        .await?;
        self.reads(pair, async || {
            let rows = table.query("PartitionKey eq 'p' and RowKey ge 'pair-a'").await?;
            let [first, second] = <[Entity; 2]>::try_from(rows).expect("two rows");
            assert_eq!(number(&first), number(&second), "half of a batch");
            Ok(first)
        })
        .await?;
        Ok(())
    }

    /// Rounds at one server, and once that is gone at the other one.
    async fn run(self, first: usize, rounds: usize) {
        let mut at = first;
        for _ in 0..rounds {
            if let Err(error) = self.round(&self.tables[at]).await {
                let is_gone = [Code::Unavailable, Code::Unknown, Code::Cancelled, Code::Internal];
                assert!(at == 0 && is_gone.contains(&error.code), "{error:?}");
                at = 1;
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_servers_of_one_database_act_as_one_and_also_while_one_is_killed() {
    const CLIENTS: usize = 6;
    const ROUNDS: usize = 20;
    let Some(postgres) = PostgresServer::start(&["fsync=on"]).await else { return };
    let url = postgres.url(&postgres.database().await);
    let start =
        || Server::start(&["--roles", "gateway,table"], &[("TRESTLE__STORAGE__ENGINE", &url)]);
    let (killed, kept) = (start(), start());
    let tables = [&killed, &kept].map(|server| Table::over(&server.channel(), "history"));
    let create = trestle_proto::table::v1::CreateTableRequest {
        table: Some(trestle_proto::table::v1::Table {
            name: "history".to_owned(),
            ..Default::default()
        }),
    };
    tables[0].client().create_table(create).await.unwrap();

    let (clock, values) = (Instant::now(), Arc::new(AtomicI32::new(0)));
    let history = Arc::new(Mutex::new(History::default()));
    let client = || Client {
        tables: tables.clone(),
        clock,
        values: Arc::clone(&values),
        history: Arc::clone(&history),
    };
    let merge = |row| upsert_op(entity("p", row, [int("v", -1)]), WriteMode::Merge);
    let etags =
        tables[1].batch(vec![merge("one"), merge("pair-a"), merge("pair-b")]).await.unwrap();
    {
        let mut history = history.lock().unwrap();
        let first =
            |etag: &String| call((0, 0), Effect::Write { replaces: None }, -1, &version(etag));
        history.one.push(first(&etags[0]));
        history.pair.push(first(&etags[1]));
    }
    let clients = (0..CLIENTS).map(|number| client().run(number % 2, ROUNDS));
    let kill = async {
        // In the middle of it.
        while values.load(Relaxed) < i32::try_from(CLIENTS * ROUNDS).unwrap() {
            tokio::task::yield_now().await;
        }
        killed.kill();
    };
    tokio::join!(futures::future::join_all(clients), kill);

    let history = history.lock().unwrap();
    assert!(history.one.len() > CLIENTS * ROUNDS, "{}", history.one.len());
    assert_eq!(violation(&history.one, &history.lost), None);
    assert_eq!(violation(&history.pair, &history.lost), None);
}
