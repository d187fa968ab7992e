//! What is serialised together.
//!
//! A change names the domains of what it reads and writes; an engine with several writers locks them, one with a
//! single writer only checks the names, so that a service that works on one works on the other.

use std::fmt;

use bytes::Bytes;

/// What is serialised together: a partition of a table, or a queue with all its keys.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Domain {
    group: u8,
    part: Bytes,
}

/// The domain of a key, borrowed from it: a sort of domain, and a part of the key that is equal in all keys of it.
///
/// The keys of one domain may be of several kinds and keyspaces, so the kind byte is usually left out and `group`
/// defines which sort of domain it is; choose it once in the program for each sort, such as the first kind of its keys.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DomainRef<'a> {
    /// The sort of the domain.
    pub group: u8,
    /// The part of the key that is equal in every key of the domain.
    pub part: &'a [u8],
}

/// From a key to its domain. Pure and cheap: an engine computes it for each key of each change.
pub type DomainOf = for<'a> fn(&'a [u8]) -> DomainRef<'a>;

/// How a change depends on a domain.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Lock {
    /// What it reads there still holds when it is written, also that a key is absent. It writes nothing there.
    Shared,
    /// It may also write there.
    Exclusive,
}

impl Domain {
    /// A domain by its parts.
    pub fn new(group: u8, part: impl Into<Bytes>) -> Self {
        Self { group, part: part.into() }
    }

    /// The domain of a key, without copying it.
    #[must_use]
    pub fn of_key(key: &Bytes, domain_of: DomainOf) -> Self {
        let DomainRef { group, part } = domain_of(key);
        let is_inside = key.as_ptr_range().contains(&part.as_ptr());
        let part = if is_inside { key.slice_ref(part) } else { Bytes::copy_from_slice(part) };
        Self { group, part }
    }

    /// The same domain, borrowed.
    #[must_use]
    pub fn borrowed(&self) -> DomainRef<'_> {
        DomainRef { group: self.group, part: &self.part }
    }
}

impl From<DomainRef<'_>> for Domain {
    fn from(domain: DomainRef<'_>) -> Self {
        Self { group: domain.group, part: Bytes::copy_from_slice(domain.part) }
    }
}

impl fmt::Display for DomainRef<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{:#04x}/{}", self.group, Readable(self.part))
    }
}

impl fmt::Debug for DomainRef<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, out)
    }
}

/// Most bytes of a key that an error text shows.
const SHOWN_BYTES_MAX: usize = 96;

/// Bytes for an error text: ASCII as it is, the rest escaped, and long ones cut.
pub struct Readable<'a>(pub &'a [u8]);

impl fmt::Display for Readable<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.get(..SHOWN_BYTES_MAX) {
            Some(start) if start.len() < self.0.len() => {
                write!(out, "{}... ({} bytes)", start.escape_ascii(), self.0.len())
            }
            _ => write!(out, "{}", self.0.escape_ascii()),
        }
    }
}

#[cfg(test)]
mod tests;
