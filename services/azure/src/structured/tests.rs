//! Structured messages: their form, and every way to damage one.

use bytes::Bytes;
use crc64fast_nvme::Digest;
use proptest::prelude::*;

use super::*;

fn crc64(bytes: &[u8]) -> u64 {
    let mut digest = Digest::new();
    digest.write(bytes);
    digest.sum64()
}

/// A message with this content in segments, written by the description of the format.
fn message(segments: &[&[u8]]) -> Vec<u8> {
    let content = segments.concat();
    let length = 13 + segments.len() * 18 + content.len() + 8;
    let mut bytes = vec![1];
    bytes.extend(u64::try_from(length).expect("small").to_le_bytes());
    bytes.extend([1, 0]);
    bytes.extend(u16::try_from(segments.len()).expect("few").to_le_bytes());
    for (segment, number) in segments.iter().zip(1_u16..) {
        bytes.extend(number.to_le_bytes());
        bytes.extend((segment.len() as u64).to_le_bytes());
        bytes.extend(*segment);
        bytes.extend(crc64(segment).to_le_bytes());
    }
    bytes.extend(crc64(&content).to_le_bytes());
    bytes
}

/// Decodes a message that arrives in pieces of this size.
fn decode(message: &[u8], content_bytes: u64, size: usize) -> Result<Vec<u8>, StructureError> {
    let mut decoder = StructuredDecoder::new(content_bytes);
    let mut content = Vec::new();
    for piece in message.chunks(size) {
        let mut bytes = Bytes::copy_from_slice(piece);
        while let Some(decoded) = decoder.decode(&mut bytes)? {
            content.extend_from_slice(&decoded);
        }
    }
    decoder.finish().map(|()| content)
}

fn encode(content: &[u8], size: usize) -> Vec<u8> {
    let mut encoder = StructuredEncoder::new(content.len() as u64);
    let length = encoder.message_bytes();
    let mut bytes = encoder.start().to_vec();
    for piece in content.chunks(size) {
        let encoded = encoder.encode(Bytes::copy_from_slice(piece));
        bytes.extend(encoded.iter().flatten());
    }
    assert_eq!(bytes.len() as u64, length);
    bytes
}

#[test]
fn a_message_of_any_pieces_is_its_content() {
    let segments: [&[u8]; 3] = [b"hello ", b"w", b"orld"];
    let (message, empty) = (message(&segments), message(&[b""]));
    for size in 1..=message.len() {
        assert_eq!(decode(&message, 11, size).as_deref(), Ok(&b"hello world"[..]), "{size}");
    }
    assert_eq!(decode(&empty, 0, 64), Ok(Vec::new()));
}

#[test]
fn content_is_encoded_in_segments_of_4_mib() {
    assert_eq!(encode(b"", 1), message(&[b""]));
    assert_eq!(encode(b"hello", 2), message(&[b"hello"]));
    let content: Vec<u8> = (0_u32..(9 << 20)).map(|at| (at % 251) as u8).collect();
    let (first, rest) = content.split_at(4 << 20);
    let (second, third) = rest.split_at(4 << 20);
    let expected = message(&[first, second, third]);
    for size in [1 << 20, (4 << 20) - 1, 4 << 20, (4 << 20) + 1, 9 << 20] {
        assert!(encode(&content, size) == expected, "{size}");
    }
    let exact = content.get(..8 << 20).expect("long enough");
    assert!(encode(exact, 128 << 10) == message(&[first, second]));
    // Longer segments where 65,535 of them would not suffice.
    let largest = StructuredEncoder::new(u64::MAX >> 8);
    assert_eq!(largest.message_bytes(), (u64::MAX >> 8) + OVERHEAD_BYTES_MAX);
}

#[test]
fn a_damaged_byte_is_always_found() {
    let content = b"hello world";
    let whole = message(&[b"hello ", b"world"]);
    for at in 0..whole.len() {
        for bit in 0..8 {
            let mut damaged = whole.clone();
            if let Some(byte) = damaged.get_mut(at) {
                *byte ^= 1 << bit;
            }
            let decoded = decode(&damaged, content.len() as u64, 64);
            assert!(decoded.is_err(), "byte {at}, bit {bit}");
        }
        assert!(decode(whole.get(..at).unwrap_or_default(), 11, 64).is_err(), "cut at {at}");
    }
    let longer = [&whole[..], b"x"].concat();
    assert_eq!(decode(&longer, 11, 64), Err(StructureError::TooLong));
    assert_eq!(decode(&whole, 11, 64), Ok(content.to_vec()));
}

#[test]
fn lengths_that_do_not_add_up_are_rejected_before_their_content() {
    let whole = message(&[b"hello ", b"world"]);
    for content_bytes in [0, 10, 12, u64::MAX] {
        let decoded = decode(&whole, content_bytes, 64);
        assert!(matches!(decoded, Err(StructureError::Length { .. })), "{content_bytes}");
    }
    // Empty segments, also as the last one, and a segment that ends the content too early.
    for segments in [&[&b"ab"[..], b""][..], &[b"", b"ab"], &[b"", b""]] {
        let length = segments.concat().len() as u64;
        let decoded = decode(&message(segments), length, 64);
        assert!(matches!(decoded, Err(StructureError::SegmentLength { .. })), "{decoded:?}");
    }
    let mut none = message(&[]);
    assert_eq!(decode(&none, 0, 64), Err(StructureError::NoSegment));
    none.truncate(5);
    assert_eq!(decode(&none, 0, 64), Err(StructureError::TooShort));
}

#[test]
fn a_mismatch_is_not_an_error_of_the_form() {
    let mut damaged = message(&[b"hello"]);
    let last = damaged.len() - 1;
    damaged.swap(last, last - 1);
    let mismatch = decode(&damaged, 5, 64).expect_err("another checksum");
    assert_eq!(mismatch, StructureError::MessageCrc64);
    assert!(mismatch.is_mismatch() && !StructureError::TooShort.is_mismatch());
    assert!(StructureError::SegmentCrc64 { segment: 1 }.is_mismatch());
}

proptest! {
    #[test]
    fn arbitrary_bytes_never_pass_as_content(
        bytes in proptest::collection::vec(any::<u8>(), 0..64),
        size in 1_usize..16,
        content_bytes in 0_u64..32,
    ) {
        prop_assert!(decode(&bytes, content_bytes, size).is_err());
    }

    #[test]
    fn content_survives_a_round_trip(
        content in proptest::collection::vec(any::<u8>(), 0..4096),
        sizes in (1_usize..512, 1_usize..512),
    ) {
        let encoded = encode(&content, sizes.0);
        prop_assert_eq!(decode(&encoded, content.len() as u64, sizes.1), Ok(content));
    }
}
