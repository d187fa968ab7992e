//! Lists of chunks and of objects. They are chunks themselves and end where the names in them decide, so that a list
//! without changes is the same one in the next backup.

use bytes::Bytes;
use prost::Message;

use crate::{ObjectAreaName, ObjectName};

/// Most entries of a list.
const ENTRIES_MAX: usize = 4096;
/// A list ends at once when it has this length, in bytes: keys are long in some tables.
const BYTES_MAX: usize = 4 * 1024 * 1024;
/// Most bytes of an object: far above any that exists, and its pieces are few enough to be named.
const OBJECT_BYTES_MAX: u64 = 1 << 40;
/// One name of this number ends a list.
const END_ONE_OF: u64 = 1024;

/// The chunks of a keyspace.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct ChunkList {
    /// In the order of their rows.
    #[prost(message, repeated, tag = "1")]
    pub(crate) chunks: Vec<ChunkRef>,
}

/// A chunk.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct ChunkRef {
    /// Its name.
    #[prost(string, tag = "1")]
    pub(crate) name: String,
    /// Its rows.
    #[prost(uint64, tag = "2")]
    pub(crate) rows: u64,
    /// The first key.
    #[prost(bytes = "bytes", tag = "3")]
    pub(crate) first: Bytes,
    /// The last key.
    #[prost(bytes = "bytes", tag = "4")]
    pub(crate) last: Bytes,
}

/// Objects.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct ObjectList {
    /// In the order of their areas and paths.
    #[prost(message, repeated, tag = "1")]
    pub(crate) objects: Vec<ObjectRef>,
}

/// An object.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct ObjectRef {
    /// 1: blobs, 2: logs.
    #[prost(uint32, tag = "1")]
    area: u32,
    /// Its path there.
    #[prost(string, tag = "2")]
    pub(crate) path: String,
    /// Its bytes.
    #[prost(uint64, tag = "3")]
    pub(crate) bytes: u64,
    /// A hash of what its store distinguishes it by from another one of this name.
    #[prost(fixed64, tag = "4")]
    pub(crate) mark: u64,
}

impl ObjectRef {
    /// An object with its length in bytes and its mark.
    pub(crate) fn new(name: &ObjectName, (bytes, mark): (u64, u64)) -> Self {
        let area = match name.area {
            ObjectAreaName::Blobs => 1,
            ObjectAreaName::Logs => 2,
        };
        Self { area, path: name.path.clone(), bytes, mark }
    }

    /// Its name; none in a list of a later version, with another area or an impossible length.
    pub(crate) fn name(&self) -> Option<ObjectName> {
        if self.bytes > OBJECT_BYTES_MAX {
            return None;
        }
        let area = match self.area {
            1 => ObjectAreaName::Blobs,
            2 => ObjectAreaName::Logs,
            _ => return None,
        };
        Some(ObjectName { area, path: self.path.clone() })
    }
}

/// An entry of a list.
pub(crate) trait Listed: Message + Sized {
    /// The list.
    type List: Message + Default;
    /// Decides where a list ends.
    fn text(&self) -> &str;
    /// A list of entries.
    fn list(entries: Vec<Self>) -> Self::List;
    /// The entries of a list.
    fn entries(list: Self::List) -> Vec<Self>;
}

impl Listed for ChunkRef {
    type List = ChunkList;

    fn text(&self) -> &str {
        &self.name
    }

    fn list(chunks: Vec<Self>) -> ChunkList {
        ChunkList { chunks }
    }

    fn entries(list: ChunkList) -> Vec<Self> {
        list.chunks
    }
}

impl Listed for ObjectRef {
    type List = ObjectList;

    fn text(&self) -> &str {
        &self.path
    }

    fn list(objects: Vec<Self>) -> ObjectList {
        ObjectList { objects }
    }

    fn entries(list: ObjectList) -> Vec<Self> {
        list.objects
    }
}

/// Collects entries into lists.
pub(crate) struct Lister<E> {
    entries: Vec<E>,
    bytes: usize,
}

impl<E: Listed> Lister<E> {
    /// Without entries.
    pub(crate) fn new() -> Self {
        Self { entries: Vec::new(), bytes: 0 }
    }

    /// Adds an entry. Returns a list that ends with it.
    pub(crate) fn push(&mut self, entry: E) -> Option<Vec<u8>> {
        let hash = xxhash_rust::xxh3::xxh3_64(entry.text().as_bytes());
        self.bytes += entry.encoded_len();
        self.entries.push(entry);
        let is_full = self.entries.len() >= ENTRIES_MAX || self.bytes >= BYTES_MAX;
        (is_full || hash.is_multiple_of(END_ONE_OF)).then(|| self.cut())
    }

    /// The last list, if anything is left.
    pub(crate) fn finish(mut self) -> Option<Vec<u8>> {
        (!self.entries.is_empty()).then(|| self.cut())
    }

    fn cut(&mut self) -> Vec<u8> {
        self.bytes = 0;
        E::list(std::mem::take(&mut self.entries)).encode_to_vec()
    }
}

/// The entries of a list; none of what is no list.
pub(crate) fn entries<E: Listed>(list: &[u8]) -> Option<Vec<E>> {
    E::List::decode(list).ok().map(E::entries)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(index: usize) -> ObjectRef {
        let path = format!("path-{index}");
        ObjectRef::new(&ObjectName { area: ObjectAreaName::Logs, path }, (7, 9))
    }

    fn lists(objects: impl Iterator<Item = usize>) -> Vec<Vec<u8>> {
        let mut lister = Lister::new();
        let mut lists: Vec<_> = objects.filter_map(|index| lister.push(object(index))).collect();
        lists.extend(lister.finish());
        lists
    }

    #[test]
    fn lists_have_every_entry_once_and_in_order() {
        let found = lists(0..10_000);
        let entries: Vec<ObjectRef> = found.iter().flat_map(|it| entries(it).unwrap()).collect();
        assert_eq!(entries, (0..10_000).map(object).collect::<Vec<_>>());
        assert!(lists(0..0).is_empty());
        assert_eq!(entries[5].name().unwrap().area, ObjectAreaName::Logs);
        assert_eq!(ObjectRef { bytes: u64::MAX, ..object(0) }.name(), None);
        assert_eq!(ObjectRef { area: 3, ..object(0) }.name(), None);
    }

    #[test]
    fn a_list_of_the_longest_keys_can_be_read() {
        let key = |first: u8| Bytes::from(vec![first; 60_000]);
        let chunk = |index: usize| ChunkRef {
            name: format!("{index:064x}"),
            rows: 1,
            first: key(1),
            last: key(2),
        };
        let mut lister = Lister::new();
        let mut lists: Vec<_> = (0..200).filter_map(|it| lister.push(chunk(it))).collect();
        lists.extend(lister.finish());
        assert!(lists.iter().all(|list| list.len() < crate::packed::PLAIN_BYTES_MAX));
        assert_eq!(lists.iter().flat_map(|it| entries::<ChunkRef>(it).unwrap()).count(), 200);
    }

    #[test]
    fn lists_without_a_change_are_the_same() {
        let (before, after) = (lists(0..20_000), lists((0..20_000).filter(|it| *it != 7)));
        let same = after.iter().filter(|list| before.contains(list)).count();
        assert!(same + 2 >= after.len() && after.len() > 10, "{same} of {}", after.len());
    }
}
