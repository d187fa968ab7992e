//! What a backup copies beside the rows: the objects of the segments that a stream has or can get back. The objects
//! that are only announced or retired are of no use to a restored store, and so their rows are not either.

use trestle_kv::Entry;

use crate::{
    keys::{self, StreamRow},
    stored::StoredForm as _,
    stream::SegmentRecord,
};

/// The name of the object of a row, below the area of logs, and its bytes; none for a row that names no segment.
///
/// # Errors
/// A corrupt row, in words.
pub fn object_of(row: &Entry) -> Result<Option<(String, u64)>, String> {
    match keys::row_of(&row.key) {
        Some(StreamRow::Segment | StreamRow::Expired) => {
            let segment = SegmentRecord::decode(&row.value).map_err(|error| error.to_string())?;
            Ok(Some((segment.path, segment.bytes)))
        }
        _ => Ok(None),
    }
}

/// Whether a restored store has a row: those that name objects to delete are left out, as the objects are.
#[must_use]
pub fn is_restored(row: &Entry) -> bool {
    !matches!(keys::row_of(&row.key), Some(StreamRow::Announced | StreamRow::Retired))
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use trestle_model::time::Ticks;

    use super::*;
    use crate::stream::{SegmentId, StreamId};

    fn row(key: Bytes, value: Bytes) -> Entry {
        Entry { key, value }
    }

    fn segment() -> SegmentRecord {
        SegmentRecord {
            id: SegmentId(3),
            path: "main/orders/3.parquet".to_owned(),
            bytes: 10,
            records: 1,
            min_time: 1,
            max_time: 2,
            min_sequence: 0,
            max_sequence: 1,
            level: 0,
            created_at: Ticks::new(7).unwrap(),
            checksums: Bytes::new(),
            damage: String::new(),
        }
    }

    #[test]
    fn segments_that_can_be_read_or_restored_have_an_object() {
        let (stream, at) = (StreamId(1), Ticks::new(9).unwrap());
        for key in [keys::segment(stream, 2, SegmentId(3)), keys::expired(stream, at, SegmentId(3))]
        {
            let row = row(key, segment().encode());
            assert_eq!(object_of(&row), Ok(Some(("main/orders/3.parquet".to_owned(), 10))));
            assert!(is_restored(&row));
        }
        let corrupt = row(keys::segment(stream, 2, SegmentId(3)), Bytes::from_static(b"x"));
        assert!(object_of(&corrupt).unwrap_err().contains("segment"));
    }

    #[test]
    fn objects_that_are_to_be_deleted_are_left_out_with_their_rows() {
        let (stream, at) = (StreamId(1), Ticks::new(9).unwrap());
        for key in [keys::announced(stream, SegmentId(3)), keys::retired(stream, at, SegmentId(3))]
        {
            let row = row(key, Bytes::from_static(b"\x01path"));
            assert_eq!(object_of(&row), Ok(None));
            assert!(!is_restored(&row));
        }
        assert!(is_restored(&row(keys::head(stream), Bytes::new())));
    }
}
