//! Keyspaces: which keys there are, where they are kept, and which domain each belongs to.

use std::ops::RangeInclusive;

use bytes::Bytes;

use crate::domain::{Domain, DomainOf, DomainRef, Readable};
use crate::{CommitError, EngineError, Span};

/// Most keyspaces of an engine.
const KEYSPACES_MAX: usize = 16;
/// Longest name of a keyspace.
const NAME_BYTES_MAX: usize = 64;

/// The keys whose first byte is in a range: a tree or a relation of its own.
///
/// Keyspaces are few and fixed: on disk each costs up to five memtables of memory and holds back the journal while it
/// is idle, so there is one for each pattern of access and never one for each table of a user. No scan crosses from one
/// to another.
#[derive(Debug, Clone)]
pub struct Keyspace {
    /// Name in storage; never changes.
    pub name: &'static str,
    /// First bytes of its keys; never change. 0 is reserved for the engine.
    pub kinds: RangeInclusive<u8>,
    /// The domain of each of its keys.
    pub domain: DomainOf,
}

/// A domain for each key by itself, for [`Keyspace::domain`].
#[must_use]
pub fn key_domain(key: &[u8]) -> DomainRef<'_> {
    match key.split_first() {
        Some((kind, part)) => DomainRef { group: *kind, part },
        None => DomainRef { group: 0, part: key },
    }
}

/// The keyspaces of an engine. No two share a name or a kind.
#[derive(Debug, Clone)]
pub struct Keyspaces {
    list: Vec<Keyspace>,
    /// For each kind the index of its keyspace.
    routes: Box<[Option<u8>; 256]>,
}

impl Keyspaces {
    /// Keyspaces, in this order.
    ///
    /// # Errors
    /// What is wrong with them, for people.
    pub fn new(list: Vec<Keyspace>) -> Result<Self, String> {
        if list.is_empty() || list.len() > KEYSPACES_MAX {
            let found = list.len();
            return Err(format!("1 to {KEYSPACES_MAX} keyspaces are needed: found=`{found}`"));
        }
        let mut routes = Box::new([None; 256]);
        for (index, keyspace) in (0_u8..).zip(&list) {
            check(keyspace)?;
            let mut before = list.iter().take(usize::from(index));
            if let Some(other) = before.find(|other| other.name == keyspace.name) {
                return Err(overlap(other, keyspace));
            }
            for kind in keyspace.kinds.clone() {
                let Some(route) = routes.get_mut(usize::from(kind)) else { continue };
                if let Some(other) = route.replace(index) {
                    let other = list.get(usize::from(other)).unwrap_or(keyspace);
                    return Err(overlap(other, keyspace));
                }
            }
        }
        Ok(Self { list, routes })
    }

    /// Every keyspace, in order.
    #[must_use]
    pub fn list(&self) -> &[Keyspace] {
        &self.list
    }

    /// The keyspace that holds a key.
    #[must_use]
    pub fn of(&self, key: &[u8]) -> Option<&Keyspace> {
        self.list.get(self.index_of(key)?)
    }

    /// The index of the keyspace that holds a key.
    #[must_use]
    pub fn index_of(&self, key: &[u8]) -> Option<usize> {
        let kind = usize::from(*key.first()?);
        self.routes.get(kind).copied().flatten().map(usize::from)
    }

    /// The domain of a key.
    #[must_use]
    pub fn domain(&self, key: &Bytes) -> Option<Domain> {
        Some(Domain::of_key(key, self.of(key)?.domain))
    }

    /// The index of the keyspace that a span lies in.
    ///
    /// # Errors
    /// [`EngineError::Rejected`] for a span in no keyspace or in several.
    pub fn index_of_span(&self, span: &Span) -> Result<usize, EngineError> {
        let index = self.index_of(&span.start).ok_or_else(|| unknown_keyspace(&span.start))?;
        let keyspace = self.list.get(index).ok_or_else(|| unknown_keyspace(&span.start))?;
        // The end is exclusive, so it may be the first key after the keyspace.
        let last = *keyspace.kinds.end();
        let is_inside = match span.end.split_first() {
            Some((&kind, rest)) => {
                kind <= last || (rest.is_empty() && last.checked_add(1) == Some(kind))
            }
            None => false,
        };
        if is_inside {
            return Ok(index);
        }
        let (start, end) = (Readable(&span.start), Readable(&span.end));
        let reason = format!("span crosses keyspaces: start=`{start}`, end=`{end}`").into();
        Err(EngineError::Rejected { reason })
    }
}

fn check(Keyspace { name, kinds, .. }: &Keyspace) -> Result<(), String> {
    let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
    if name.is_empty() || name.len() > NAME_BYTES_MAX || !name.bytes().all(is_plain) {
        return Err(format!(
            "a keyspace name is 1 to {NAME_BYTES_MAX} of a-z, 0-9 and _: found=`{name}`"
        ));
    }
    if *kinds.start() == 0 || kinds.is_empty() {
        return Err(format!("kinds of a keyspace start at 1 and ascend: keyspace=`{name}`"));
    }
    Ok(())
}

fn overlap(first: &Keyspace, second: &Keyspace) -> String {
    format!("keyspaces overlap: first=`{}`, second=`{}`", first.name, second.name)
}

/// A key of a kind that no keyspace holds: a defect of the caller. Trying again does not help.
pub fn unknown_keyspace(key: &[u8]) -> EngineError {
    let kind = key.first().map_or_else(|| "none".to_owned(), |kind| format!("{kind:#04x}"));
    EngineError::Rejected { reason: format!("no keyspace holds the key: kind=`{kind}`").into() }
}

/// A key outside the domains that its change names.
pub fn outside_domain(access: &str, key: &[u8], domain: DomainRef<'_>) -> CommitError {
    let key = Readable(key);
    let reason = format!("{access} outside the named domains: key=`{key}`, domain=`{domain}`");
    CommitError::Rejected { reason: reason.into() }
}
