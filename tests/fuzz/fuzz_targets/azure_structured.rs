//! Structured messages of the Azure edge: arbitrary bytes in arbitrary pieces are rejected or have the content that the
//! encoder would write as the same bytes, and content survives a round trip.
#![no_main]

use bytes::Bytes;
use libfuzzer_sys::fuzz_target;
use trestle_azure::structured::{StructuredDecoder, StructuredEncoder};

fuzz_target!(|input: (u16, u8, &[u8])| {
    let (content_bytes, size, bytes) = input;
    let size = usize::from(size).max(1);
    if let Some(content) = decode(bytes, u64::from(content_bytes), size) {
        assert_eq!(content.len(), usize::from(content_bytes), "all content, and no more");
    }
    let message = encode(bytes, size);
    assert_eq!(decode(&message, bytes.len() as u64, size).as_deref(), Some(bytes));
    // One bit is enough to be found, wherever it is.
    let mut damaged = message;
    let at = usize::from(content_bytes) % (damaged.len() * 8);
    damaged[at / 8] ^= 1 << (at % 8);
    assert_eq!(decode(&damaged, bytes.len() as u64, size), None);
});

fn decode(message: &[u8], content_bytes: u64, size: usize) -> Option<Vec<u8>> {
    let mut decoder = StructuredDecoder::new(content_bytes);
    let mut content = Vec::new();
    for piece in message.chunks(size) {
        let mut piece = Bytes::copy_from_slice(piece);
        while let Some(decoded) = decoder.decode(&mut piece).ok()? {
            content.extend_from_slice(&decoded);
        }
    }
    decoder.finish().ok().map(|()| content)
}

fn encode(content: &[u8], size: usize) -> Vec<u8> {
    let mut encoder = StructuredEncoder::new(content.len() as u64);
    let mut message = encoder.start().to_vec();
    for piece in content.chunks(size) {
        for encoded in encoder.encode(Bytes::copy_from_slice(piece)) {
            message.extend_from_slice(&encoded);
        }
    }
    message
}
