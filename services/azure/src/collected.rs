//! Bodies that arrive in pieces, as one buffer, held once: a single piece is not copied, and each of
//! several is released as it is added.

use bytes::{Bytes, BytesMut};

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct CollectedBytes {
    /// The only piece so far.
    first: Bytes,
    /// All pieces, if more than one.
    all: BytesMut,
}

impl CollectedBytes {
    /// Adds a piece. With a second piece, `room` bytes are reserved for all; the body may have more of
    /// them, or less.
    pub(crate) fn add(&mut self, piece: Bytes, room: usize) {
        if self.first.is_empty() && self.all.is_empty() {
            self.first = piece;
            return;
        }
        if self.all.is_empty() {
            let length = self.first.len() + piece.len();
            self.all.reserve(room.max(length));
            self.all.extend_from_slice(&std::mem::take(&mut self.first));
        }
        self.all.extend_from_slice(&piece);
    }

    /// Everything that was added.
    pub(crate) fn bytes(self) -> Bytes {
        if self.all.is_empty() { self.first } else { self.all.freeze() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_piece_is_not_copied_and_many_are_one_text() {
        let text = Bytes::from("é".repeat(50_000));
        let collected = |size: usize, room: usize| {
            let mut collected = CollectedBytes::default();
            for at in (0..text.len()).step_by(size) {
                collected.add(text.slice(at..text.len().min(at + size)), room);
            }
            collected.bytes()
        };

        assert_eq!(collected(text.len(), 0).as_ptr(), text.as_ptr());
        for (size, room) in [(1, 0), (4, 1 << 20), (16_384, text.len()), (70_000, 10)] {
            assert_eq!(collected(size, room), text, "{size}");
        }
        assert_eq!(CollectedBytes::default().bytes(), Bytes::new());
    }
}
