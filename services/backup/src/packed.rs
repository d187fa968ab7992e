//! How a chunk, a piece of an object, a list or a manifest is stored.
//!
//! ```text
//! TRB1 | codec u8 | length u64 | SHA-256 of the path, a zero byte, and the plain bytes | body
//! ```
//!
//! An encrypted part is the encryption of that. Numbers are big-endian. The body is the plain bytes (codec 0) or a zstd
//! frame of them (codec 1).
//! A part in the place of another one is as wrong as a changed one.

use ring::digest::{Context, Digest, SHA256};

use crate::sealed::OVERHEAD_MAX;

const MAGIC: &[u8; 4] = b"TRB1";
const HEAD_BYTES: usize = 4 + 1 + 8 + 32;
const RAW: u8 = 0;
const ZSTD: u8 = 1;

/// Most bytes of a stored part: one that does not compress is stored as it is, or encrypted.
pub(crate) const STORED_BYTES_MAX: u64 = (PLAIN_BYTES_MAX + HEAD_BYTES + OVERHEAD_MAX) as u64;

/// Most plain bytes: a run of rows may end with one of 8 MiB.
pub(crate) const PLAIN_BYTES_MAX: usize = 13 * 1024 * 1024;

/// What was read is not what was stored.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum UnreadablePart {
    /// It has another format: a foreign file, or one of a later version.
    #[error("it is no part of a backup, or of a later version")]
    Foreign,
    /// It was changed.
    #[error("it was changed since it was written: {0}")]
    Changed(&'static str),
}

/// The stored form of a part at a path, compressed at a level.
pub(crate) fn pack(path: &str, plain: &[u8], level: i32) -> Vec<u8> {
    let mut packed = Vec::with_capacity(HEAD_BYTES + plain.len());
    let compressed = zstd::bulk::compress(plain, level).ok().filter(|it| it.len() < plain.len());
    packed.extend_from_slice(MAGIC);
    packed.push(if compressed.is_some() { ZSTD } else { RAW });
    packed.extend_from_slice(&(plain.len() as u64).to_be_bytes());
    packed.extend_from_slice(hash(path, plain).as_ref());
    packed.extend_from_slice(compressed.as_deref().unwrap_or(plain));
    packed
}

fn hash(path: &str, plain: &[u8]) -> Digest {
    let mut context = Context::new(&SHA256);
    context.update(path.as_bytes());
    context.update(&[0]);
    context.update(plain);
    context.finish()
}

/// The plain bytes of the part at a path.
///
/// # Errors
/// Every kind of [`UnreadablePart`].
pub(crate) fn unpack(path: &str, packed: &[u8]) -> Result<Vec<u8>, UnreadablePart> {
    if !packed.starts_with(MAGIC) {
        return Err(UnreadablePart::Foreign);
    }
    let (head, body) =
        packed.split_at_checked(HEAD_BYTES).ok_or(UnreadablePart::Changed("its head is cut"))?;
    let (_, rest) = head.split_at(MAGIC.len());
    let (codec, rest) = rest.split_at(1);
    let (length, expected) = rest.split_at(8);
    let length = <[u8; 8]>::try_from(length).map_or(u64::MAX, u64::from_be_bytes);
    let length = usize::try_from(length).ok().filter(|length| *length <= PLAIN_BYTES_MAX);
    let length = length.ok_or(UnreadablePart::Changed("its length cannot be"))?;
    let plain = match codec {
        [RAW] => body.to_vec(),
        [ZSTD] => zstd::bulk::decompress(body, length)
            .map_err(|_| UnreadablePart::Changed("it cannot be decompressed"))?,
        _ => return Err(UnreadablePart::Foreign),
    };
    if plain.len() != length || hash(path, &plain).as_ref() != expected {
        return Err(UnreadablePart::Changed("its bytes differ from their SHA-256"));
    }
    Ok(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_packed_is_unpacked() {
        for plain in [vec![], b"x".to_vec(), vec![7; 100_000], (0..=255).collect()] {
            assert_eq!(unpack("a", &pack("a", &plain, 3)), Ok(plain));
        }
        assert!(pack("a", &[7; 100_000], 3).len() < 1000);
    }

    #[test]
    fn every_change_is_found() {
        let packed = pack("a", b"rows of a table, rows of a table, rows of a table", 3);
        for index in 0..packed.len() {
            let mut changed = packed.clone();
            changed[index] ^= 1;
            assert!(unpack("a", &changed).is_err(), "{index}");
            assert!(unpack("a", &packed[..index]).is_err(), "{index}");
        }
        assert!(unpack("a", &[&packed[..], &[0]].concat()).is_err());
        assert!(unpack("b", &packed).is_err(), "it is at another path");
    }

    proptest::proptest! {
        #[test]
        fn any_bytes_are_rejected(bytes in proptest::collection::vec(proptest::num::u8::ANY, 0..200)) {
            let marked = [&MAGIC[..], &[ZSTD], &bytes].concat();
            proptest::prop_assert!(unpack("a", &bytes).is_err() && unpack("a", &marked).is_err());
        }
    }
}
