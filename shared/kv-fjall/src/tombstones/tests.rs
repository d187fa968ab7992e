use std::{sync::mpsc, thread, time::Duration};

use super::*;

#[test]
fn obsolete_entries_count_before_their_group_is_written() {
    let estimate = TombstoneEstimate::of(&[]);
    thread::scope(|scope| {
        let group = estimate.add(FEW + 1);
        let (measured, is_measured) = mpsc::channel();
        let of = &estimate;
        scope.spawn(move || {
            of.measure(&[]);
            measured.send(())
        });
        let early = is_measured.recv_timeout(Duration::from_millis(50));
        assert!(early.is_err() && !estimate.are_few(), "measured while a group was on its way");

        drop(group);
        is_measured.recv().expect("it measures");
        assert!(estimate.are_few(), "no table holds any of it");
    });
}
