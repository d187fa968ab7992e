//! The memory of the message that is being read from a call, derived from the bytes of the call
//! alone: messages follow each other, each after a flag and its length, compressed or not.

/// Bytes before each message: one for the flag, four for the length.
pub(super) const HEAD_BYTES: usize = 5;
/// The flag of a compressed message.
pub(super) const COMPRESSED: u8 = 1;
/// Most bytes that one byte of a compressed body can become, with gzip.
const COMPRESSION_MAX: usize = 1032;

/// The position of the reader in the messages of a call.
#[derive(Debug)]
pub(super) struct Framing {
    /// Largest message that its reader accepts.
    message_bytes_max: usize,
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
    /// A call of messages of up to so many bytes.
    pub(super) fn of_messages(message_bytes_max: usize) -> Self {
        let (is_bare, is_compressed) = (false, false);
        let (head, head_filled, rest, arrived) = ([0; HEAD_BYTES], 0, 0, 0);
        Self { message_bytes_max, is_bare, head, head_filled, is_compressed, rest, arrived }
    }

    /// A call whose bytes are one message, of up to so many when it is decompressed.
    pub(super) fn none(is_compressed: bool, message_bytes_max: usize) -> Self {
        Self { is_bare: true, is_compressed, ..Self::of_messages(message_bytes_max) }
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
        if self.is_bare || self.arrived.saturating_add(self.rest) > self.message_bytes_max {
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
            .min(self.arrived.saturating_add(self.message_bytes_max))
    }
}

#[cfg(test)]
mod tests;
