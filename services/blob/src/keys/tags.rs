//! Keys of the index of tags: the container, the tag, and then the blob, with the bytes that its other keys have.

use bytes::Bytes;
use trestle_kv::{Span, after_prefix, order};

use super::{TAG, TERMINATOR, blob_of, push_name};
use crate::{blobs::BlobKey, error::BlobError, record::ContainerId};

/// Kind and container id.
const HEAD_BYTES: usize = 9;

/// Key of a tag of a blob.
pub(crate) fn tag_row(blob: &BlobKey, (key, value): &(String, String)) -> Bytes {
    let mut row = values(blob.container, key);
    push_text(&mut row, value);
    order::push_u64(&mut row, blob.container.0);
    push_text(&mut row, blob.name.as_str());
    row.into()
}

/// The rows of a tag in a container, from the first value on.
pub(crate) fn tag_values(container: ContainerId, key: &str) -> Span {
    Span::prefix(&values(container, key))
}

/// Where the rows of a value begin, and the first key behind them.
pub(crate) fn tag_value_end(container: ContainerId, key: &str, value: &str) -> (Bytes, Bytes) {
    let mut row = values(container, key);
    push_text(&mut row, value);
    let end = after_prefix(&row);
    (row.into(), end.into())
}

/// The blob in a key of [`tag_row`].
pub(crate) fn tagged_blob_of(key: &[u8]) -> Result<BlobKey, BlobError> {
    let part = blob_part(key).ok_or_else(|| BlobError::corrupt("key of a tag"))?;
    // As a key of the blob.
    let (container, name) = blob_of(&[&[TAG], part].concat())?;
    Ok(BlobKey { container, name })
}

/// The container and the name of the blob, as in its other keys.
pub(super) fn blob_part(key: &[u8]) -> Option<&[u8]> {
    let mut rest = key.get(HEAD_BYTES..)?;
    for _ in 0..2 {
        let end = rest.windows(2).position(|pair| pair == [0, TERMINATOR])?;
        rest = rest.get(end + 2..)?;
    }
    Some(rest)
}

fn values(container: ContainerId, key: &str) -> Vec<u8> {
    let mut row = vec![TAG];
    order::push_u64(&mut row, container.0);
    push_text(&mut row, key);
    row
}

fn push_text(key: &mut Vec<u8>, text: &str) {
    push_name(key, text);
    key.extend_from_slice(&[0, TERMINATOR]);
}
