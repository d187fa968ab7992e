//! What a group changes of the rows of a keyspace, and the statements for it.
//!
//! Rows are protected by the domains of their keys. Pointers are not: see `place`. They are locked by one statement, in
//! their order, after every domain and before the floor of versions, so no two transactions wait for each other. What
//! a layer has is read by a later statement, which sees what was committed before the lock was there; whoever writes a
//! row below a pointer had locked it before that commit.

use bytes::Bytes;
use trestle_kv::Keyspaces;

use crate::{
    failure::Failure,
    group::GroupWrites,
    pipeline::PipelinedRequest,
    place::{place, range_below},
    schema::stored,
    session::WriteSession,
};

/// Values of a statement that sets rows, in bytes: more are sent in several.
const STATEMENT_BYTES: usize = 4 * 1024 * 1024;

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct RowChanges {
    /// Keys, values and versions, in the order of the keys.
    set: Vec<(Bytes, Bytes, i64)>,
    /// The pointers to every row that is set or removed.
    pointers: Vec<Bytes>,
    removed: Vec<Bytes>,
    /// Pointers whose layers may be empty after that, by their depth: whether one of the deepest remains decides about
    /// those above it.
    emptied: Vec<Vec<Bytes>>,
}

impl RowChanges {
    /// Those of each keyspace.
    pub(crate) fn of(writes: &GroupWrites, keyspaces: &Keyspaces) -> Vec<Self> {
        let mut all: Vec<_> = keyspaces.list().iter().map(|_| Self::default()).collect();
        for (key, (value, version)) in writes {
            let Some(rows) = keyspaces.index_of(key).and_then(|index| all.get_mut(index)) else {
                continue;
            };
            let place = place(key);
            match value {
                Some(value) => {
                    rows.pointers.extend(place.pointers);
                    rows.set.push((place.row, value.clone(), stored(version.ticks())));
                }
                None => {
                    rows.removed.push(place.row);
                    let depth = place.pointers.len().max(rows.emptied.len());
                    rows.emptied.resize_with(depth, Vec::new);
                    for (emptied, pointer) in rows.emptied.iter_mut().zip(place.pointers) {
                        emptied.push(pointer);
                    }
                }
            }
        }
        for rows in &mut all {
            rows.sort();
        }
        all
    }

    /// In one order in every process, so that no two wait for each other's rows.
    fn sort(&mut self) {
        sort_once(&mut self.pointers);
        for emptied in &mut self.emptied {
            sort_once(emptied);
            // What is set below a pointer keeps it.
            emptied.retain(|pointer| self.pointers.binary_search(pointer).is_err());
        }
        self.pointers.extend(self.emptied.iter().flatten().cloned());
        self.pointers.sort_unstable();
        self.set.sort_unstable_by(|a, b| a.0.cmp(&b.0));
        self.removed.sort_unstable();
    }

    /// Adds the requests that change the rows, to be sent in their order.
    pub(crate) fn send<'a>(
        &'a self,
        session: &'a WriteSession,
        keyspace: usize,
        requests: &mut Vec<PipelinedRequest<'a>>,
    ) -> Result<(), Failure> {
        let statements = session.of(keyspace)?;
        let client = session.client();
        for part in parts(&self.set) {
            requests.push(Box::pin(async move {
                let keys: Vec<&[u8]> = part.iter().map(|(key, ..)| &key[..]).collect();
                let values: Vec<&[u8]> = part.iter().map(|(_, value, _)| &value[..]).collect();
                let versions: Vec<i64> = part.iter().map(|(.., version)| *version).collect();
                client.execute(&statements.upsert, &[&keys, &values, &versions]).await?;
                Ok(())
            }));
        }
        for (rows, statement) in
            [(&self.pointers, &statements.point), (&self.removed, &statements.delete)]
        {
            if !rows.is_empty() {
                requests.push(Box::pin(async move {
                    client.execute(statement, &[&slices(rows)]).await?;
                    Ok(())
                }));
            }
        }
        for pointers in self.emptied.iter().rev().filter(|pointers| !pointers.is_empty()) {
            requests.push(Box::pin(async move {
                let ranges = pointers.iter().filter_map(|pointer| range_below(pointer));
                let (first, after): (Vec<_>, Vec<_>) = ranges.unzip();
                let first: Vec<&[u8]> = first.iter().map(|prefix| &prefix[..]).collect();
                client.execute(&statements.unpoint, &[&slices(pointers), &first, &after]).await?;
                Ok(())
            }));
        }
        Ok(())
    }
}

fn sort_once(rows: &mut Vec<Bytes>) {
    rows.sort_unstable();
    rows.dedup();
}

/// Rows in parts that are not too large for a statement.
fn parts(mut rows: &[(Bytes, Bytes, i64)]) -> Vec<&[(Bytes, Bytes, i64)]> {
    let mut parts = Vec::new();
    while !rows.is_empty() {
        let mut bytes = 0;
        let fits = rows.iter().take_while(|(_, value, _)| {
            let is_first = bytes == 0;
            bytes += value.len().max(1);
            is_first || bytes <= STATEMENT_BYTES
        });
        let (part, rest) = rows.split_at(fits.count());
        parts.push(part);
        rows = rest;
    }
    parts
}

/// Rows as an argument of a statement.
pub(crate) fn slices(rows: &[Bytes]) -> Vec<&[u8]> {
    rows.iter().map(|row| &row[..]).collect()
}

#[cfg(test)]
mod tests;
