//! Page tokens: encoded tokens are decoded, and nothing else is accepted.
#![no_main]

use arbitrary::Arbitrary;
use libfuzzer_sys::fuzz_target;
use trestle_model::page::{TokenError, decode, encode, request_identity};

#[derive(Debug, Arbitrary)]
struct Input {
    parts: Vec<Vec<u8>>,
    position: Vec<u8>,
    text: String,
    damage: (u16, u8),
}

fuzz_target!(|input: Input| {
    let parts: Vec<&[u8]> = input.parts.iter().map(Vec::as_slice).collect();
    let identity = request_identity(&parts);

    if let Ok(position) = decode(&input.text, identity) {
        assert_eq!(encode(identity, &position), input.text, "one spelling only");
    }

    let token = encode(identity, &input.position);
    match decode(&token, identity) {
        Ok(position) => assert_eq!(position, input.position),
        // Too long a token is never made of a real key.
        Err(_) => assert!(input.position.len() > 4_096),
    }
    assert_ne!(decode(&token, identity ^ 1), Ok(input.position.clone()));

    let (position, byte) = input.damage;
    let mut damaged = token.clone().into_bytes();
    let position = usize::from(position) % damaged.len();
    damaged[position] = byte % 0x80;
    if let Ok(damaged) = String::from_utf8(damaged)
        && damaged != token
    {
        assert_eq!(decode(&damaged, identity), Err(TokenError::Malformed));
    }
});
