//! Receipts: any text is parsed or rejected, there is one spelling of each, and damage never passes for
//! the same one.
#![no_main]

use arbitrary::Arbitrary;
use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use libfuzzer_sys::fuzz_target;
use trestle_model::time::Ticks;
use trestle_queue::forms::receipt;

#[derive(Debug, Arbitrary)]
struct Input {
    text: String,
    sequence: u64,
    generation: u32,
    visible_at: u64,
    damage: (u8, u8),
}

fuzz_target!(|input: Input| {
    if let Some(again) = receipt(&input.text) {
        assert_eq!(again, input.text, "one spelling only");
    }

    let mut bytes = vec![1];
    bytes.extend_from_slice(&input.sequence.to_be_bytes());
    bytes.extend_from_slice(&input.generation.to_be_bytes());
    bytes.extend_from_slice(&input.visible_at.to_be_bytes());
    let text = URL_SAFE_NO_PAD.encode(&bytes);
    let is_a_time = Ticks::new(input.visible_at).is_some();
    assert_eq!(receipt(&text), is_a_time.then(|| text.clone()));

    let (position, byte) = input.damage;
    let mut damaged = text.clone().into_bytes();
    let position = usize::from(position) % damaged.len();
    damaged[position] = byte % 0x80;
    let damaged = String::from_utf8(damaged).expect("ASCII");
    assert!(receipt(&damaged).is_none_or(|again| again == damaged));
    assert_eq!(receipt(&text[..position]), None, "cut short");
});
