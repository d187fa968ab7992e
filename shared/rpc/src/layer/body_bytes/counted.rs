//! Parts of bodies that count for a pool of bytes until they are dropped.

use bytes::Bytes;
use http_body::Frame;

use super::super::shares::Share;

/// A part that returns its bytes to their pool when it is dropped.
pub(super) fn counted(data: Bytes, share: Share) -> Frame<Bytes> {
    Frame::data(Bytes::from_owner(CountedPart { data, _share: share }))
}

struct CountedPart {
    data: Bytes,
    _share: Share,
}

impl AsRef<[u8]> for CountedPart {
    fn as_ref(&self) -> &[u8] {
        &self.data
    }
}
