//! The pieces that an object is sent in.

/// The bytes of every piece of an object but the last: an extent of a blob is one piece.
pub(crate) const PIECE_BYTES: u64 = 8 * 1024 * 1024;

/// The indices of the pieces of an object, with the offset that each begins at.
pub(crate) fn pieces(bytes: u64) -> impl Iterator<Item = (u64, u64)> {
    (0..bytes.div_ceil(PIECE_BYTES).max(1)).map(|index| (index, index * PIECE_BYTES))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_has_a_piece_for_each_8_mib_and_one_at_least() {
        let pieces = |bytes| pieces(bytes).collect::<Vec<_>>();
        assert_eq!(pieces(0), [(0, 0)]);
        assert_eq!(pieces(PIECE_BYTES), [(0, 0)]);
        assert_eq!(pieces(PIECE_BYTES + 1), [(0, 0), (1, PIECE_BYTES)]);
    }
}
