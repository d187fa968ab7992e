//! Any sequence of changes and reads has the same results on PostgreSQL as in memory, whatever the lengths of keys are.

use bytes::Bytes;
use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use trestle_kv::conformance::{KEYSPACES, reading, rows::commit};
use trestle_kv::{Engine, MemoryEngine, ScanLimit, Span, Write, Writes, transact};

use crate::world::{assert_pointers_are_exact, open};
use trestle_kv_postgres::testing::PostgresServer;

#[derive(Debug, Clone)]
enum Command {
    Write(Vec<Write>),
    /// Swaps the values of two keys.
    Swap(Bytes, Bytes),
    Get(Bytes),
    Scan(Span, ScanLimit),
}

/// Few keys, whose lengths are around those where a layer ends.
fn any_key() -> impl Strategy<Value = Bytes> {
    let bytes = prop::sample::select(vec![0_u8, 1, 2, 0xFF]);
    let lengths = prop::sample::select(vec![0_usize, 2_398, 2_399, 2_400, 4_766, 4_767, 4_768]);
    let end = prop::collection::vec(bytes.clone(), 0..3);
    (lengths, bytes, end).prop_map(|(length, filled, end)| {
        [&[1][..], &vec![filled.min(1); length], &end].concat().into()
    })
}

fn any_write() -> impl Strategy<Value = Write> {
    let value = prop::collection::vec(any::<u8>(), 0..20).prop_map(Bytes::from);
    prop_oneof![
        3 => (any_key(), value).prop_map(|(key, value)| Write::Put { key, value }),
        1 => any_key().prop_map(|key| Write::Delete { key }),
    ]
}

fn any_command() -> impl Strategy<Value = Command> {
    let span = (any_key(), any_key(), any::<bool>()).prop_map(|(start, end, is_forward)| {
        let span = Span::new(start, end);
        if is_forward { span } else { span.backward() }
    });
    let limit = (0..10_usize, prop_oneof![0..60_usize, 0..20_000_usize])
        .prop_map(|(rows, bytes)| ScanLimit { rows, bytes });
    prop_oneof![
        8 => prop::collection::vec(any_write(), 1..6).prop_map(Command::Write),
        2 => (any_key(), any_key()).prop_map(|(one, other)| Command::Swap(one, other)),
        3 => any_key().prop_map(Command::Get),
        8 => (span, limit).prop_map(|(span, limit)| Command::Scan(span, limit)),
    ]
}

async fn swap(engine: &dyn Engine, one: &Bytes, other: &Bytes) {
    let mut spec = reading([one, other]);
    let (one, other) = (spec.read(one.clone()), spec.read(other.clone()));
    let swapped = transact(engine, spec, move |reads, _| {
        let mut writes = Writes::new();
        for (from, to) in [(one, other), (other, one)] {
            match reads.get(from) {
                Some(value) => writes.put(reads.key(to).clone(), value.clone()),
                None => writes.delete(reads.key(to).clone()),
            };
        }
        Ok::<_, ()>((writes, ()))
    });
    swapped.await.unwrap().unwrap();
}

async fn play(commands: &[Command], postgres: &dyn Engine) {
    let memory = MemoryEngine::new(KEYSPACES);
    for command in commands {
        match command {
            Command::Write(writes) => {
                commit(&memory, writes.clone()).await.unwrap();
                commit(postgres, writes.clone()).await.unwrap();
            }
            Command::Swap(one, other) => {
                swap(&memory, one, other).await;
                swap(postgres, one, other).await;
            }
            Command::Get(key) => {
                let expected = memory.get(key).await.unwrap();
                assert_eq!(postgres.get(key).await.unwrap(), expected);
                let view = postgres.snapshot().await.unwrap();
                assert_eq!(view.get(key).await.unwrap(), expected);
            }
            Command::Scan(span, limit) => {
                let expected = memory.scan(span, *limit).await.unwrap();
                assert_eq!(postgres.scan(span, *limit).await.unwrap(), expected);
                let view = postgres.snapshot().await.unwrap();
                assert_eq!(view.scan(span, *limit).await.unwrap(), expected);
            }
        }
    }
}

#[test]
fn any_commands_have_the_same_results_as_in_memory() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let Some(server) = runtime.block_on(PostgresServer::start(&[])) else { return };
    let database = runtime.block_on(server.database());
    let engine = runtime.block_on(open(&server.address(&database)));
    let config =
        ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() };
    let commands = prop::collection::vec(any_command(), 1..40);
    let played = TestRunner::new(config).run(&commands, |commands| {
        let emptied = "TRUNCATE trestle_first, trestle_second";
        runtime.block_on(server.execute(&database, emptied)).unwrap();
        runtime.block_on(play(&commands, &*engine));
        runtime.block_on(assert_pointers_are_exact(&server, &database));
        Ok(())
    });
    played.unwrap();
}
