//! One change of a change log.

use bytes::Bytes;

use trestle_kv::{Entry, Span};

/// What one change of a log does to a store. Changes apply in the order in which they were logged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LoggedChange {
    /// Sets a key.
    Put(Entry),
    /// Removes a key; one that is absent is not an error.
    Delete(Bytes),
    /// Removes every row of a span, which lies in one keyspace.
    Discard(Span),
}
