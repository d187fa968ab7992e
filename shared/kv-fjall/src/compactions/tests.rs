use super::*;

const MIB: u64 = 1024 * 1024;

#[test]
fn files_are_an_eighth_of_the_reserve_within_bounds() {
    assert_eq!(
        [0, 64, 128, 512, 4096].map(|reserve| file_bytes(reserve * MIB) / MIB),
        [64, 8, 16, 64, 64]
    );
}

#[test]
fn dead_bytes_are_the_marks_and_as_many_entries() {
    let stored = StoredRows { version: 1, bytes: 1_000, entries: 10, deletes: 3 };

    assert_eq!(stored.dead_bytes(), 600);
    assert_eq!(StoredRows { deletes: 9, ..stored }.dead_bytes(), 1_000);
    assert_eq!(StoredRows::default().dead_bytes(), 0);
}
