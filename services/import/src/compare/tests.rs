//! Tests of when a table or a queue of the target matches its source, and of the verdict on all of them.

use super::*;
use crate::progress::BlobPosition;

fn digest(hashes: &[u128]) -> Digest {
    let mut digest = Digest::default();
    hashes.iter().for_each(|hash| digest.add(*hash));
    digest
}

fn table() -> ComparedTable {
    let progress =
        TableProgress { read: 2, written: digest(&[1, 2]), complete: true, ..Default::default() };
    ComparedTable { name: "t".to_owned(), progress, target: digest(&[2, 1]) }
}

/// A queue into which `sent` messages were copied, with so many before and repeated, and its count.
fn queue(before: u64, sent: u64, repeated: u64, target: u64) -> ComparedQueue {
    let sent = digest(&vec![1; usize::try_from(sent).expect("small")]);
    let progress = QueueProgress { before, sent, repeated, complete: true, ..Default::default() };
    ComparedQueue { name: "q".to_owned(), progress, target, begins_alike: true }
}

fn container() -> ComparedContainer {
    let position = BlobPosition::End;
    let written = digest(&[1, 2]);
    let progress =
        ContainerProgress { read: 2, written, bytes: 2048, position, ..Default::default() };
    ComparedContainer { name: "c".to_owned(), progress, target: digest(&[2, 1]) }
}

fn report(tables: Vec<ComparedTable>, queues: Vec<ComparedQueue>) -> Report {
    let (containers, skipped) = (Vec::new(), Vec::new());
    Report { tables, queues, containers, skipped, skipped_more: 0, why_remaining: "there" }
}

#[test]
fn a_table_matches_with_the_same_entities_and_nothing_rejected() {
    assert!(table().matches());
    for target in [digest(&[]), digest(&[1]), digest(&[1, 3]), digest(&[1, 2, 0])] {
        assert!(!ComparedTable { target, ..table() }.matches(), "{target:?}");
    }
    let with = |change: fn(&mut TableProgress)| {
        let mut table = table();
        change(&mut table.progress);
        table.matches()
    };
    assert!(!with(|progress| progress.complete = false));
    assert!(!with(|progress| progress.rejected = 1));
}

#[test]
fn a_container_matches_with_the_blobs_that_were_written_and_no_others() {
    assert!(container().matches());
    for target in [digest(&[]), digest(&[1]), digest(&[1, 3]), digest(&[1, 2, 0])] {
        assert!(!ComparedContainer { target, ..container() }.matches(), "{target:?}");
    }
    let with = |change: fn(&mut ContainerProgress)| {
        let mut container = container();
        change(&mut container.progress);
        container.matches()
    };
    assert!(!with(|progress| progress.position = BlobPosition::Marker("m".to_owned())));
    assert!(!with(|progress| progress.rejected = 1));
}

#[test]
fn the_summary_counts_containers_blobs_and_bytes() {
    let mut all = report(vec![table()], Vec::new());
    assert_eq!(all.summary(), "copied 1 table, 0 queues, 0 containers, 0 blobs (0 B)");
    all.containers = vec![container(), container()];

    assert_eq!(all.summary(), "copied 1 table, 0 queues, 2 containers, 4 blobs (4.00 KiB)");
    assert!(all.verdict().is_ok());
    all.containers[1].progress.rejected = 1;
    let error = all.verdict().unwrap_err().to_string();
    assert!(error.contains("tables, queues and containers that differ: 1,"), "{error}");
}

#[test]
fn a_queue_holds_what_it_held_before_and_what_was_sent() {
    for (before, sent, repeated, matching) in [
        (0, 0, 0, 0..=0),
        (0, 5, 0, 5..=5),
        (3, 5, 0, 8..=8),
        // What is repeated was sent by an earlier run: it may be among those before.
        (3, 5, 2, 6..=8),
        (0, 5, 2, 5..=5),
        (1, 0, 9, 0..=1),
    ] {
        for target in 0..12 {
            let queue = queue(before, sent, repeated, target);
            assert_eq!(queue.matches(), matching.contains(&target), "{queue:?}");
        }
    }
    let mut most = queue(u64::MAX, 1, 0, u64::MAX);
    assert!(most.matches(), "a sum past the largest number does not wrap");
    most.target = 0;
    assert!(!most.matches());
}

#[test]
fn a_queue_with_rejected_or_remaining_messages_or_another_beginning_does_not_match() {
    let with = |change: fn(&mut ComparedQueue)| {
        let mut queue = queue(0, 5, 0, 5);
        change(&mut queue);
        queue.matches()
    };
    assert!(with(|_| {}));
    assert!(with(|queue| queue.progress.expired = 3), "expired messages are not copied");
    assert!(!with(|queue| queue.progress.rejected = 1));
    assert!(!with(|queue| queue.progress.remaining = 1));
    assert!(!with(|queue| queue.progress.complete = false));
    assert!(!with(|queue| queue.begins_alike = false));
}

#[test]
fn an_import_succeeds_where_everything_matches_and_nothing_is_skipped() {
    assert!(report(Vec::new(), Vec::new()).verdict().is_ok());
    assert!(report(vec![table()], vec![queue(0, 5, 0, 5)]).verdict().is_ok());

    let differing = ComparedTable { target: digest(&[1]), ..table() };
    let one = report(vec![table(), differing], vec![queue(0, 5, 0, 4), queue(0, 5, 0, 5)]);
    assert_eq!(one.differing(), 2);
    assert!(matches!(one.verdict(), Err(CliError::Rows(text)) if text.contains("that differ: 2,")));

    let skipped = vec![Skipped::new("table `T`", "", "its name".to_owned())];
    let all = report(vec![table()], Vec::new());
    let listed = Report { skipped, skipped_more: 2, ..all };
    assert_eq!((listed.differing(), listed.not_copied_count()), (0, 3));
    assert!(
        matches!(listed.verdict(), Err(CliError::Rows(text)) if text.ends_with("not copied: 3"))
    );
    let more = Report { skipped_more: u64::MAX, ..listed };
    assert_eq!(more.not_copied_count(), u64::MAX);
}

#[test]
fn messages_that_remain_in_the_source_are_counted_as_not_copied() {
    let mut peeked = queue(0, 32, 0, 32);
    peeked.progress.remaining = 68;
    let report = report(Vec::new(), vec![peeked, queue(0, 5, 0, 5)]);

    assert_eq!((report.differing(), report.not_copied_count()), (1, 68));
    let listed = report.not_copied();
    let [remaining] = &listed[..] else { panic!("one queue: {listed:?}") };
    assert_eq!((&*remaining.whose, &*remaining.which), ("queue `q`", "68 messages"));
}

#[test]
fn a_record_has_the_counts_of_both_sides_and_whether_they_match() {
    let differing = ComparedTable { target: digest(&[1]), ..table() };
    for (table, target, is_match) in [(table(), 2, true), (differing, 1, false)] {
        let record = table.record();
        assert_eq!((&record["read"], &record["written"]), (&json!(2), &json!(2)));
        assert_eq!((&record["target"], &record["match"]), (&json!(target), &json!(is_match)));
        assert_eq!(record["digest_written"] == record["digest_target"], is_match);
    }
    let record = queue(3, 5, 2, 8).record();
    let found = ["before", "sent", "repeated", "target"].map(|name| record[name].clone());
    assert_eq!((found, &record["match"]), ([3, 5, 2, 8].map(Value::from), &json!(true)));
}
