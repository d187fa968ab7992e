//! What the store is given to do: writers with rows of their own, whose every change follows from a seed and a number.
//!
//! So the content of a store shows which changes it holds, to the last byte, and whether each of them is whole.

use std::{collections::BTreeMap, path::Path, time::Duration};

use bytes::Bytes;
use rand::{RngExt as _, SeedableRng as _, rngs::StdRng};
use trestle_kv::{
    Change, ChangeSpec, CommitError, Domain, DomainRef, Engine, Keyspace, ScanLimit, Span, Write,
    after_key,
};
use trestle_kv_fjall::FjallOptions;

pub(crate) const WRITERS: u64 = 8;
/// Rows of a writer in each keyspace.
const SLOTS: u64 = 12;
const KINDS: [u8; 2] = [1, 0x41];

const KEYSPACES: [Keyspace; 2] = [
    Keyspace { name: "first", kinds: 1..=1, domain: writer_of },
    Keyspace { name: "second", kinds: 0x40..=0xff, domain: writer_of },
];

/// The domain of a key: its writer.
fn writer_of(key: &[u8]) -> DomainRef<'_> {
    DomainRef { group: 1, part: key.get(1..9).unwrap_or_default() }
}

/// Options that flush and compact all the time.
pub(crate) fn options(path: &Path) -> FjallOptions {
    let defaults = FjallOptions::new(path, KEYSPACES.to_vec());
    FjallOptions {
        cache_bytes: 8 * 1024 * 1024,
        min_free_bytes: 0,
        memtable_bytes: 192 * 1024,
        tick: Duration::from_millis(20),
        ..defaults
    }
}

/// The load of a seed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct WriterLoad {
    pub(crate) seed: u64,
}

/// A row of a writer: its key, and the length of its value unless it is deleted.
struct WrittenRow {
    key: Bytes,
    length: Option<usize>,
}

fn key(kind: u8, writer: u64, name: &[u8]) -> Bytes {
    [&[kind], &writer.to_be_bytes()[..], name].concat().into()
}

/// The row that holds the number of the newest change of a writer.
pub(crate) fn head_key(writer: u64) -> Bytes {
    key(KINDS[0], writer, b"head")
}

impl WriterLoad {
    fn random(&self, writer: u64, number: u64) -> StdRng {
        StdRng::seed_from_u64(
            self.seed ^ (writer << 40) ^ number.wrapping_mul(0x9e37_79b9_7f4a_7c15),
        )
    }

    /// The rows of a change, apart from the head.
    fn rows(&self, writer: u64, number: u64) -> Vec<WrittenRow> {
        let mut random = self.random(writer, number);
        let count = random.random_range(1..=5);
        let row = |_| {
            let kind = KINDS[random.random_range(0..KINDS.len())];
            let slot: u64 = random.random_range(0..SLOTS);
            // Hundreds of bytes, and sometimes many pages.
            let length = match random.random_range(0..100) {
                0..15 => None,
                15..75 => Some(random.random_range(0..600)),
                75..94 => Some(random.random_range(600..20_000)),
                _ => Some(random.random_range(20_000..120_000)),
            };
            WrittenRow { key: key(kind, writer, &slot.to_be_bytes()), length }
        };
        (0..count).map(row).collect()
    }

    /// The value that a change gives to a row: no two pages of any values are equal.
    fn value(&self, writer: u64, number: u64, row: &WrittenRow) -> Option<Bytes> {
        let length = row.length?;
        let slot = (u64::from(row.key[row.key.len() - 1]) << 8) | u64::from(row.key[0]);
        let base = self.seed ^ (writer << 56) ^ (number << 24) ^ (slot << 40);
        // Every other row can be compressed: the journal compresses large values, and so damage shows in two ways.
        let repeated = if slot & 0x100 == 0 { 8 } else { 1 };
        let mut bytes = Vec::with_capacity(length + 64);
        let mut block = 0_u64;
        while bytes.len() < length {
            let word = (base ^ block).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
            (0..repeated).for_each(|_| bytes.extend_from_slice(&word.to_le_bytes()));
            block += 1;
        }
        bytes.truncate(length);
        Some(bytes.into())
    }

    fn writes(&self, writer: u64, number: u64) -> Vec<Write> {
        let head = number.to_be_bytes().to_vec().into();
        let mut writes = vec![Write::Put { key: head_key(writer), value: head }];
        for row in self.rows(writer, number) {
            let value = self.value(writer, number, &row);
            writes.push(match value {
                Some(value) => Write::Put { key: row.key, value },
                None => Write::Delete { key: row.key },
            });
        }
        writes
    }

    /// Writes a change and waits for its outcome.
    pub(crate) async fn commit(
        &self,
        engine: &dyn Engine,
        writer: u64,
        number: u64,
    ) -> Result<(), CommitError> {
        let writes = self.writes(writer, number);
        let domain = Domain::of_key(&head_key(writer), writer_of);
        let change = Change::new(ChangeSpec::new(domain), move |_, _| writes.clone().into());
        engine.commit(change).await.map(drop)
    }

    /// What the rows of a writer are after so many of its changes.
    pub(crate) fn expected(&self, writer: u64, changes: u64) -> BTreeMap<Bytes, Bytes> {
        let mut rows: BTreeMap<Bytes, (u64, WrittenRow)> = BTreeMap::new();
        for number in 1..=changes {
            for row in self.rows(writer, number) {
                rows.insert(row.key.clone(), (number, row));
            }
        }
        let value = |(key, (number, row)): (Bytes, (u64, WrittenRow))| {
            Some((key, self.value(writer, number, &row)?))
        };
        let mut rows: BTreeMap<_, _> = rows.into_iter().filter_map(value).collect();
        if changes > 0 {
            rows.insert(head_key(writer), changes.to_be_bytes().to_vec().into());
        }
        rows
    }
}

/// The number of the newest change of a writer that a store shows.
pub(crate) async fn head(engine: &dyn Engine, writer: u64) -> Result<u64, String> {
    let stored = engine.get(&head_key(writer)).await.map_err(|error| error.to_string())?;
    let number = |bytes: Bytes| <[u8; 8]>::try_from(&bytes[..]).map(u64::from_be_bytes);
    stored.map_or(Ok(0), |bytes| number(bytes).map_err(|_| "a head is not a number".to_owned()))
}

/// All rows of a writer.
pub(crate) async fn rows(
    engine: &dyn Engine,
    writer: u64,
) -> Result<BTreeMap<Bytes, Bytes>, String> {
    let limit = ScanLimit { rows: usize::MAX, bytes: usize::MAX };
    let mut rows = BTreeMap::new();
    for kind in KINDS {
        let mut span = Span::prefix(&key(kind, writer, b""));
        loop {
            let page = engine.scan(&span, limit).await.map_err(|error| error.to_string())?;
            let last = page.entries.last().map(|entry| after_key(&entry.key));
            rows.extend(page.entries.into_iter().map(|entry| (entry.key, entry.value)));
            match last {
                Some(next) if page.more => span = Span::new(next, span.end),
                _ => break,
            }
        }
    }
    Ok(rows)
}
