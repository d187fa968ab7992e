//! Frames of messages.

use trestle_model::limits::MESSAGE_BYTES_MAX;

use super::*;

/// A framed message of so many bytes.
fn message(flag: u8, length: u8) -> Vec<u8> {
    let head = [flag, 0, 0, 0, length];
    [&head[..], &vec![7; usize::from(length)]].concat()
}

#[test]
fn only_the_last_message_is_held_however_the_bytes_are_split() {
    let bytes = [message(0, 200), message(0, 0), message(0, 100)].concat();

    for cut in 1..bytes.len() {
        let mut framing = Framing::of_messages(MESSAGE_BYTES_MAX);
        let held: Vec<_> = bytes.chunks(cut).map(|part| framing.take(part)).collect();

        assert_eq!(held.last(), Some(&100), "cut={cut}");
        assert!(held.iter().all(|held| *held <= 200), "cut={cut}");
    }
    assert_eq!(
        Framing::of_messages(MESSAGE_BYTES_MAX).take(&bytes[..105]),
        100,
        "half of the first"
    );
}

#[test]
fn bytes_of_an_incomplete_message_are_counted_with_its_head() {
    let incomplete = |bytes: &[u8]| {
        let mut framing = Framing::of_messages(MESSAGE_BYTES_MAX);
        framing.take(bytes);
        framing.incomplete()
    };
    let two = [message(0, 3), message(0, 4)].concat();

    let counted: Vec<_> = (0..=two.len()).map(|end| incomplete(&two[..end])).collect();
    assert_eq!(counted, [0, 1, 2, 3, 4, 5, 6, 7, 0, 1, 2, 3, 4, 5, 6, 7, 8, 0]);
    // 64 MiB and more: its reader rejects it.
    assert_eq!(incomplete(&[0, 4, 0, 0, 0, 7]), 0);
}

#[test]
fn a_compressed_message_counts_as_it_was_sent() {
    assert_eq!(Framing::of_messages(MESSAGE_BYTES_MAX).take(&message(COMPRESSED, 2)), 2);
}

#[test]
fn without_framing_every_byte_of_the_call_is_held() {
    let held = |is_compressed| {
        let mut framing = Framing::none(is_compressed, MESSAGE_BYTES_MAX);
        [&[0, 0, 0, 0, 1, 7][..], &[0; 5], &[]].map(|part| framing.take(part))
    };

    assert_eq!(held(false), [6, 11, 11]);
    assert_eq!(held(true), [6, 11, 11].map(|bytes| bytes * COMPRESSION_MAX));
    assert_eq!(
        Framing::none(true, MESSAGE_BYTES_MAX).take(&[7; 65_536]),
        65_536 + MESSAGE_BYTES_MAX
    );
}
