use foldhash::HashSet;
use trestle_kv::{Version, conformance::KEYSPACES};
use trestle_model::time::Ticks;

use super::*;

/// What a group that writes these keys changes of the first keyspace: true for a value, false for a removal.
fn changes(writes: &[(&Bytes, bool)]) -> RowChanges {
    let version = Version::new(Ticks::MIN);
    let write = |(key, is_put): &(&Bytes, bool)| {
        (Bytes::clone(key), (is_put.then(|| Bytes::from("value")), version))
    };
    let writes: GroupWrites = writes.iter().map(write).collect();
    let keyspaces = Keyspaces::new(KEYSPACES.to_vec()).unwrap();
    RowChanges::of(&writes, &keyspaces).into_iter().next().unwrap()
}

fn long(bytes: usize, end: &str) -> Bytes {
    [&vec![1; bytes][..], end.as_bytes()].concat().into()
}

#[test]
fn every_pointer_is_locked_once_in_one_order_and_removed_from_below() {
    let (deep, other, short) = (long(7_000, "a"), long(2_400, "b"), long(10, "c"));
    let changed = changes(&[(&deep, false), (&other, false), (&short, false)]);

    let pointers = place(&deep).pointers;
    assert_eq!(changed.emptied, pointers.iter().map(|it| vec![it.clone()]).collect::<Vec<_>>());
    let locked: HashSet<_> = changed.pointers.iter().cloned().collect();
    assert_eq!(locked, pointers.iter().cloned().collect());
    assert!(changed.pointers.is_sorted() && changed.pointers.len() == pointers.len());
    assert_eq!(changed.removed.len(), 3);
}

#[test]
fn a_pointer_to_what_is_set_is_not_removed() {
    let (removed, set) = (long(7_000, "a"), long(2_400, "b"));
    let changed = changes(&[(&removed, false), (&set, true)]);

    let pointers = place(&removed).pointers;
    assert_eq!(place(&set).pointers, pointers[..1]);
    let below: Vec<_> = changed.emptied.iter().flatten().cloned().collect();
    assert_eq!(below, pointers[1..]);
    assert_eq!(changed.pointers.len(), pointers.len());
}

#[test]
fn short_keys_have_no_pointers() {
    let (removed, set) = (long(2_399, "a"), long(10, "b"));
    let changed = changes(&[(&removed, false), (&set, true)]);
    assert!(changed.pointers.is_empty() && changed.emptied.is_empty());
    assert_eq!((changed.removed, changed.set.len()), (vec![removed], 1));
}
