//! What a backup copies beside the rows: the objects of every content that has a row. A content that a blob, a past
//! state or a staged block refers to has one, and so has a retired content until its objects are deleted.

use trestle_kv::Entry;

use crate::{
    error::BlobError,
    extent::Extent,
    keys,
    record::{ContentId, Part},
};

/// Most bytes of a content; a greater length is that of a corrupt row.
const BYTES_MAX: u64 = 1 << 40;

/// The names of the objects of a row, below the area of blobs, and their bytes; none for a row that names no content.
///
/// # Errors
/// A corrupt row, in words.
pub fn objects_of(row: &Entry) -> Result<Vec<(String, u64)>, String> {
    let content = || {
        let content = ContentId(keys::number_of(&row.key)?);
        let size = keys::decode_number(&row.value, "live content")?;
        Ok::<_, BlobError>(Part { content, mark: 0, size })
    };
    match keys::is_live(&row.key) {
        true => {
            let part = content().map_err(|error| error.to_string())?;
            if part.size > BYTES_MAX {
                return Err(BlobError::corrupt("length of a live content").to_string());
            }
            Ok(Extent::of_part(part).map(|it| (it.id.object(), it.object_bytes())).collect())
        }
        false => Ok(Vec::new()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn live(size: u64) -> Entry {
        let content = ContentId(0x2A);
        Entry { key: keys::live(content), value: keys::encode_number(size) }
    }

    #[test]
    fn a_live_content_has_an_object_for_each_extent() {
        let objects = objects_of(&live(9 * 1024 * 1024)).unwrap();
        // With a checksum of 8 bytes for each frame of 32 KiB.
        let (whole, last) = (4 * 1024 * 1024 + 128 * 8, 1024 * 1024 + 32 * 8);
        let expected = [(0, whole), (1, whole), (2, last)]
            .map(|(index, bytes)| (format!("000000000000002a-{index:08x}"), bytes));
        assert_eq!(objects, expected);
        let [(_, least)] = objects_of(&live(1)).unwrap().try_into().unwrap();
        assert_eq!(least, 9);
    }

    #[test]
    fn other_rows_have_none_and_a_corrupt_one_is_an_error() {
        let id = Entry { key: keys::next_content_id(), value: keys::encode_number(7) };
        assert_eq!(objects_of(&id), Ok(Vec::new()));

        let corrupt = Entry { value: b"x".as_slice().into(), ..live(1) };
        assert!(objects_of(&corrupt).unwrap_err().contains("live content"));
        assert!(objects_of(&live(u64::MAX)).unwrap_err().contains("length of a live content"));
    }
}
