use proptest::prelude::*;

use super::*;

const ID: ExtentId = ExtentId { content: ContentId(7), mark: 5, index: 3 };

/// Bytes that differ from frame to frame.
fn sample(length: usize) -> Bytes {
    (0..length).map(|at| (at / 1000 + at * 7).to_le_bytes()[0]).collect::<Vec<_>>().into()
}

fn object(data: &Bytes) -> (Extent, Bytes) {
    let checksums = ID.checksums(std::slice::from_ref(data));
    let object = [data.as_ref(), &checksums].concat().into();
    (Extent { id: ID, size: data.len() as u64 }, object)
}

fn read(extent: &Extent, object: &Bytes, range: Range<u64>) -> Result<Bytes, CorruptFrame> {
    let frames = extent.frames(&range);
    let slice = |it: &Range<u64>| object.slice(to_usize(it.start)..to_usize(it.end));
    extent.verified(&range, &slice(&frames.data), &slice(&frames.checksums))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn every_range_comes_back_and_every_flipped_bit_in_its_frames_is_detected(
        length in 1_usize..200_000,
        ends in (any::<prop::sample::Index>(), any::<prop::sample::Index>()),
        flip in any::<prop::sample::Index>(),
        bit in 0_u32..8,
    ) {
        let data = sample(length);
        let (extent, object) = object(&data);
        let (one, other) = (ends.0.index(length), ends.1.index(length));
        let range = one.min(other) as u64..one.max(other) as u64 + 1;
        let expected = data.slice(to_usize(range.start)..to_usize(range.end));
        prop_assert_eq!(read(&extent, &object, range.clone()), Ok(expected.clone()));

        let at = flip.index(object.len());
        let mut damaged = object.to_vec();
        damaged[at] ^= 1 << bit;
        let frames = extent.frames(&range);
        let is_read = frames.data.contains(&(at as u64)) || frames.checksums.contains(&(at as u64));
        let found = read(&extent, &damaged.into(), range);
        prop_assert_eq!(found.is_err(), is_read);
        if !is_read {
            prop_assert_eq!(found, Ok(expected));
        }
    }

    #[test]
    fn checksums_do_not_depend_on_the_pieces_of_the_data(
        cuts in prop::collection::vec(1_usize..50_000, 0..8),
    ) {
        let data = sample(150_000);
        let (mut rest, mut pieces) = (data.clone(), Vec::new());
        for cut in cuts {
            pieces.push(rest.split_to(cut.min(rest.len())));
        }
        pieces.push(rest);

        prop_assert_eq!(ID.checksums(&pieces), ID.checksums(&[data]));
    }
}

#[test]
fn frames_of_another_extent_or_place_are_corrupt() {
    let data = Bytes::from(vec![0; 2 * to_usize(FRAME_BYTES)]);
    let (extent, object) = object(&data);
    let whole = || 0..extent.size;
    assert!(read(&extent, &object, whole()).is_ok());

    for id in [
        ExtentId { index: 4, ..ID },
        ExtentId { content: ContentId(8), ..ID },
        ExtentId { mark: 6, ..ID },
        ExtentId { mark: 0, ..ID },
    ] {
        assert_eq!(read(&Extent { id, ..extent }, &object, whole()), Err(CorruptFrame(0)));
    }
    let frames = extent.frames(&whole());
    let checksums = object.slice(to_usize(frames.checksums.start)..);
    let swapped = [&checksums[8..], &checksums[..8]].concat();
    assert_eq!(extent.verified(&whole(), &data, &swapped), Err(CorruptFrame(0)));
    assert_eq!(extent.verified(&whole(), &data, &checksums[..8]), Err(CorruptFrame(1)));
}

#[test]
fn extents_cover_a_content_and_their_objects_have_one_name_each() {
    let part = |size| Part { content: ContentId(1), mark: 0, size };
    let sizes = |size| Extent::of_part(part(size)).map(|it| it.size).collect::<Vec<_>>();
    assert_eq!(sizes(1), [1]);
    assert_eq!(sizes(EXTENT_BYTES), [EXTENT_BYTES]);
    assert_eq!(sizes(2 * EXTENT_BYTES + 5), [EXTENT_BYTES, EXTENT_BYTES, 5]);

    assert_eq!(ID.object(), "0000000000000007-00000003");
    assert_eq!(ExtentId::of_object(&ID.object()), Some(ExtentId { mark: 0, ..ID }));
    for foreign in ["", "7-3", "0000000000000007-00000003#1", "x-y", "000000000000000A-00000003"] {
        assert_eq!(ExtentId::of_object(foreign), None, "{foreign}");
    }
}

#[test]
fn checksums_without_a_mark_are_those_of_earlier_versions() {
    let id = ExtentId { mark: 0, ..ID };
    let checksums = id.checksums(&[Bytes::from_static(b"content")]);

    let mut crc = Crc64::new();
    crc.update(b"content");
    for number in [7_u64, 3, 0] {
        crc.update(&number.to_le_bytes());
    }
    assert_eq!(checksums.as_ref(), crc.value().to_le_bytes());
}
