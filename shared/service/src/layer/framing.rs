//! The memory of the message that is being read from a call, derived from the bytes of the call
//! alone: messages follow each other, each after a flag and its length, compressed or not.

use crate::limits::MESSAGE_BYTES_MAX;

/// Bytes before each message: one for the flag, four for the length.
pub(super) const HEAD_BYTES: usize = 5;
/// The flag of a compressed message.
pub(super) const COMPRESSED: u8 = 1;
/// Most bytes that one byte of a compressed body can become, with gzip.
const COMPRESSION_MAX: usize = 1032;

/// The position of the reader in the messages of a call.
#[derive(Debug, Default)]
pub(super) struct Framing {
    /// Whether the whole call is one message without framing.
    is_bare: bool,
    head: [u8; HEAD_BYTES],
    head_filled: usize,
    is_compressed: bool,
    /// Bytes of the message that have not arrived.
    rest: usize,
    /// Bytes of it that have arrived.
    arrived: usize,
}

impl Framing {
    /// A call whose bytes are one message.
    pub(super) fn none(is_compressed: bool) -> Self {
        Self { is_bare: true, is_compressed, ..Self::default() }
    }

    /// Consumes more bytes of the call. Returns how much memory the message at their end may hold,
    /// in bytes.
    pub(super) fn take(&mut self, mut bytes: &[u8]) -> usize {
        if self.is_bare {
            self.arrived += bytes.len();
            return self.held();
        }
        while let Some((first, later)) = bytes.split_first() {
            if self.rest > 0 {
                let (now, later) = bytes.split_at(bytes.len().min(self.rest));
                self.arrived += now.len();
                self.rest -= now.len();
                bytes = later;
                continue;
            }
            self.head.rotate_left(1);
            let [.., last] = &mut self.head;
            *last = *first;
            self.head_filled += 1;
            bytes = later;
            if self.head_filled == HEAD_BYTES {
                let [_, length @ ..] = self.head;
                (self.rest, self.arrived) = (u32::from_be_bytes(length) as usize, 0);
                self.head_filled = 0;
            }
        }
        self.held()
    }

    /// How many of the bytes consumed last belong to a message that is not complete, and that its reader accepts so
    /// far: a reader rejects one that is too large by its head alone.
    pub(super) fn incomplete(&self) -> usize {
        if self.is_bare || self.arrived.saturating_add(self.rest) > MESSAGE_BYTES_MAX {
            return 0;
        }
        match self.rest {
            0 => self.head_filled,
            _ => HEAD_BYTES.saturating_add(self.arrived),
        }
    }

    /// A compressed body becomes larger than what was sent, but never larger than the decoding
    /// limit. The layer that decompresses framed messages counts what becomes of them.
    fn held(&self) -> usize {
        if !self.is_compressed {
            return self.arrived;
        }
        self.arrived
            .saturating_mul(COMPRESSION_MAX)
            .min(self.arrived.saturating_add(MESSAGE_BYTES_MAX))
    }
}

#[cfg(test)]
mod tests {
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
            let mut framing = Framing::default();
            let held: Vec<_> = bytes.chunks(cut).map(|part| framing.take(part)).collect();

            assert_eq!(held.last(), Some(&100), "cut={cut}");
            assert!(held.iter().all(|held| *held <= 200), "cut={cut}");
        }
        assert_eq!(Framing::default().take(&bytes[..105]), 100, "half of the first");
    }

    #[test]
    fn bytes_of_an_incomplete_message_are_counted_with_its_head() {
        let incomplete = |bytes: &[u8]| {
            let mut framing = Framing::default();
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
        assert_eq!(Framing::default().take(&message(COMPRESSED, 2)), 2);
    }

    #[test]
    fn without_framing_every_byte_of_the_call_is_held() {
        let held = |is_compressed| {
            let mut framing = Framing::none(is_compressed);
            [&[0, 0, 0, 0, 1, 7][..], &[0; 5], &[]].map(|part| framing.take(part))
        };

        assert_eq!(held(false), [6, 11, 11]);
        assert_eq!(held(true), [6, 11, 11].map(|bytes| bytes * COMPRESSION_MAX));
        assert_eq!(Framing::none(true).take(&[7; 65_536]), 65_536 + MESSAGE_BYTES_MAX);
    }
}
