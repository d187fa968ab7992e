//! Reading and writing the fields of stored records: big-endian numbers, and texts behind their length.

use bytes::Bytes;
use trestle_model::time::Ticks;

/// Appends a text or bytes behind their length.
pub(crate) fn push_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    let length = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
    out.extend_from_slice(&length.to_be_bytes());
    out.extend_from_slice(bytes);
}

/// The unread rest of a record.
pub(crate) struct RecordReader<'a>(&'a [u8]);

impl<'a> RecordReader<'a> {
    /// The fields after the version byte; none if it is another version.
    pub(crate) fn of(value: &'a [u8], version: u8) -> Option<Self> {
        let (found, rest) = value.split_first()?;
        (*found == version).then_some(Self(rest))
    }

    /// The fields of a key after its kind; none if it is another kind.
    pub(crate) fn of_key(key: &'a [u8], kind: u8) -> Option<Self> {
        Self::of(key, kind)
    }

    fn chunk<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (chunk, rest) = self.0.split_first_chunk::<N>()?;
        self.0 = rest;
        Some(*chunk)
    }

    /// The next number of one byte.
    pub(crate) fn u8(&mut self) -> Option<u8> {
        self.chunk().map(u8::from_be_bytes)
    }

    /// The next number of four bytes.
    pub(crate) fn u32(&mut self) -> Option<u32> {
        self.chunk().map(u32::from_be_bytes)
    }

    /// The next number of eight bytes.
    pub(crate) fn u64(&mut self) -> Option<u64> {
        self.chunk().map(u64::from_be_bytes)
    }

    /// The next number of eight bytes, which is not 0.
    pub(crate) fn nonce(&mut self) -> Option<u64> {
        self.u64().filter(|nonce| *nonce != 0)
    }

    /// The next number of sixteen bytes.
    pub(crate) fn u128(&mut self) -> Option<u128> {
        self.chunk().map(u128::from_be_bytes)
    }

    /// The next point in time.
    pub(crate) fn ticks(&mut self) -> Option<Ticks> {
        Ticks::new(self.u64()?)
    }

    /// The next bytes behind their length.
    pub(crate) fn bytes(&mut self) -> Option<&'a [u8]> {
        let length = usize::try_from(self.u32()?).ok()?;
        let (bytes, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(bytes)
    }

    /// The next text.
    pub(crate) fn text(&mut self) -> Option<String> {
        std::str::from_utf8(self.bytes()?).ok().map(str::to_owned)
    }

    /// Whether the rest is empty.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The whole rest.
    pub(crate) fn rest(self) -> &'a [u8] {
        self.0
    }

    /// `value`, if the rest is empty.
    pub(crate) fn end<T>(self, value: T) -> Option<T> {
        self.0.is_empty().then_some(value)
    }
}

/// A record of one number.
pub(crate) fn number(version: u8, number: u64) -> Bytes {
    let mut value = vec![version];
    value.extend_from_slice(&number.to_be_bytes());
    value.into()
}
