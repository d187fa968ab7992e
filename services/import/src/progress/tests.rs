//! Tests of the progress of an import: when a table is complete, and what is counted, kept and skipped.

use proptest::prelude::*;

use super::*;
use crate::digest::of_message;

fn page(row: &str) -> SourcePosition {
    SourcePosition::Page { partition: "p".to_owned(), row: Some(row.to_owned()) }
}

fn skipped(which: usize) -> Skipped {
    Skipped::new("table `T`", format!("row {which}"), "too large".to_owned())
}

#[test]
fn a_table_that_is_read_as_a_whole_is_complete_at_its_end() {
    let mut table = TableProgress::default();
    for (position, is_complete) in [
        (SourcePosition::Documents(1000), false),
        (page("r"), false),
        (SourcePosition::End, true),
        (SourcePosition::Documents(7), false),
    ] {
        table.advance(None, position.clone());
        assert_eq!((table.position.as_ref(), table.complete), (Some(&position), is_complete));
    }
}

#[test]
fn a_divided_table_is_complete_once_every_range_is() {
    let bounds = ["f", "m"].map(str::to_owned);
    let mut table =
        TableProgress { ranges: PartitionRange::between(&bounds), ..Default::default() };
    for (range, position, is_complete) in [
        (2, SourcePosition::End, false),
        (0, page("a"), false),
        (1, SourcePosition::End, false),
        (0, SourcePosition::End, true),
    ] {
        table.advance(Some(range), position.clone());
        assert_eq!(table.ranges[range].position, Some(position));
        assert_eq!((table.complete, &table.position), (is_complete, &None), "{range}");
    }
}

#[test]
fn a_queue_adds_what_was_done_and_never_goes_back() {
    let digest = |text: &str| {
        let mut digest = Digest::default();
        digest.add(of_message(text.as_bytes()));
        digest
    };
    let step = |position, text: &str| QueueProgress {
        position,
        read: 4,
        rejected: 1,
        expired: 2,
        repeated: 3,
        received_before: 5,
        sent: digest(text),
        counted: vec![text.to_owned()],
        ..Default::default()
    };
    let mut queue = QueueProgress { before: 9, ..Default::default() };
    queue.add(step(20, "b"));
    queue.add(step(10, "a"));

    let mut sent = digest("a");
    sent.merge(digest("b"));
    let expected = QueueProgress {
        before: 9,
        position: 20,
        read: 8,
        rejected: 2,
        expired: 4,
        repeated: 6,
        received_before: 10,
        sent,
        counted: vec!["b".to_owned(), "a".to_owned()],
        ..Default::default()
    };
    assert_eq!(queue, expected);
}

#[test]
fn the_first_messages_are_kept_up_to_a_bound() {
    let mut queue = QueueProgress::default();
    for start in [0, 100, 200] {
        let first: Vec<Hash> = (start..start + 100).collect();
        queue.add(QueueProgress { first, ..Default::default() });
    }
    assert_eq!(queue.first, (0..128).collect::<Vec<Hash>>());
}

#[test]
fn an_item_that_is_not_copied_is_reported_once_and_counted_past_the_bound() {
    let mut progress = MigrationProgress::default();
    for _ in 0..2 {
        progress.skip(skipped(0));
    }
    assert_eq!((progress.skipped.len(), progress.skipped_more), (1, 0));
    for which in 1..1003 {
        progress.skip(skipped(which));
    }
    assert_eq!((progress.skipped.len(), progress.skipped_more), (1000, 3));
    assert_eq!(progress.skipped.last(), Some(&skipped(999)));
}

#[test]
fn only_an_error_with_a_listed_code_skips_an_item() {
    let rejected = |done: Result<(), Status>| {
        Skipped::rejected(done, &[Code::InvalidArgument], "queue `q`".to_owned(), "metadata")
    };
    assert!(matches!(rejected(Ok(())), Ok(None)));
    let invalid = rejected(Err(Status::invalid_argument("too long"))).expect("it is skipped");
    assert_eq!(invalid, Some(Skipped::new("queue `q`", "metadata", "too long".to_owned())));
    let error = rejected(Err(Status::unavailable("down"))).expect_err("the import ends");
    assert!(matches!(error, CliError::Call(status) if status.code() == Code::Unavailable));
}

#[test]
fn a_checkpoint_comes_back_as_it_was_saved() {
    let mut progress = MigrationProgress::default();
    let mut table =
        TableProgress { ranges: PartitionRange::between(&["m".to_owned()]), ..Default::default() };
    table.written.add(u128::MAX);
    table.advance(Some(1), page("r"));
    let mut queue =
        QueueProgress { window_ms: Some(7), first: vec![u128::MAX], ..Default::default() };
    queue.sent.add(3);
    queue.held.push(ReceivedMessage { id: "i".to_owned(), receipt: "r".to_owned() });
    progress.tables.insert("t".to_owned(), table);
    progress.queues.insert("q".to_owned(), queue);
    progress.skip(skipped(1));
    assert_eq!(progress.copied(), "1 entity and 1 message");
    let mut container = ContainerProgress { bytes: 2048, ..Default::default() };
    container.position = BlobPosition::Marker("m".to_owned());
    container.done.insert("a/b".to_owned());
    container.written.add(5);
    progress.containers.insert("c".to_owned(), container);
    assert_eq!(progress.copied(), "1 entity, 1 message and 1 blob (2.00 KiB)");

    let text = serde_json::to_string(&progress).expect("written");
    let read: MigrationProgress = serde_json::from_str(&text).expect("read");

    assert_eq!((&read.tables, &read.queues), (&progress.tables, &progress.queues));
    assert_eq!(read.containers, progress.containers);
    assert_eq!((read.skipped, read.skipped_more), (progress.skipped, 0));
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn ranges_have_every_partition_key_once(
        bounds in prop::collection::btree_set("[a-e]{1,3}", 0..6),
        key in "[a-f]{0,4}",
    ) {
        let bounds: Vec<String> = bounds.into_iter().collect();
        let ranges = PartitionRange::between(&bounds);
        prop_assert_eq!(ranges.len(), bounds.len() + 1);
        let has_key = |range: &&PartitionRange| {
            range.from.as_ref().is_none_or(|from| *from <= key)
                && range.below.as_ref().is_none_or(|below| key < *below)
        };
        prop_assert_eq!(ranges.iter().filter(has_key).count(), 1);
        prop_assert!(ranges.iter().all(|range| range.position.is_none()));
    }
}

#[test]
fn a_table_that_is_read_as_a_stream_continues_after_a_message() {
    let mut table = TableProgress::default();
    let message = SourcePosition::Message("token".to_owned());

    table.advance(None, message.clone());

    let stored = serde_json::to_string(&table).unwrap();
    assert!(stored.contains(r#""position":{"Message":"token"}"#), "{stored}");
    let mut read: TableProgress = serde_json::from_str(&stored).unwrap();
    assert_eq!((&read.position, read.complete), (&Some(message), false));
    read.advance(None, SourcePosition::End);
    assert!(read.complete);
}
