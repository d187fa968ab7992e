//! What a change reads: its keys, and their newest values.

use bytes::Bytes;
use foldhash::HashMap;
use xxhash_rust::xxh3::xxh3_64;

/// The keys that a change reads, each once.
#[derive(Debug, Clone, Default)]
pub struct ReadSet {
    keys: Vec<Bytes>,
    /// The index of a key by its hash, once there are too many to compare with each. Two keys of one hash are both
    /// read; only the first is found again.
    by_hash: Option<Box<HashMap<u64, u32>>>,
}

/// Names a key of one [`ReadSet`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ReadId(u32);

/// Up to so many keys, comparing with each costs less than hashing.
const COMPARED_KEYS_MAX: usize = 16;

impl ReadSet {
    /// Adds a key, or finds it if it was added before.
    pub fn add(&mut self, key: impl Into<Bytes>) -> ReadId {
        let key = key.into();
        let next = u32::try_from(self.keys.len()).unwrap_or(u32::MAX);
        if self.keys.len() < COMPARED_KEYS_MAX {
            if let Some(index) = (0_u32..).zip(&self.keys).find(|(_, other)| **other == key) {
                return ReadId(index.0);
            }
            self.keys.push(key);
            return ReadId(next);
        }
        let by_hash = self.by_hash.get_or_insert_with(|| {
            Box::new(self.keys.iter().map(|key| xxh3_64(key)).zip(0_u32..).collect())
        });
        let index = *by_hash.entry(xxh3_64(&key)).or_insert(next);
        if index < next && usize::try_from(index).ok().and_then(|i| self.keys.get(i)) == Some(&key)
        {
            return ReadId(index);
        }
        self.keys.push(key);
        ReadId(next)
    }

    /// The keys, in the order in which they were added.
    #[must_use]
    pub fn keys(&self) -> &[Bytes] {
        &self.keys
    }
}

/// What a change read: the newest values of its [`ReadSet`].
#[derive(Debug, Clone, Copy)]
pub struct Reads<'a> {
    keys: &'a [Bytes],
    values: &'a [Option<Bytes>],
}

impl<'a> Reads<'a> {
    /// The values of the keys of a set, in its order: for engines, and for tests of decisions.
    #[must_use]
    pub fn new(set: &'a ReadSet, values: &'a [Option<Bytes>]) -> Self {
        Self { keys: &set.keys, values }
    }

    /// The newest value of a key; none if the key is absent.
    ///
    /// # Panics
    /// If the key is not of this set. An engine rejects the change then.
    #[must_use]
    pub fn get(&self, id: ReadId) -> Option<&'a Bytes> {
        self.values.get(id.0 as usize).expect("the id is of this read set").as_ref()
    }

    /// The key.
    ///
    /// # Panics
    /// As [`Reads::get`] does.
    #[must_use]
    pub fn key(&self, id: ReadId) -> &'a Bytes {
        self.keys.get(id.0 as usize).expect("the id is of this read set")
    }
}
