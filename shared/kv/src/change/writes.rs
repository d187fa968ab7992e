//! What a change writes.

use bytes::Bytes;

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
