use proptest::prelude::*;

use super::*;

/// A key that is long, and differs from others near the ends of its layers.
fn keys() -> impl Strategy<Value = Vec<u8>> {
    let lengths =
        prop_oneof![1..60_usize, 2_395..2_406_usize, 4_760..4_780_usize, 7_120..7_140_usize];
    (lengths, prop::collection::vec((any::<prop::sample::Index>(), 0..3_u8), 0..3)).prop_map(
        |(length, changes)| {
            let mut key = vec![1; length];
            for (at, byte) in changes {
                let at = at.index(length);
                if let Some(changed) = key.get_mut(at) {
                    *changed = byte;
                }
            }
            key
        },
    )
}

#[test]
fn a_short_key_is_its_row_and_a_long_one_is_below_pointers() {
    let of = |bytes: usize| place(&vec![7; bytes].into());

    assert_eq!(
        of(ROW_BYTES_MAX),
        RowPlace { pointers: Vec::new(), row: vec![7; ROW_BYTES_MAX].into() }
    );
    let longer = of(ROW_BYTES_MAX + 1);
    assert_eq!(longer.pointers.len(), 1);
    assert_eq!(longer.row.len(), LAYER_BYTES + 1);
    let longest = of(60_000);
    assert_eq!(longest.pointers.len(), 25);
    assert!(longest.row.len() <= ROW_BYTES_MAX, "{}", longest.row.len());
    for row in longest.pointers {
        assert_eq!(start_of_layer(&row), Some(&row[..ROW_BYTES_MAX]));
        assert!(row.len() <= ROW_BYTES_MAX + 1, "{}", row.len());
    }
    assert_eq!(start_of_layer(&longest.row), None);
}

proptest! {
    /// At the top, rows and pointers are in the order of the keys; two keys have one row only if they are equal.
    #[test]
    fn rows_compare_like_keys(a in keys(), b in keys()) {
        let (a, b) = (Bytes::from(a), Bytes::from(b));
        let (placed, other) = (place(&a), place(&b));
        let top = |place: &RowPlace| place.pointers.first().unwrap_or(&place.row).clone();
        let order = top(&placed).cmp(&top(&other));

        prop_assert_eq!(placed.row == other.row, a == b);
        prop_assert!(order.is_eq() || order == a.cmp(&b), "{:?} {:?}", a.len(), b.len());
        if order.is_eq() && a != b {
            prop_assert_eq!(placed.pointers.first(), other.pointers.first());
        }
    }
}
