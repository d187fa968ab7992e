//! Any sequence of commands has the same results on memory, on fjall, and on a plain map.

use std::collections::BTreeMap;

use bytes::Bytes;
use proptest::prelude::*;
use trestle_kv::conformance::{KEYSPACES, covering};
use trestle_kv::{Direction, Engine, Entry, MemoryEngine, Scan, ScanLimit, Span, Write, transact};
use trestle_kv_fjall::FjallEngine;

use crate::world::options;

type Model = BTreeMap<Bytes, Bytes>;

#[derive(Debug, Clone)]
enum Command {
    /// Writes if the key that is read is present, or absent, as given.
    Change {
        read: Bytes,
        present: bool,
        writes: Vec<Write>,
    },
    Get(Bytes),
    Scan(Span, ScanLimit),
    Reopen,
}

/// Few keys, so that commands meet.
fn any_key() -> impl Strategy<Value = Bytes> {
    prop::collection::vec(prop::sample::select(vec![0_u8, 1, 2, 0xFF]), 0..3)
        .prop_map(|rest| [&[1][..], &rest].concat().into())
}

fn any_write() -> impl Strategy<Value = Write> {
    let value = prop::collection::vec(any::<u8>(), 0..20).prop_map(Bytes::from);
    prop_oneof![
        2 => (any_key(), value).prop_map(|(key, value)| Write::Put { key, value }),
        1 => any_key().prop_map(|key| Write::Delete { key }),
    ]
}

fn any_span() -> impl Strategy<Value = Span> {
    (any_key(), any_key(), any::<bool>()).prop_map(|(start, end, forward)| {
        let span = Span::new(start, end);
        if forward { span } else { span.backward() }
    })
}

fn any_command() -> impl Strategy<Value = Command> {
    let writes = prop::collection::vec(any_write(), 0..5);
    let limit = (0..10_usize, 0..60_usize).prop_map(|(rows, bytes)| ScanLimit { rows, bytes });
    prop_oneof![
        10 => (any_key(), any::<bool>(), writes)
            .prop_map(|(read, present, writes)| Command::Change { read, present, writes }),
        5 => any_key().prop_map(Command::Get),
        5 => (any_span(), limit).prop_map(|(span, limit)| Command::Scan(span, limit)),
        1 => Just(Command::Reopen),
    ]
}

async fn change(engine: &dyn Engine, read: &Bytes, present: bool, writes: &[Write]) -> bool {
    let writes = writes.to_vec();
    let mut spec = covering(writes.iter().map(Write::key).chain([read]));
    let row = spec.read(read.clone());
    let outcome = transact(engine, spec, move |reads, _| {
        if reads.get(row).is_some() != present {
            return Err(());
        }
        Ok((writes.iter().cloned().collect(), ()))
    });
    outcome.await.unwrap().is_ok()
}

fn change_model(model: &mut Model, read: &Bytes, present: bool, writes: &[Write]) -> bool {
    if model.contains_key(read) != present {
        return false;
    }
    for write in writes {
        match write.clone() {
            Write::Put { key, value } => model.insert(key, value),
            Write::Delete { key } => model.remove(&key),
        };
    }
    true
}

fn scan_model(model: &Model, span: &Span, limit: ScanLimit) -> Scan {
    if span.is_empty() {
        return Scan { entries: Vec::new(), more: false };
    }
    let mut all: Vec<Entry> = model
        .range(span.start.clone()..span.end.clone())
        .map(|(key, value)| Entry { key: key.clone(), value: value.clone() })
        .collect();
    if span.direction == Direction::Backward {
        all.reverse();
    }
    let mut bytes = 0;
    let met = all.iter().position(|entry| {
        bytes += entry.key.len() + entry.value.len();
        bytes >= limit.bytes
    });
    let count = all.len().min(limit.rows.max(1)).min(met.map_or(usize::MAX, |index| index + 1));
    let more = all.len() > count;
    all.truncate(count);
    Scan { entries: all, more }
}

async fn play(commands: Vec<Command>) {
    let directory = tempfile::tempdir().unwrap();
    let open = || FjallEngine::open(options(directory.path())).unwrap();
    let (mut model, memory, mut fjall) = (Model::new(), MemoryEngine::new(KEYSPACES), open());
    for command in commands {
        match command {
            Command::Change { read, present, writes } => {
                let expected = change_model(&mut model, &read, present, &writes);
                assert_eq!(change(&memory, &read, present, &writes).await, expected);
                assert_eq!(change(&fjall, &read, present, &writes).await, expected);
            }
            Command::Get(key) => {
                for engine in [&memory as &dyn Engine, &fjall] {
                    let found = engine.snapshot().await.unwrap().get(&key).await.unwrap();
                    assert_eq!(found.as_ref(), model.get(&key));
                }
            }
            Command::Scan(span, limit) => {
                let expected = scan_model(&model, &span, limit);
                for engine in [&memory as &dyn Engine, &fjall] {
                    let view = engine.snapshot().await.unwrap();
                    assert_eq!(view.scan(&span, limit).await.unwrap(), expected);
                }
            }
            Command::Reopen => {
                drop(fjall);
                fjall = open();
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn any_commands_have_the_same_results_on_every_engine(
        commands in prop::collection::vec(any_command(), 1..60),
    ) {
        tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap()
            .block_on(play(commands));
    }
}
