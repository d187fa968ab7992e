use std::convert::Infallible;

use bytes::Bytes;

use super::*;

const MIB: u64 = 1024 * 1024;

fn put(bytes: usize) -> Write {
    Write::Put { key: Bytes::new(), value: Bytes::from(vec![0; bytes]) }
}

fn delete() -> Write {
    Write::Delete { key: Bytes::from_static(b"k") }
}

fn with_free(reserve_bytes: u64, free_bytes: u64) -> SpaceGuard {
    let space = SpaceGuard::new(reserve_bytes);
    let _ = space.measure(|| Ok::<_, Infallible>(free_bytes));
    space
}

#[test]
fn only_a_change_that_removes_and_puts_little_reclaims() {
    assert!(reclaims(&[delete()]));
    // 1,024 bytes, and as many as the removed key has: one.
    assert!(reclaims(&[delete(), put(1_025)]));
    assert!(!reclaims(&[delete(), put(1_026)]));
    assert!(!reclaims(&[put(0)]), "a put alone reclaims nothing");
}

#[test]
fn a_writer_cannot_pass_the_reserve_between_two_measurements() {
    let space = with_free(64 * MIB, 100 * MIB);
    let mut taken = 0;
    while space.admit(&[put(1_000_000)], 0).is_ok() {
        taken += 1;
    }

    // Every byte once in the journal; the last one is also kept free for its memtable.
    assert_eq!(taken, 36);
    assert!(space.is_short());
    assert!(space.admit(&[delete()], 0).is_ok());
}

#[test]
fn memtables_and_the_next_compaction_count_as_taken() {
    let space = with_free(64 * MIB, 100 * MIB);
    assert!(space.admit(&[put(1)], 35 * MIB).is_ok());
    space.measured_compaction(MIB);

    let refused = space.admit(&[put(1)], 35 * MIB);

    let Err(CommitError::Full { free_bytes, in_flight_bytes, reserve_bytes }) = refused else {
        unreachable!("{refused:?}");
    };
    assert_eq!((free_bytes, reserve_bytes), (100 * MIB, 64 * MIB));
    assert_eq!(in_flight_bytes / MIB, 36);
}

#[test]
fn deletes_have_a_part_of_the_reserve_and_end_before_the_disk_does() {
    let space = with_free(64 * MIB, 17 * MIB);
    assert!(space.admit(&[put(1)], 0).is_err());
    assert!(space.admit(&[delete()], 0).is_ok());
    assert!(space.admit(&[delete()], MIB).is_err());
}

#[test]
fn deletes_go_on_however_big_the_reserve_is() {
    let space = with_free(u64::MAX, 100 * MIB);

    assert!(space.admit(&[put(1)], 0).is_err());
    assert!(space.admit(&[delete()], 0).is_ok());
}

#[test]
fn writes_are_taken_again_a_little_above_the_reserve() {
    let space = with_free(64 * MIB, 63 * MIB);
    space.check(0);
    assert!(space.is_short());

    let _ = space.measure(|| Ok::<_, Infallible>(65 * MIB));
    space.check(0);
    assert!(space.is_short(), "hardly above it");
    assert!(space.admit(&[put(1)], 0).is_err());

    let _ = space.measure(|| Ok::<_, Infallible>(68 * MIB));
    space.check(0);
    assert!(!space.is_short());
    assert!(space.admit(&[put(1)], 0).is_ok());
}

#[test]
fn a_reserve_of_zero_refuses_nothing() {
    assert!(with_free(0, 0).admit(&[put(1)], u64::MAX).is_ok());
}
