use proptest::prelude::*;
use trestle_model::fault::{Fault, Reason};

use super::*;
use crate::record::ContentId;

fn requested(offset: u64, length: Option<u64>) -> Option<RequestedRange> {
    Some(RequestedRange { offset, length })
}

#[test]
fn ranges_are_cut_at_the_end_and_rejected_past_it() {
    let found = |range, size| bounded(range, size).map_err(|error| Fault::from(error).reason);

    assert_eq!(found(None, 5), Ok(0..5));
    assert_eq!(found(None, 0), Ok(0..0));
    assert_eq!(found(requested(0, None), 5), Ok(0..5));
    assert_eq!(found(requested(4, Some(1)), 5), Ok(4..5));
    assert_eq!(found(requested(1, Some(1000)), 5), Ok(1..5));
    assert_eq!(found(requested(1, Some(u64::MAX)), 5), Ok(1..5));
    for (offset, size) in [(5, 5), (6, 5), (u64::MAX, 5), (0, 0)] {
        assert_eq!(found(requested(offset, None), size), Err(Reason::InvalidRange));
    }
}

#[test]
fn an_inline_row_is_verified() {
    let row = |checksum: u64, bytes: &[u8]| Bytes::from([&checksum.to_le_bytes(), bytes].concat());
    let whole = row(Crc64::of(b"abc"), b"abc");

    assert_eq!(inline(Some(&whole), 3).expect("whole"), "abc");
    for damaged in
        [None, Some(row(Crc64::of(b"abc"), b"abd")), Some(row(1, b"abc")), Some("x".into())]
    {
        assert!(matches!(inline(damaged.as_ref(), 3), Err(BlobError::Corrupt(_))), "{damaged:?}");
    }
    assert!(matches!(inline(Some(&whole), 4), Err(BlobError::Corrupt(_))));
}

proptest! {
    #[test]
    fn the_pieces_of_a_range_are_its_bytes_in_order(
        sizes in prop::collection::vec(1_u64..3 * EXTENT_BYTES, 1..5),
        ends in (any::<prop::sample::Index>(), any::<prop::sample::Index>()),
    ) {
        let parts = (1..).zip(&sizes).map(|(id, size)| Part { content: ContentId(id), mark: 0, size: *size });
        let parts: Vec<_> = parts.collect();
        let size: u64 = sizes.iter().sum();
        let (one, other) = (ends.0.index(to_usize(size)), ends.1.index(to_usize(size)));
        let range = one.min(other) as u64..one.max(other) as u64 + 1;

        let mut next = range.start;
        for (extent, inside) in pieces(parts.clone(), range.clone()) {
            let position = parts.iter().position(|part| part.content == extent.id.content).unwrap();
            let before: u64 = sizes[..position].iter().sum();
            prop_assert_eq!(before + extent.id.index * EXTENT_BYTES + inside.start, next);
            prop_assert!(!inside.is_empty() && inside.end <= extent.size);
            prop_assert!(inside.end - inside.start <= READ_MESSAGE_BYTES_MAX as u64);
            let known = Extent::of_part(Part {
                content: extent.id.content,
                mark: 0,
                size: sizes[position],
            });
            prop_assert!(known.into_iter().any(|it| it == extent));
            next += inside.end - inside.start;
        }
        prop_assert_eq!(next, range.end);
    }
}

proptest! {
    #[test]
    fn the_parts_of_a_range_have_its_bytes_and_no_others(
        sizes in prop::collection::vec(1_u64..10, 1..40),
        ends in (any::<prop::sample::Index>(), any::<prop::sample::Index>()),
    ) {
        let part = |(id, size): (u64, &u64)| Part { content: ContentId(id), mark: 0, size: *size };
        let part_of = |numbered| StoredBlock { id: Bytes::new(), part: part(numbered) };
        let blocks: Vec<_> = (1..).zip(&sizes).map(part_of).collect();
        let size: u64 = sizes.iter().sum();
        let (one, other) = (ends.0.index(to_usize(size)), ends.1.index(to_usize(size)));
        let range = one.min(other) as u64..one.max(other) as u64 + 1;

        let (parts, inside) = parts_in(&blocks, range.clone());

        let all = blocks.iter().map(|block| block.part).collect();
        let expected: Vec<_> = pieces(all, range).collect();
        prop_assert_eq!(pieces(parts.clone(), inside.clone()).collect::<Vec<_>>(), expected);
        let (first, last) = (parts.first().unwrap(), parts.last().unwrap());
        let whole: u64 = parts.iter().map(|part| part.size).sum();
        prop_assert!(inside.start < first.size && inside.end > whole - last.size);
    }
}

#[test]
fn an_empty_range_has_no_parts() {
    let block = |id| {
        let part = Part { content: ContentId(id), mark: 0, size: 2 };
        StoredBlock { id: Bytes::new(), part }
    };
    for at in [0, 3, 4] {
        let (parts, inside) = parts_in(&[block(1), block(2)], at..at);
        assert_eq!(pieces(parts, inside).count(), 0, "{at}");
    }
}
