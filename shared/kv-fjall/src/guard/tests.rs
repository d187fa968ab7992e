use std::convert::Infallible;

use bytes::Bytes;

use super::{shortage::bytes_for_writes, *};

const MIB: u64 = 1024 * 1024;

fn put(bytes: usize) -> Write {
    Write::Put { key: Bytes::new(), value: Bytes::from(vec![0; bytes]) }
}

fn delete() -> Write {
    Write::Delete { key: Bytes::from_static(b"k") }
}

fn with_free(reserve_bytes: u64, free_bytes: u64) -> SpaceGuard {
    let space = SpaceGuard::new(reserve_bytes);
    let _ = space.measure(0, || Ok::<_, Infallible>(free_bytes));
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

/// Whether a put of a byte is admitted; an error that it is not.
fn admits(space: &SpaceGuard, buffered_bytes: u64) -> Result<bool, CommitError> {
    Ok(space.admit(&[put(1)], false, buffered_bytes)? == Room::Admitted)
}

/// As the housekeeper does when everything is flushed.
fn drain(space: &SpaceGuard, free_bytes: u64) {
    let _ = space.measure(0, || Ok::<_, Infallible>(free_bytes));
    space.drained(0);
    assert!(!space.is_draining());
}

#[test]
fn a_writer_cannot_pass_the_reserve_between_two_measurements() {
    let space = with_free(64 * MIB, 100 * MIB);
    let mut admitted = 0;
    while space.admit(&[put(1_000_000)], false, 0).unwrap() == Room::Admitted {
        admitted += 1;
    }

    // Every byte in the journal, and in a file that is flushed.
    assert_eq!(admitted, 18);
    assert!(space.is_draining() && !space.is_short());
    assert_eq!(space.admit(&[delete()], false, 0).unwrap(), Room::Admitted);
}

#[test]
fn memtables_and_the_next_compaction_count_as_in_use() {
    let space = with_free(64 * MIB, 100 * MIB);
    assert!(admits(&space, 35 * MIB).unwrap());
    space.measured_compaction(MIB, 0);
    assert!(!admits(&space, 35 * MIB).unwrap(), "it waits for a flush");

    space.drained(35 * MIB);

    let Err(CommitError::Full { free_bytes, in_flight_bytes, reserve_bytes, enough_bytes, .. }) =
        admits(&space, 35 * MIB)
    else {
        unreachable!("space is short");
    };
    assert_eq!((free_bytes, reserve_bytes), (100 * MIB, 64 * MIB));
    assert_eq!(in_flight_bytes / MIB, 36);
    // With what the error names space is enough, and hardly with less: the rejected write was counted too.
    for (free, is_short) in [(enough_bytes - 1024, true), (enough_bytes, false)] {
        let _ = space.measure(35 * MIB, || Ok::<_, Infallible>(free));
        space.check(35 * MIB);
        assert_eq!(space.is_short(), is_short, "{free} bytes");
    }
}

#[test]
fn the_reserve_has_room_to_compact_what_is_flushed_and_more_counts_as_in_use() {
    let fits = |free: u64, buffered: u64| admits(&with_free(64 * MIB, free * MIB), buffered * MIB);

    assert!(fits(113, 48).unwrap(), "48 of the reserve, and 16 for deletes");
    assert!(!fits(125, 60).unwrap());
    assert!(fits(125 + 12, 60).unwrap());
}

#[test]
fn memtables_that_were_flushed_count_until_free_space_is_measured_with_their_files() {
    let space = SpaceGuard::new(64 * MIB);
    let _ = space.measure(40 * MIB, || Ok::<_, Infallible>(100 * MIB));
    assert!(!admits(&space, 0).unwrap());

    let space = SpaceGuard::new(64 * MIB);
    let _ = space.measure(0, || Ok::<_, Infallible>(100 * MIB));
    assert!(admits(&space, 0).unwrap());
}

#[test]
fn near_the_reserve_space_is_measured_again_before_writes_wait() {
    let far = with_free(64 * MIB, 500 * MIB);
    let near = with_free(64 * MIB, 70 * MIB);
    assert!(!near.is_stale(0), "nothing was written since");
    for space in [&far, &near] {
        let _ = space.admit(&[put(1024 * 1024)], false, 0).unwrap();
    }

    assert!(near.is_stale(0) && !far.is_stale(0));
    let _ = near.measure(0, || Ok::<_, Infallible>(69 * MIB));
    assert!(!near.is_stale(0));
}

#[test]
fn a_compaction_that_gives_back_space_leaves_room_for_one_of_the_database_and_for_deletes() {
    let space = with_free(64 * MIB, 100 * MIB);
    space.measured_compaction(60 * MIB, 40 * MIB);

    assert_eq!(space.spare_bytes(4 * MIB) / MIB, 100 - 40 - 4 - 16);
    assert!(space.has_flush_room(60 * MIB));
    assert_eq!(space.spare_bytes(60 * MIB), 0);
    assert!(!space.has_flush_room(61 * MIB), "the compaction behind it would not fit");
    assert_eq!(space.spare_bytes(61 * MIB) / MIB, 100 - 61 - 16, "it does not begin");
}

#[test]
fn nothing_is_flushed_onto_a_disk_that_is_full_to_the_last_byte() {
    for (free_bytes, buffered_bytes, fits) in
        [(0, 0, false), (0, 1, false), (4 * MIB, 4 * MIB, false), (5 * MIB, 4 * MIB, true)]
    {
        let space = with_free(64 * MIB, free_bytes);
        assert_eq!(space.has_flush_room(buffered_bytes), fits, "{free_bytes} {buffered_bytes}");
        assert_eq!(space.fits_flush(buffered_bytes), fits, "{free_bytes} {buffered_bytes}");
    }
    assert!(with_free(0, 0).fits_flush(MIB), "without a reserve nothing is checked");
}

#[test]
fn a_compaction_that_gives_back_space_counts_for_writes_while_it_runs() {
    let space = with_free(64 * MIB, 100 * MIB);
    let claim = space.claim_reclaim(30 * MIB);
    let big = space.claim_reclaim(60 * MIB);
    assert!(space.is_reclaiming());
    assert!(!admits(&space, 0).unwrap(), "it waits");
    assert_eq!(space.admit(&[delete()], false, 0).unwrap(), Room::Admitted);
    drop(big);
    space.drained(0);
    assert!(admits(&space, 0).unwrap());

    drop(claim);
    assert!(!space.is_reclaiming());
}

#[test]
fn an_idle_compaction_fits_twice_above_the_reserve_so_that_no_write_waits_for_it() {
    let space = with_free(64 * MIB, 168 * MIB);
    assert_eq!(space.idle_bytes(0) / MIB, 50);

    let claim = space.claim_reclaim(50 * MIB);
    let _ = space.measure(0, || Ok::<_, Infallible>((168 - 50) * MIB));
    assert!(space.has_room(0));
    drop(claim);
}

#[test]
fn writes_wait_for_a_flush_and_go_on_if_that_is_enough() {
    let space = with_free(64 * MIB, 100 * MIB);
    assert!(!admits(&space, 40 * MIB).unwrap());
    assert!(!admits(&space, 0).unwrap(), "until the flush has ended");

    drain(&space, 68 * MIB);

    assert!(!space.is_short());
    assert!(admits(&space, 0).unwrap());
}

#[test]
fn space_is_short_if_a_flush_leaves_hardly_more_than_the_reserve() {
    let space = with_free(64 * MIB, 100 * MIB);
    assert!(!admits(&space, 40 * MIB).unwrap());

    drain(&space, 67 * MIB);

    assert!(space.is_short());
    assert!(admits(&space, 0).is_err());
}

#[test]
fn low_space_is_noticed_without_a_writer() {
    let space = with_free(64 * MIB, 65 * MIB);
    space.check(0);
    assert!(!space.is_draining());

    space.check(2 * MIB);

    assert!(space.is_draining());
}

#[test]
fn deletes_have_a_part_of_the_reserve_and_end_before_the_disk_does() {
    let space = with_free(64 * MIB, 17 * MIB);
    assert!(!admits(&space, 0).unwrap());
    assert!(space.admit(&[delete()], false, 0).is_ok());
    assert!(space.admit(&[delete()], false, MIB).is_err());
    assert!(space.is_short(), "a flush would not fit");
}

#[test]
fn the_error_of_a_rejected_delete_does_not_recommend_deletes() {
    let space = with_free(64 * MIB, 15 * MIB);

    let of_delete = space.admit(&[delete()], false, 0).unwrap_err().to_string();
    let of_put = space.admit(&[put(1)], false, 0).unwrap_err().to_string();

    for text in [of_delete, of_put] {
        assert!(text.contains("deletes are rejected too"), "{text}");
        assert!(
            text.contains("free space on the disk of storage.data_dir outside of the store"),
            "{text}"
        );
        assert!(!text.contains("delete tables"), "{text}");
    }
    drain(&space, 20 * MIB);
    let text = space.admit(&[put(1)], false, 0).unwrap_err().to_string();
    assert!(text.contains("free: delete tables, queues, blobs or rows, or free space"), "{text}");
}

#[test]
fn a_store_that_is_opened_on_a_short_disk_is_short_at_once() {
    for (buffered_mebibytes, free_mebibytes, is_short) in
        [(0, 63, true), (0, 64, false), (20, 63, true), (20, 70, false)]
    {
        let space = SpaceGuard::new(64 * MIB);
        let _ =
            space.measure(buffered_mebibytes * MIB, || Ok::<_, Infallible>(free_mebibytes * MIB));
        space.opened(buffered_mebibytes * MIB);
        assert_eq!(space.is_short(), is_short, "{free_mebibytes} MiB free");
        assert_eq!(space.is_draining(), is_short, "what a recovery read is flushed");
    }
    with_free(0, 0).opened(0);
    let space = with_free(64 * MIB, 63 * MIB);
    space.measured_compaction(MIB, 0);
    space.opened(0);
    drain(&space, 69 * MIB);
    assert!(!space.is_short(), "a flush freed enough");
}

#[test]
fn deletes_go_on_however_big_the_reserve_is() {
    let space = with_free(u64::MAX, 100 * MIB);

    assert!(!admits(&space, 0).unwrap());
    assert!(space.admit(&[delete()], false, 0).is_ok());
}

#[test]
fn writes_are_accepted_again_a_little_above_the_reserve() {
    let space = with_free(64 * MIB, 63 * MIB);
    drain(&space, 63 * MIB);
    assert!(space.is_short());

    let _ = space.measure(0, || Ok::<_, Infallible>(65 * MIB));
    space.check(0);
    assert!(space.is_short(), "hardly above it");
    assert!(admits(&space, 0).is_err());

    let _ = space.measure(0, || Ok::<_, Infallible>(68 * MIB));
    space.check(0);
    assert!(!space.is_short());
    assert!(admits(&space, 0).unwrap());
}

#[test]
fn what_was_in_flight_when_space_became_short_is_not_enough_when_it_is_written() {
    let space = with_free(64 * MIB, 100 * MIB);
    space.measured_used(1_000 * MIB);
    space.drained(40 * MIB);
    assert!(space.is_short());

    // A flush: the memtable became a file, and its journals are deleted.
    let _ = space.measure(0, || Ok::<_, Infallible>(107 * MIB));
    space.check(0);
    assert!(space.is_short());

    // 64, the 40 that were in flight, and a sixteenth of 64.
    let _ = space.measure(0, || Ok::<_, Infallible>(108 * MIB));
    space.check(0);
    assert!(!space.is_short());
}

#[test]
fn a_write_that_finds_enough_space_does_not_wait_for_the_next_check() {
    let space = with_free(64 * MIB, 100 * MIB);
    space.measured_used(1_000 * MIB);
    space.drained(40 * MIB);
    assert!(matches!(admits(&space, 0), Err(CommitError::Full { .. })));

    let _ = space.measure(0, || Ok::<_, Infallible>(156 * MIB));

    assert!(admits(&space, 0).unwrap());
}

#[test]
fn writes_are_rejected_while_a_flush_is_late_and_space_is_short_by_what_it_leaves() {
    for (free_mebibytes, is_short) in [(67, true), (69, false)] {
        let space = with_free(64 * MIB, 120 * MIB);
        space.measured_used(400 * MIB);
        assert!(!admits(&space, 97 * MIB).unwrap(), "it waits for a flush");
        space.late();
        assert!(matches!(admits(&space, 97 * MIB), Err(CommitError::Full { .. })));
        let _ = space.measure(0, || Ok::<_, Infallible>(400 * MIB));
        space.check(0);
        assert!(space.is_short() && space.is_draining(), "the flush has not ended");

        let _ = space.measure(0, || Ok::<_, Infallible>(free_mebibytes * MIB));
        space.drained(0);
        assert_eq!((space.is_short(), space.is_draining()), (is_short, false), "{free_mebibytes}");
        let _ = space.measure(0, || Ok::<_, Infallible>(72 * MIB));
        space.check(0);
        assert!(!space.is_short());
    }
}

#[test]
fn half_of_what_the_store_uses_is_enough() {
    assert_eq!(bytes_for_writes(64 * MIB, 100 * MIB, 80 * MIB), 104 * MIB);
    assert_eq!(bytes_for_writes(64 * MIB, 0, 80 * MIB), 68 * MIB);
    assert_eq!(bytes_for_writes(64 * MIB, 100 * MIB, 0), 68 * MIB);
    assert_eq!(bytes_for_writes(u64::MAX, u64::MAX, u64::MAX), u64::MAX);
}

#[test]
fn a_reserve_of_zero_rejects_nothing() {
    assert_eq!(with_free(0, 0).admit(&[put(1)], false, u64::MAX).unwrap(), Room::Admitted);
}

#[test]
fn files_beside_the_database_share_the_reserve() {
    let space = with_free(64 * MIB, 72 * MIB);
    for _ in 0..2 {
        assert_eq!(space.claim(4 * MIB, 0).unwrap(), Room::Admitted);
    }
    assert_eq!(space.claim(4 * MIB, 0).unwrap(), Room::WaitsForFlush);
    assert!(space.is_draining() && !space.is_short());
    space.drained(0);
    assert!(matches!(space.claim(4 * MIB, 0), Err(CommitError::Full { .. })), "files count");

    // Written files count until free space is measured with them.
    space.written(4 * MIB);
    space.written(4 * MIB);
    assert_eq!(space.headroom(0), 64 * MIB);
    let _ = space.measure(0, || Ok::<_, Infallible>(64 * MIB));
    assert_eq!(space.headroom(0), 64 * MIB);
    assert_eq!(with_free(0, 0).claim(u64::MAX, 0).unwrap(), Room::Admitted);
}

#[test]
fn files_that_replace_rows_may_use_half_of_the_reserve_also_while_space_is_short() {
    // 16 MiB are for deletes, and 32 MiB of the reserve for compactions.
    let space = with_free(64 * MIB, 64 * MIB);
    assert!(space.claim_of_reserve(8 * MIB, 0));
    assert!(!space.claim_of_reserve(9 * MIB, 0), "it leaves too little");
    assert_eq!(space.claim(MIB, 0).unwrap(), Room::WaitsForFlush, "it counts for other files");
    space.drained(0);
    assert!(space.is_short());
    assert!(space.claim_of_reserve(8 * MIB, 0));
    assert!(!space.claim_of_reserve(1, 0));
    assert!(with_free(0, 64 * MIB).claim_of_reserve(8 * MIB, 0));
}

#[test]
fn a_change_that_gives_back_space_goes_on_as_deletes_do() {
    let space = with_free(64 * MIB, 40 * MIB);
    assert_eq!(space.admit(&[put(1)], false, 0).unwrap(), Room::WaitsForFlush);
    space.drained(0);
    assert!(matches!(space.admit(&[put(1)], false, 0), Err(CommitError::Full { .. })));
    assert_eq!(space.admit(&[put(4096)], true, 0).unwrap(), Room::Admitted);
    let full = with_free(64 * MIB, 15 * MIB).admit(&[put(4096)], true, 0);
    assert!(matches!(full, Err(CommitError::Full { .. })), "{full:?}");
}

#[test]
fn files_of_calls_that_fail_are_not_enough_for_writes() {
    let space = with_free(64 * MIB, 74 * MIB);
    assert_eq!(space.claim(8 * MIB, 0).unwrap(), Room::Admitted);
    space.written(8 * MIB);
    let _ = space.measure(0, || Ok::<_, Infallible>(66 * MIB));
    assert_eq!(space.claim(8 * MIB, 0).unwrap(), Room::WaitsForFlush);
    space.drained(0);
    assert!(space.is_short());

    space.published(8 * MIB);
    let _ = space.measure(0, || Ok::<_, Infallible>(74 * MIB));
    space.check(0);
    assert!(space.is_short(), "the file of the failed call is deleted");
    let _ = space.measure(0, || Ok::<_, Infallible>(78 * MIB));
    space.check(0);
    assert!(!space.is_short());
}
