//! Every key of the blob service, and the domains that they belong to.
//!
//! The first byte of a key is its kind. Kinds are part of the disk format: never renumber, never reuse.
//!
//! | kind | key after the kind | value |
//! |---|---|---|
//! | 0x50 container | account, name | `ContainerRecord` |
//! | 0x51 deleted container | container id u64 | version 1, ticks u64 |
//! | 0x52 next id | which u8 | version 1, id u64 |
//! | 0x53 block of content ids | first id u64 | version 1, ticks u64 of its allocation |
//! | 0x54 live content | content id u64 | version 1, length u64 |
//! | 0x55 service properties | account | see `service_properties` of the shared crate |
//! | 0x56 data protection | account | `Retention` |
//! | 0x57 tag | container id u64, tag key, tag value, container id u64, name of the blob | version 1, 0 |
//! | 0x58 blob | container id u64, name | `BlobRecord` |
//! | 0x59 staging | container id u64, name | `Staging` |
//! | 0x5A staged block | container id u64, name, generation u64, block id | `Part` |
//! | 0x5B retired | container id u64, name, ticks u64 | `Retired` |
//! | 0x5C past state | container id u64, name, ticks u64 | `BlobRecord` of a snapshot |
//! | 0x5D retired, may be shared | container id u64, name, ticks u64 of change and state | `Retired` |
//! | 0x5E soft-deleted | container id u64, name, ticks u64 of the state or 0 | version 1, ticks u64 of its expiry |
//! | 0x5F compaction due | container id u64, name | version 1, ticks u64 |
//! | 0x60 inline content | container id u64, name; ticks u64 of a past state | CRC-64 u64, bytes |
//! | 0x61 block list | container id u64, name, number u64 | list of `StoredBlock` |
//! | 0x62 piece | container id u64, name, generation u64, end u64, form u8 | 0: CRC-64 u64, bytes; 1: `Part` |
//! | 0x63 chunk of pages | container id u64, name, generation u64, index u64, epoch u64 | see `pages::chunk` |
//! | 0x64 deleted container that can be restored | account, name, container id u64 | `ContainerRecord` |
//! | 0x65 settings of REST | account | `RestSettings` |
//!
//! A piece of an append blob has the offset behind its last byte in its key, so the piece with a byte is the first one
//! behind that byte.
//!
//! A name of a blob, and the key and the value of a tag, are stored as their UTF-8 bytes, 00 as 00 FF, and end with
//! 00 01: they sort by their bytes. All keys
//! with a container id and a name form one domain, the blob; each other key is a domain of its own. No change of a blob
//! touches a domain that blobs share.

mod accounts;
mod tags;
#[cfg(test)]
mod tests;

use std::ops::Range;

use bytes::Bytes;
use trestle_kv::{Domain, DomainRef, Keyspace, Span, after_prefix, key_domain, order};
use trestle_model::time::Ticks;

pub(crate) use self::accounts::{
    all_containers, container, container_account, container_name_of, containers,
    every_soft_deleted_container, protection, rest_settings, service_properties,
    soft_deleted_container, soft_deleted_containers,
};
pub(crate) use self::tags::{tag_row, tag_value_end, tag_values, tagged_blob_of};
use crate::{
    error::BlobError,
    names::BlobName,
    record::{ContainerId, ContentId},
};

const CONTAINER: u8 = 0x50;
const DELETED_CONTAINER: u8 = 0x51;
const NEXT_ID: u8 = 0x52;
const CONTENT_IDS: u8 = 0x53;
const LIVE: u8 = 0x54;
const SERVICE_PROPERTIES: u8 = 0x55;
const PROTECTION: u8 = 0x56;
const TAG: u8 = 0x57;
const BLOB: u8 = 0x58;
const STAGING: u8 = 0x59;
const STAGED_BLOCK: u8 = 0x5A;
const RETIRED: u8 = 0x5B;
const PAST: u8 = 0x5C;
const SHARED_RETIRED: u8 = 0x5D;
const SOFT_DELETED: u8 = 0x5E;
const COMPACTION: u8 = 0x5F;
const INLINE: u8 = 0x60;
const BLOCK_LIST: u8 = 0x61;
const PIECE: u8 = 0x62;
const CHUNK: u8 = 0x63;
const SOFT_DELETED_CONTAINER: u8 = 0x64;
const REST_SETTINGS: u8 = 0x65;

/// Version byte of the numbers in this file.
const VERSION: u8 = 1;
const ESCAPED_ZERO: u8 = 0xFF;
const TERMINATOR: u8 = 0x01;
/// Kind and container id.
const HEAD_BYTES: usize = 9;

/// The keyspaces of this service: records, and the contents of small blobs with the lists of blocks.
pub const KEYSPACES: &[Keyspace] = &[
    Keyspace { name: "blob_meta", kinds: 0x50..=0x5F, domain: domain_of },
    Keyspace { name: "blob_data", kinds: 0x60..=0x67, domain: domain_of },
];

/// A kind of rows under the name of a blob.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BlobRow {
    /// Records.
    Record = BLOB as isize,
    /// Staged blocks as a whole.
    Staging = STAGING as isize,
    /// Staged blocks.
    StagedBlock = STAGED_BLOCK as isize,
    /// What changes left behind.
    Retired = RETIRED as isize,
    /// Past states of blobs.
    Past = PAST as isize,
    /// What changes left behind of contents that other states of the blob may share.
    SharedRetired = SHARED_RETIRED as isize,
    /// Deleted states that can be restored.
    SoftDeleted = SOFT_DELETED as isize,
    /// Contents of small blobs.
    Inline = INLINE as isize,
    /// Lists of blocks.
    BlockList = BLOCK_LIST as isize,
    /// That pieces of an append blob can be compacted.
    Compaction = COMPACTION as isize,
    /// Pieces of append blobs.
    Piece = PIECE as isize,
    /// Chunks of page blobs.
    Chunk = CHUNK as isize,
}

impl BlobRow {
    fn kind(self) -> u8 {
        match self {
            Self::Record => BLOB,
            Self::Staging => STAGING,
            Self::StagedBlock => STAGED_BLOCK,
            Self::Retired => RETIRED,
            Self::Past => PAST,
            Self::SharedRetired => SHARED_RETIRED,
            Self::SoftDeleted => SOFT_DELETED,
            Self::Inline => INLINE,
            Self::BlockList => BLOCK_LIST,
            Self::Compaction => COMPACTION,
            Self::Piece => PIECE,
            Self::Chunk => CHUNK,
        }
    }
}

/// The kind of a row with the record of a blob, of a past state, or of staged blocks.
pub(crate) fn kind_of(key: &[u8]) -> Option<BlobRow> {
    let kinds = [BlobRow::Record, BlobRow::Past, BlobRow::Staging];
    kinds.into_iter().find(|row| key.first() == Some(&row.kind()))
}

/// The domain of a key: the blob, if the key contains the name of one.
fn domain_of(key: &[u8]) -> DomainRef<'_> {
    if key.first() == Some(&TAG) {
        let part = tags::blob_part(key);
        return part.map_or_else(|| key_domain(key), |part| DomainRef { group: BLOB, part });
    }
    let is_of_blob = matches!(
        key.first(),
        Some(
            &(BLOB
                | STAGING
                | STAGED_BLOCK
                | RETIRED
                | PAST
                | SHARED_RETIRED
                | SOFT_DELETED
                | COMPACTION
                | INLINE
                | BLOCK_LIST
                | PIECE
                | CHUNK)
        )
    );
    let part = is_of_blob.then(|| key.get(1..name_end(key)?)).flatten();
    part.map_or_else(|| key_domain(key), |part| DomainRef { group: BLOB, part })
}

/// The end of the name in a key of a blob.
fn name_end(key: &[u8]) -> Option<usize> {
    let name = key.get(HEAD_BYTES..)?;
    let mark = name.windows(2).position(|pair| pair == [0, TERMINATOR])?;
    Some(HEAD_BYTES + mark + 2)
}

/// The domain of every row of a blob.
pub(crate) fn blob_domain(container: ContainerId, name: &BlobName) -> Domain {
    Domain::of_key(&blob_row(BlobRow::Record, container, name, &[]), domain_of)
}

/// The domain of a key that contains no name of a blob.
pub(crate) fn own_domain(key: &Bytes) -> Domain {
    Domain::of_key(key, domain_of)
}

fn push_name(key: &mut Vec<u8>, name: &str) {
    for byte in name.bytes() {
        key.push(byte);
        if byte == 0 {
            key.push(ESCAPED_ZERO);
        }
    }
}

/// Key of a row of a blob, with the numbers that follow its name.
pub(crate) fn blob_row(
    row: BlobRow,
    container: ContainerId,
    name: &BlobName,
    numbers: &[u64],
) -> Bytes {
    let mut key = Vec::with_capacity(HEAD_BYTES + name.as_str().len() + 2 + 8 * numbers.len());
    key.push(row.kind());
    order::push_u64(&mut key, container.0);
    push_name(&mut key, name.as_str());
    key.extend_from_slice(&[0, TERMINATOR]);
    for number in numbers {
        order::push_u64(&mut key, *number);
    }
    key.into()
}

/// Key of a staged block.
pub(crate) fn staged_block(
    container: ContainerId,
    name: &BlobName,
    generation: u64,
    block: &[u8],
) -> Bytes {
    let mut key = blob_row(BlobRow::StagedBlock, container, name, &[generation]).to_vec();
    key.extend_from_slice(block);
    key.into()
}

/// The id of the block in a key of [`staged_block`].
pub(crate) fn block_of(key: &Bytes) -> Result<Bytes, BlobError> {
    let start = name_end(key).map(|end| end + 8).filter(|start| *start <= key.len());
    start.map(|start| key.slice(start..)).ok_or_else(|| BlobError::corrupt("key of a staged block"))
}

/// The generation behind the name in a key of a row.
pub(crate) fn generation_of(key: &[u8]) -> Result<u64, BlobError> {
    let number = || order::take_u64(&mut key.get(name_end(key)?..)?);
    number().ok_or_else(|| BlobError::corrupt("key with a generation"))
}

/// The staged blocks of one generation.
pub(crate) fn staged_blocks(container: ContainerId, name: &BlobName, generation: u64) -> Span {
    Span::prefix(&blob_row(BlobRow::StagedBlock, container, name, &[generation]))
}

/// The form of a piece of an append blob.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PieceForm {
    /// A checksum and the bytes.
    Bytes,
    /// Where the bytes are.
    Object,
}

/// Key of a piece of an append blob that ends at this offset.
pub(crate) fn piece(
    container: ContainerId,
    name: &BlobName,
    (generation, end): (u64, u64),
    form: PieceForm,
) -> Bytes {
    let mut key = blob_row(BlobRow::Piece, container, name, &[generation, end]).to_vec();
    key.push(match form {
        PieceForm::Bytes => 0,
        PieceForm::Object => 1,
    });
    key.into()
}

/// The pieces of an append blob that end after this offset.
pub(crate) fn pieces_after(
    container: ContainerId,
    name: &BlobName,
    (generation, offset): (u64, u64),
) -> Span {
    let all = Span::prefix(&blob_row(BlobRow::Piece, container, name, &[generation]));
    let after = offset.saturating_add(1);
    Span::new(blob_row(BlobRow::Piece, container, name, &[generation, after]), all.end)
}

/// The end and the form in a key of [`piece`].
pub(crate) fn piece_of(key: &[u8]) -> Result<(u64, PieceForm), BlobError> {
    let fields = || {
        let mut rest = key.get(name_end(key)?..)?;
        order::take_u64(&mut rest)?;
        let end = order::take_u64(&mut rest)?;
        match rest {
            [0] => Some((end, PieceForm::Bytes)),
            [1] => Some((end, PieceForm::Object)),
            _ => None,
        }
    };
    fields().ok_or_else(|| BlobError::corrupt("key of a piece"))
}

/// Key of a chunk of a page blob: its generation, its index and its epoch.
pub(crate) fn chunk(
    container: ContainerId,
    name: &BlobName,
    (generation, index, epoch): (u64, u64, u64),
) -> Bytes {
    blob_row(BlobRow::Chunk, container, name, &[generation, index, epoch])
}

/// The chunks of a page blob with these indices, by index and epoch.
pub(crate) fn chunks(
    container: ContainerId,
    name: &BlobName,
    generation: u64,
    indices: &Range<u64>,
) -> Span {
    let at = |index| blob_row(BlobRow::Chunk, container, name, &[generation, index]);
    Span::new(at(indices.start), at(indices.end))
}

/// The index and the epoch in a key of [`chunk`].
pub(crate) fn chunk_of(key: &[u8]) -> Result<(u64, u64), BlobError> {
    let numbers = || {
        let mut rest = key.get(name_end(key)?..)?;
        order::take_u64(&mut rest)?;
        Some((order::take_u64(&mut rest)?, order::take_u64(&mut rest)?))
    };
    numbers().ok_or_else(|| BlobError::corrupt("key of a chunk"))
}

/// The container and the name in a key of a blob.
pub(crate) fn blob_of(key: &[u8]) -> Result<(ContainerId, BlobName), BlobError> {
    let fields = || {
        let mut rest = key.get(1..)?;
        let container = ContainerId(order::take_u64(&mut rest)?);
        let name = key.get(HEAD_BYTES..name_end(key)?.checked_sub(2)?)?;
        let mut text = Vec::with_capacity(name.len());
        let mut bytes = name.iter();
        while let Some(byte) = bytes.next() {
            text.push(*byte);
            if *byte == 0 && bytes.next() != Some(&ESCAPED_ZERO) {
                return None;
            }
        }
        Some((container, BlobName::stored(String::from_utf8(text).ok()?)))
    };
    fields().ok_or_else(|| BlobError::corrupt("key of a blob"))
}

/// The rows of one kind of a blob whose first number is in a range.
pub(crate) fn numbered_rows(
    row: BlobRow,
    (container, name): (ContainerId, &BlobName),
    numbers: Range<u64>,
) -> Span {
    let key = |number| blob_row(row, container, name, &[number]);
    Span::new(key(numbers.start), key(numbers.end))
}

/// The rows of one kind in a container whose names start with `prefix`, by name.
pub(crate) fn named(row: BlobRow, container: ContainerId, prefix: &str) -> Span {
    Span::prefix(&name_prefix(row, container, prefix))
}

/// The first key behind every name that starts with `prefix`.
pub(crate) fn after_names(row: BlobRow, container: ContainerId, prefix: &str) -> Bytes {
    after_prefix(&name_prefix(row, container, prefix)).into()
}

fn name_prefix(row: BlobRow, container: ContainerId, prefix: &str) -> Vec<u8> {
    let mut key = vec![row.kind()];
    order::push_u64(&mut key, container.0);
    push_name(&mut key, prefix);
    key
}

/// Every row of one kind, in every container.
pub(crate) fn every(row: BlobRow) -> Span {
    Span::prefix(&[row.kind()])
}

fn numbered(kind: u8, number: u64) -> Bytes {
    let mut key = vec![kind];
    order::push_u64(&mut key, number);
    key.into()
}

/// Key of a deleted container.
pub(crate) fn deleted_container(id: ContainerId) -> Bytes {
    numbered(DELETED_CONTAINER, id.0)
}

/// Every deleted container.
pub(crate) fn deleted_containers() -> Span {
    Span::prefix(&[DELETED_CONTAINER])
}

/// The number of the next container.
pub(crate) fn next_container_id() -> Bytes {
    Bytes::from_static(&[NEXT_ID, 0])
}

/// The number of the next content.
pub(crate) fn next_content_id() -> Bytes {
    Bytes::from_static(&[NEXT_ID, 1])
}

/// Key of a block of content ids.
pub(crate) fn content_ids(first: ContentId) -> Bytes {
    numbered(CONTENT_IDS, first.0)
}

/// Every block of content ids.
pub(crate) fn every_content_ids() -> Span {
    Span::prefix(&[CONTENT_IDS])
}

/// The blobs of all containers.
pub(crate) fn every_blob() -> Span {
    Span::prefix(&[BLOB])
}

/// Every live content.
pub(crate) fn every_live() -> Span {
    Span::prefix(&[LIVE])
}

/// Key of a content that a blob or a staged block has, or that is retired.
pub(crate) fn live(content: ContentId) -> Bytes {
    numbered(LIVE, content.0)
}

/// Whether a key is one of [`live`].
pub(crate) fn is_live(key: &[u8]) -> bool {
    key.first() == Some(&LIVE)
}

/// The number in a key of [`deleted_container`], [`content_ids`] or [`live`].
pub(crate) fn number_of(key: &[u8]) -> Result<u64, BlobError> {
    let number = || order::take_u64(&mut key.get(1..)?);
    number().ok_or_else(|| BlobError::corrupt("key with a number"))
}

/// The time that follows the name in a key: of a past state, or of the change that retired something.
pub(crate) fn time_of(key: &[u8]) -> Result<Ticks, BlobError> {
    let ticks = || Ticks::new(order::take_u64(&mut key.get(name_end(key)?..)?)?);
    ticks().ok_or_else(|| BlobError::corrupt("key with a time"))
}

/// The second number that follows the name in a key, if there is one.
pub(crate) fn second_number_of(key: &[u8]) -> Option<u64> {
    let mut rest = key.get(name_end(key)?..)?;
    order::take_u64(&mut rest)?;
    order::take_u64(&mut rest)
}

/// The last number in a key of a blob.
pub(crate) fn last_number_of(key: &[u8]) -> Option<u64> {
    let numbers = key.get(name_end(key)?..)?;
    numbers.last_chunk().map(|number| u64::from_be_bytes(*number))
}

/// The stored form of a number.
pub(crate) fn encode_number(number: u64) -> Bytes {
    let mut value = vec![VERSION];
    order::push_u64(&mut value, number);
    value.into()
}

/// A number from its stored form.
///
/// # Errors
/// [`BlobError::Corrupt`]; `what` names the number.
pub(crate) fn decode_number(value: &[u8], what: &'static str) -> Result<u64, BlobError> {
    match value.split_first() {
        Some((&VERSION, rest)) => rest.try_into().map(u64::from_be_bytes).ok(),
        _ => None,
    }
    .ok_or_else(|| BlobError::corrupt(what))
}
