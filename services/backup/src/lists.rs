//! Lists of chunks and of objects. They are chunks themselves and end where the names in them decide, so that a list
//! without changes is the same one in the next backup.
//!
//! Beside each list is one of the names of the parts that it refers to, which is never encrypted: `prune` needs no key.

use bytes::Bytes;
use prost::Message;

use crate::{
    names::PartName,
    pieces::pieces,
    rules::{ObjectAreaName, ObjectName},
};

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
    /// Its [`PartName`].
    #[prost(bytes = "bytes", tag = "1")]
    pub(crate) name: Bytes,
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
    /// What the [`PartName`]s of its pieces are derived from.
    #[prost(bytes = "bytes", tag = "4")]
    pub(crate) parts: Bytes,
}

/// Damage.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct DamageList {
    /// In the order in which it was found.
    #[prost(message, repeated, tag = "1")]
    pub(crate) damage: Vec<Damage>,
}

/// An object, or the objects of a row, that are not in the backup.
#[derive(Clone, PartialEq, Eq, Hash, serde::Serialize, Message)]
pub(crate) struct Damage {
    /// Which.
    #[prost(string, tag = "1")]
    pub(crate) object: String,
    /// Why.
    #[prost(string, tag = "2")]
    pub(crate) reason: String,
}

impl ObjectRef {
    /// An object with its length in bytes and what the names of its pieces are derived from.
    pub(crate) fn new(name: &ObjectName, bytes: u64, parts: PartName) -> Self {
        let area = match name.area {
            ObjectAreaName::Blobs => 1,
            ObjectAreaName::Logs => 2,
        };
        Self { area, path: name.path.clone(), bytes, parts: parts.into() }
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

    /// Its area and its path, for people.
    pub(crate) fn shown(&self) -> String {
        let unknown = || format!("unknown/{}", self.path);
        self.name().map_or_else(unknown, |name| name.to_string())
    }
}

/// An entry of a list.
pub(crate) trait Listed: Message + Clone {
    /// The list.
    type List: Message + Default;
    /// Decides where a list ends.
    fn text(&self) -> &[u8];
    /// The names of the parts that it refers to; none of a malformed one.
    fn parts(&self) -> Option<Vec<PartName>>;
    /// A list of entries.
    fn list(entries: Vec<Self>) -> Self::List;
    /// The entries of a list.
    fn entries(list: Self::List) -> Vec<Self>;
}

impl Listed for ChunkRef {
    type List = ChunkList;

    fn text(&self) -> &[u8] {
        &self.name
    }

    fn parts(&self) -> Option<Vec<PartName>> {
        PartName::from_bytes(&self.name).map(|name| vec![name])
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

    fn text(&self) -> &[u8] {
        self.path.as_bytes()
    }

    fn parts(&self) -> Option<Vec<PartName>> {
        let object = PartName::from_bytes(&self.parts)?;
        (self.bytes <= OBJECT_BYTES_MAX).then_some(())?;
        Some(pieces(self.bytes).map(|(index, _)| object.piece(index)).collect())
    }

    fn list(objects: Vec<Self>) -> ObjectList {
        ObjectList { objects }
    }

    fn entries(list: ObjectList) -> Vec<Self> {
        list.objects
    }
}

impl Listed for Damage {
    type List = DamageList;

    fn text(&self) -> &[u8] {
        self.object.as_bytes()
    }

    fn parts(&self) -> Option<Vec<PartName>> {
        Some(Vec::new())
    }

    fn list(damage: Vec<Self>) -> DamageList {
        DamageList { damage }
    }

    fn entries(list: DamageList) -> Vec<Self> {
        list.damage
    }
}

/// A list, and the names that it refers to.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct CutList {
    /// The list.
    pub(crate) list: Vec<u8>,
    /// The bytes of the names.
    pub(crate) parts: Vec<u8>,
}

/// Collects entries into lists.
pub(crate) struct Lister<E> {
    entries: Vec<E>,
    bytes: usize,
    parts: Vec<u8>,
}

impl<E: Listed> Lister<E> {
    /// Without entries.
    pub(crate) fn new() -> Self {
        Self { entries: Vec::new(), bytes: 0, parts: Vec::new() }
    }

    /// Adds an entry. Returns a list that ends with it.
    pub(crate) fn push(&mut self, entry: E) -> Option<CutList> {
        let hash = xxhash_rust::xxh3::xxh3_64(entry.text());
        self.bytes += entry.encoded_len();
        let parts = entry.parts().unwrap_or_default();
        self.parts.extend(parts.iter().flat_map(PartName::bytes));
        self.entries.push(entry);
        let is_full =
            self.entries.len() >= ENTRIES_MAX || self.bytes.max(self.parts.len()) >= BYTES_MAX;
        (is_full || hash.is_multiple_of(END_ONE_OF)).then(|| self.cut())
    }

    /// The last list, if anything is left.
    pub(crate) fn finish(mut self) -> Option<CutList> {
        (!self.entries.is_empty()).then(|| self.cut())
    }

    fn cut(&mut self) -> CutList {
        self.bytes = 0;
        let list = E::list(std::mem::take(&mut self.entries)).encode_to_vec();
        CutList { list, parts: std::mem::take(&mut self.parts) }
    }
}

/// The names that were written beside a list; none of what are no names.
pub(crate) fn part_names(bytes: &[u8]) -> Option<Vec<PartName>> {
    let (names, rest) = bytes.as_chunks::<32>();
    rest.is_empty().then(|| names.iter().filter_map(|it| PartName::from_bytes(it)).collect())
}

/// The entries of a list; none of what is no list.
pub(crate) fn entries<E: Listed>(list: &[u8]) -> Option<Vec<E>> {
    E::List::decode(list).ok().map(E::entries)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{names::tests::name, pieces::PIECE_BYTES};

    fn object(index: usize) -> ObjectRef {
        let path = format!("path-{index}");
        let parts = name(path.as_bytes());
        ObjectRef::new(&ObjectName { area: ObjectAreaName::Logs, path }, 7, parts)
    }

    fn lists(objects: impl Iterator<Item = usize>) -> Vec<CutList> {
        let mut lister = Lister::new();
        let mut lists: Vec<_> = objects.filter_map(|index| lister.push(object(index))).collect();
        lists.extend(lister.finish());
        lists
    }

    #[test]
    fn lists_have_every_entry_once_and_in_order_and_the_names_of_its_parts() {
        let found = lists(0..10_000);
        let read = |it: &CutList| entries::<ObjectRef>(&it.list).unwrap();
        let objects: Vec<_> = found.iter().flat_map(read).collect();
        assert_eq!(objects, (0..10_000).map(object).collect::<Vec<_>>());
        let names: Vec<_> = found.iter().flat_map(|it| part_names(&it.parts).unwrap()).collect();
        assert_eq!(names, objects.iter().flat_map(|it| it.parts().unwrap()).collect::<Vec<_>>());
        assert_eq!(part_names(&[0; 33]), None);
        assert!(lists(0..0).is_empty());
        assert_eq!(objects[5].name().unwrap().area, ObjectAreaName::Logs);
    }

    #[test]
    fn entries_of_later_versions_and_impossible_ones_have_no_names() {
        let impossible = ObjectRef { bytes: u64::MAX, ..object(0) };
        assert_eq!((impossible.name(), impossible.parts()), (None, None));
        assert_eq!(ObjectRef { area: 3, ..object(0) }.name(), None);
        assert_eq!(ObjectRef { parts: Bytes::new(), ..object(0) }.parts(), None);
        let large = ObjectRef { bytes: 3 * PIECE_BYTES, ..object(0) };
        assert_eq!(large.parts().unwrap().len(), 3);
    }

    #[test]
    fn a_list_of_the_longest_keys_and_of_the_largest_objects_can_be_read() {
        let key = |first: u8| Bytes::from(vec![first; 60_000]);
        let chunk = |index: u32| ChunkRef {
            name: name(&index.to_be_bytes()).into(),
            rows: 1,
            first: key(1),
            last: key(2),
        };
        let mut lister = Lister::new();
        let mut lists: Vec<_> = (0..200).filter_map(|it| lister.push(chunk(it))).collect();
        lists.extend(lister.finish());
        let max = crate::packed::PLAIN_BYTES_MAX;
        assert!(lists.iter().all(|cut| cut.list.len() < max));
        let read = |it: &CutList| entries::<ChunkRef>(&it.list).unwrap();
        assert_eq!(lists.iter().flat_map(read).count(), 200);

        let mut lister = Lister::new();
        let large = |index| ObjectRef { bytes: OBJECT_BYTES_MAX, ..object(index) };
        let lists: Vec<_> = (0..3).filter_map(|it| lister.push(large(it))).collect();
        assert!(lists.len() == 3 && lists.iter().all(|cut| cut.parts.len() < max));
    }

    #[test]
    fn lists_without_a_change_are_the_same() {
        let (before, after) = (lists(0..20_000), lists((0..20_000).filter(|it| *it != 7)));
        let same = after.iter().filter(|list| before.contains(list)).count();
        assert!(same + 2 >= after.len() && after.len() > 10, "{same} of {}", after.len());
    }
}
