//! Counts of rows by the first byte of their keys, which determines their kind and keyspace.

use std::fmt::Write as _;

use trestle_kv::Keyspaces;

/// The kind of the engine's own rows, such as heartbeats.
const OWN_KIND: usize = 0;

/// How many rows of each kind were counted.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct RowsByKind(Box<[u64; 256]>);

impl Default for RowsByKind {
    fn default() -> Self {
        Self(Box::new([0; 256]))
    }
}

impl std::fmt::Debug for RowsByKind {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let counted = self.0.iter().enumerate().filter(|(_, rows)| **rows > 0);
        out.debug_map().entries(counted).finish()
    }
}

impl RowsByKind {
    pub(super) fn clear(&mut self) {
        self.0.fill(0);
    }

    pub(super) fn count(&mut self, kind: u8) {
        if let Some(rows) = self.0.get_mut(usize::from(kind)) {
            *rows += 1;
        }
    }

    pub(crate) fn add(&mut self, other: &Self) {
        for (rows, more) in self.0.iter_mut().zip(other.0.iter()) {
            *rows += more;
        }
    }

    /// The rows of each keyspace, such as `table=3, queue=1`; `none` without any.
    pub(crate) fn by_keyspace(&self, keyspaces: &Keyspaces) -> String {
        let mut text = String::new();
        for keyspace in keyspaces.list() {
            let kinds = keyspace.kinds.clone().map(usize::from).filter(|kind| *kind != OWN_KIND);
            let rows: u64 = kinds.filter_map(|kind| self.0.get(kind)).sum();
            if rows > 0 {
                let comma = if text.is_empty() { "" } else { ", " };
                let _ = write!(text, "{comma}{}={rows}", keyspace.name);
            }
        }
        if text.is_empty() { "none".to_owned() } else { text }
    }
}
