//! A change: the domains and keys that it depends on, and the decision what to write.

use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use foldhash::HashMap;
use xxhash_rust::xxh3::xxh3_64;

use crate::domain::{Domain, DomainRef, Lock};
use crate::keyspace::{Keyspaces, outside_domain, unknown_keyspace};
use crate::limits::Limits;
use crate::{CommitError, Engine, Version};

/// An atomic change: what it depends on, and the decision what to write.
pub struct Change {
    /// Its domains and what it reads.
    pub spec: ChangeSpec,
    /// From the newest values of the reads and the version of the change to the writes. Must be pure, fast and free of
    /// I/O: an engine may run it on its one commit thread, or again after a conflict; the last run counts. No writes
    /// means that nothing is committed.
    pub decide: Decide,
}

impl Change {
    /// A change with its decision.
    pub fn new(
        spec: ChangeSpec,
        decide: impl FnMut(&Reads<'_>, Version) -> Writes + Send + 'static,
    ) -> Self {
        Self { spec, decide: Box::new(decide) }
    }
}

/// Decides what to write from the newest values of what a change reads.
pub type Decide = Box<dyn FnMut(&Reads<'_>, Version) -> Writes + Send>;

/// What a change depends on. Each key that it reads lies in one of its domains, each key that it writes in one that it
/// holds exclusively; an engine rejects any other change.
#[derive(Debug, Clone)]
pub struct ChangeSpec {
    /// What it changes, held exclusively.
    pub domain: Domain,
    /// Further domains, in any order.
    pub also: Vec<(Domain, Lock)>,
    /// The keys whose newest values the decision needs.
    pub reads: ReadSet,
    /// Whether it goes on while disk space is short, as deletes do: see [`ChangeSpec::gives_back_space`].
    pub(crate) gives_back_space: bool,
}

impl ChangeSpec {
    /// A change in one domain that reads nothing yet.
    #[must_use]
    pub fn new(domain: Domain) -> Self {
        Self { domain, also: Vec::new(), reads: ReadSet::default(), gives_back_space: false }
    }

    /// Declares a change after which more can be removed than it puts, so that it goes on while disk space is short.
    /// What it puts must be small, and bounded whatever clients do.
    pub fn gives_back_space(&mut self) -> &mut Self {
        self.gives_back_space = true;
        self
    }

    /// Reads a key; the decision gets its value by what is returned.
    pub fn read(&mut self, key: impl Into<Bytes>) -> ReadId {
        self.reads.add(key)
    }

    /// Names a further domain.
    pub fn also(&mut self, domain: Domain, lock: Lock) -> &mut Self {
        self.also.push((domain, lock));
        self
    }

    /// Makes further domains quick to find: sorted, each once, with the stronger of its locks.
    pub(crate) fn sort_domains(&mut self) {
        if self.also.len() > 1 {
            self.also.sort_unstable_by(|a, b| a.0.cmp(&b.0).then(b.1.cmp(&a.1)));
            self.also.dedup_by(|later, kept| later.0 == kept.0);
        }
    }

    /// How the change holds a domain; none where it does not name it. Needs sorted domains.
    fn lock_of(&self, domain: DomainRef<'_>) -> Option<Lock> {
        if self.domain.borrowed() == domain {
            return Some(Lock::Exclusive);
        }
        let found = self.also.binary_search_by(|(other, _)| other.borrowed().cmp(&domain));
        found.ok().and_then(|index| self.also.get(index)).map(|(_, lock)| *lock)
    }

    /// Checks what the change names and reads, and prepares it for [`ChangeSpec::check_writes`].
    ///
    /// # Errors
    /// [`CommitError::Rejected`].
    pub(crate) fn check(
        &mut self,
        keyspaces: &Keyspaces,
        limits: &Limits,
    ) -> Result<(), CommitError> {
        limits.check_spec(self)?;
        self.sort_domains();
        for key in self.reads.keys() {
            let keyspace = keyspaces.of(key).ok_or_else(|| unknown_keyspace(key))?;
            let domain = (keyspace.domain)(key);
            if self.lock_of(domain).is_none() {
                return Err(outside_domain("read", key, domain));
            }
        }
        Ok(())
    }

    /// Checks where the writes of the change lie.
    ///
    /// # Errors
    /// [`CommitError::Rejected`].
    pub(crate) fn check_writes(
        &self,
        writes: &[Write],
        keyspaces: &Keyspaces,
    ) -> Result<(), CommitError> {
        for key in writes.iter().map(Write::key) {
            let keyspace = keyspaces.of(key).ok_or_else(|| unknown_keyspace(key))?;
            let domain = (keyspace.domain)(key);
            match self.lock_of(domain) {
                Some(Lock::Exclusive) => {}
                Some(Lock::Shared) => {
                    return Err(outside_domain("write in a shared domain, so", key, domain));
                }
                None => return Err(outside_domain("write", key, domain)),
            }
        }
        Ok(())
    }
}

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

/// What a change writes: any number of keys of any keyspaces. Writes apply in their order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Writes(Vec<Write>);

/// One write of a change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Write {
    /// Sets a key.
    Put {
        /// The key.
        key: Bytes,
        /// Its new value.
        value: Bytes,
    },
    /// Removes a key; one that is absent is not an error.
    Delete {
        /// The key.
        key: Bytes,
    },
}

impl Write {
    /// The key that is written.
    #[must_use]
    pub fn key(&self) -> &Bytes {
        let (Self::Put { key, .. } | Self::Delete { key }) = self;
        key
    }
}

impl Writes {
    /// No writes.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// No writes, with room for so many.
    #[must_use]
    pub fn with_capacity(writes: usize) -> Self {
        Self(Vec::with_capacity(writes))
    }

    /// Sets a key.
    pub fn put(&mut self, key: impl Into<Bytes>, value: impl Into<Bytes>) -> &mut Self {
        self.0.push(Write::Put { key: key.into(), value: value.into() });
        self
    }

    /// Removes a key; one that is absent is not an error.
    pub fn delete(&mut self, key: impl Into<Bytes>) -> &mut Self {
        self.0.push(Write::Delete { key: key.into() });
        self
    }

    /// Adds a write.
    pub fn push(&mut self, write: Write) {
        self.0.push(write);
    }

    /// How many writes there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is no write.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The writes.
    #[must_use]
    pub fn as_slice(&self) -> &[Write] {
        &self.0
    }
}

impl From<Vec<Write>> for Writes {
    fn from(writes: Vec<Write>) -> Self {
        Self(writes)
    }
}

impl From<Write> for Writes {
    fn from(write: Write) -> Self {
        Self(vec![write])
    }
}

impl FromIterator<Write> for Writes {
    fn from_iter<I: IntoIterator<Item = Write>>(writes: I) -> Self {
        Self(writes.into_iter().collect())
    }
}

impl Extend<Write> for Writes {
    fn extend<I: IntoIterator<Item = Write>>(&mut self, writes: I) {
        self.0.extend(writes);
    }
}

impl IntoIterator for Writes {
    type Item = Write;
    type IntoIter = std::vec::IntoIter<Write>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

/// Commits a typed decision: what `decide` returned last is what the caller gets, once it is
/// durable.
///
/// An `Err` of `decide` writes nothing and comes back as `Ok(Err(_))`.
///
/// # Errors
/// Every kind of [`CommitError`].
pub async fn transact<T, E>(
    engine: &dyn Engine,
    spec: ChangeSpec,
    mut decide: impl FnMut(&Reads<'_>, Version) -> Result<(Writes, T), E> + Send + 'static,
) -> Result<Result<T, E>, CommitError>
where
    T: Send + 'static,
    E: Send + 'static,
{
    let slot = Arc::new(Mutex::new(None));
    let decided = Arc::clone(&slot);
    let decide = move |reads: &Reads<'_>, version: Version| {
        let (writes, outcome) = match decide(reads, version) {
            Ok((writes, value)) => (writes, Ok(value)),
            Err(error) => (Writes::new(), Err(error)),
        };
        *decided.lock().unwrap_or_else(PoisonError::into_inner) = Some(outcome);
        writes
    };
    engine.commit(Change::new(spec, decide)).await?;
    let outcome = slot.lock().unwrap_or_else(PoisonError::into_inner).take();
    outcome
        .ok_or_else(|| CommitError::Rejected { reason: "the engine never ran the decision".into() })
}

#[cfg(test)]
mod tests;
