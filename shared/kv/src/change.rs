//! A change: the domains and keys that it depends on, and the decision what to write.

mod reads;
mod writes;

use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;

use crate::domain::{Domain, DomainRef, Lock};
use crate::keyspace::{Keyspaces, outside_domain, unknown_keyspace};
use crate::limits::Limits;
use crate::{CommitError, Engine, Version};

pub use reads::{ReadId, ReadSet, Reads};
pub use writes::{Write, Writes};

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
    pub gives_back_space: bool,
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
    pub fn sort_domains(&mut self) {
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
    pub fn check(&mut self, keyspaces: &Keyspaces, limits: &Limits) -> Result<(), CommitError> {
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
    pub fn check_writes(&self, writes: &[Write], keyspaces: &Keyspaces) -> Result<(), CommitError> {
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
