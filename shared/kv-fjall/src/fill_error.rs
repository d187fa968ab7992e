//! Why rows were not written to a new store.

use trestle_kv::limits::{KEY_BYTES_MAX, VALUE_BYTES_MAX};

/// Rows that were not written.
#[derive(Debug, thiserror::Error)]
pub enum FillError {
    /// The store was created without such a keyspace.
    #[error("there is no such keyspace: keyspace=`{keyspace}`")]
    UnknownKeyspace {
        /// The name.
        keyspace: String,
    },
    /// It was filled before, or changes were applied to it. A keyspace is filled once, also where that failed.
    #[error("a keyspace is filled once: keyspace=`{keyspace}`")]
    Repeated {
        /// The name.
        keyspace: &'static str,
    },
    /// A key is not greater than the one before it.
    #[error("rows must ascend by key: keyspace=`{keyspace}`, key=`{key}`")]
    Unordered {
        /// The name.
        keyspace: &'static str,
        /// The key, for people.
        key: String,
    },
    /// The kind of a key is not of the keyspace, or there is none.
    #[error("the key is of another keyspace: keyspace=`{keyspace}`, key=`{key}`")]
    WrongKind {
        /// The name.
        keyspace: &'static str,
        /// The key, for people.
        key: String,
    },
    /// A row is bigger than an engine stores.
    #[error(
        "a row is too big: keyspace=`{keyspace}`, key_bytes=`{key_bytes}`, most=`{KEY_BYTES_MAX}`, \
         value_bytes=`{value_bytes}`, most=`{VALUE_BYTES_MAX}`"
    )]
    TooBig {
        /// The name.
        keyspace: &'static str,
        /// The length of the key.
        key_bytes: usize,
        /// The length of the value.
        value_bytes: usize,
    },
    /// The database could not write.
    #[error("rows cannot be written: keyspace=`{keyspace}`, {reason}")]
    Write {
        /// The name.
        keyspace: &'static str,
        /// The error of the database.
        reason: String,
    },
    /// A change is of no keyspace, or of several.
    #[error("a change cannot be applied: {reason}")]
    Rejected {
        /// The key or the span, for people.
        reason: String,
    },
    /// The database could not write or read what changes need.
    #[error("changes cannot be applied: {reason}")]
    Apply {
        /// The error of the database.
        reason: String,
    },
}
