//! The authorization of a caller in an account.

use std::fmt;

use trestle_service::fault::{Fault, Reason};

/// The authorization of a caller in an account.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Authority {
    /// Full access: the caller has a key of the account.
    Owner,
    /// What a shared access signature over the account grants.
    Account(AccountGrant),
    /// What a shared access signature over one table grants.
    Table(TableGrant),
    /// What a shared access signature over one queue grants.
    Queue(QueueGrant),
}

impl Authority {
    /// The stored access policy that completes it, if any.
    #[must_use]
    pub fn policy(&self) -> Option<&PolicyRef> {
        match self {
            Self::Owner | Self::Account(_) => None,
            Self::Table(grant) => grant.policy.as_ref(),
            Self::Queue(grant) => grant.policy.as_ref(),
        }
    }

    /// The error of every call, if that policy is valid.
    #[must_use]
    pub fn denied(&self) -> Option<&Denied> {
        self.policy()?.denied.as_ref()
    }
}

/// A shared access signature over an account. Its times were checked; the service checks services,
/// resource types and permissions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AccountGrant {
    /// Letters of `bqtf`: blob, queue, table, file.
    pub services: Letters,
    /// Letters of `sco`: service, container (a table, for one), object (an entity).
    pub resource_types: Letters,
    /// Letters such as `rwdlacup`.
    pub permissions: Letters,
}

/// A shared access signature over one table. Its own times were checked; the table service checks
/// those of a stored access policy, as it stores them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableGrant {
    /// The table, in lower case.
    pub table: String,
    /// Letters of `raud`; none if the policy sets them.
    pub permissions: Option<Letters>,
    /// The stored access policy that the signature refers to.
    pub policy: Option<PolicyRef>,
    /// The entities that it covers.
    pub range: KeyRange,
}

/// A shared access signature over the messages of one queue. Its own times were checked; the queue
/// service checks those of a stored access policy, as it stores them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueueGrant {
    /// The queue.
    pub queue: String,
    /// Letters of `raup`; none if the policy sets them.
    pub permissions: Option<Letters>,
    /// The stored access policy that the signature refers to.
    pub policy: Option<PolicyRef>,
}

/// A reference to a stored access policy, which is checked before anything else about a signature
/// that is authentic and valid now. Start, expiry and permissions must each be set in exactly one
/// place, so it contains which of them the signature sets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PolicyRef {
    /// The id of the policy.
    pub id: String,
    /// Whether the signature sets a start.
    pub has_start: bool,
    /// Whether the signature sets an expiry.
    pub has_expiry: bool,
    /// The error if the policy completes the signature: a check after that of the policy has
    /// failed. It replaces the permissions of the signature.
    pub denied: Option<Denied>,
}

impl PolicyRef {
    /// Whether the checks after that of the policy were passed.
    ///
    /// # Errors
    /// The error of the first check that failed.
    pub fn passed(&self) -> Result<(), Fault> {
        self.denied.clone().map_or(Ok(()), |denied| Err(denied.into()))
    }
}

/// A failed check of a signature that comes after that of its stored access policy, and was
/// evaluated before it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Denied {
    /// The reason of the error.
    pub reason: Reason,
    /// The error text.
    pub message: String,
}

impl From<Denied> for Fault {
    fn from(denied: Denied) -> Self {
        Self::new(denied.reason, denied.message)
    }
}

/// A range of entities by key, both ends included; an end that is absent does not bound. A row key
/// counts only with its partition key.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct KeyRange {
    /// Lowest partition key (`spk`).
    pub start_partition_key: Option<String>,
    /// Lowest row key in the lowest partition (`srk`).
    pub start_row_key: Option<String>,
    /// Highest partition key (`epk`).
    pub end_partition_key: Option<String>,
    /// Highest row key in the highest partition (`erk`).
    pub end_row_key: Option<String>,
}

/// A set of lower-case letters, such as the permissions of a signature.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub struct Letters(u32);

impl Letters {
    /// The letters of `text`; none if it has anything but lower-case ASCII letters, or repeats one.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        text.bytes().try_fold(Self::default(), |set, letter| {
            let bit = bit(letter)?;
            (set.0 & bit == 0).then_some(Self(set.0 | bit))
        })
    }

    /// Whether the set contains `letter`.
    #[must_use]
    pub fn has(self, letter: char) -> bool {
        u8::try_from(letter).ok().and_then(bit).is_some_and(|bit| self.0 & bit != 0)
    }

    /// Whether the set is empty.
    #[must_use]
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    fn iter(self) -> impl Iterator<Item = char> {
        ('a'..='z').filter(move |letter| self.has(*letter))
    }
}

fn bit(letter: u8) -> Option<u32> {
    letter.is_ascii_lowercase().then(|| 1 << (letter - b'a'))
}

/// The letters in alphabetical order.
impl fmt::Display for Letters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.iter().try_for_each(|letter| write!(f, "{letter}"))
    }
}

impl fmt::Debug for Letters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Letters({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_are_a_set() {
        let letters = Letters::parse("raud").expect("letters");
        assert!(letters.has('r') && letters.has('d') && !letters.has('w') && !letters.has('é'));
        assert_eq!(letters, Letters::parse("duar").expect("letters"));
        assert_eq!(letters.to_string(), "adru");
        assert!(Letters::parse("").is_some_and(Letters::is_empty));
    }

    #[test]
    fn rejects_other_characters_and_repeated_letters() {
        for text in ["rr", "R", "r,a", "é", "r a"] {
            assert_eq!(Letters::parse(text), None, "{text}");
        }
    }
}
