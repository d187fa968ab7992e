use tokio::sync::mpsc::{self, Sender};

use super::*;

fn line(number: u64, records: &[(&'static str, &Arc<RecordOrigin>)]) -> ReadLine {
    let record = |(record, origin): &(&'static str, &Arc<RecordOrigin>)| EncodedRecord {
        record: Bytes::from_static(record.as_bytes()),
        has_time: *record != "a",
        origin: Arc::clone(origin),
    };
    let records = Ok(records.iter().map(record).collect());
    ReadLine { line: number, end: position(number), hash: number, records }
}

fn position(line: u64) -> FilePosition {
    FilePosition { byte: 10 * line, line, row: line }
}

fn limits(records: usize) -> BatchLimits {
    BatchLimits { records, bytes: 100, linger: None }
}

fn batches(limits: BatchLimits, start: u64) -> (Sender<Result<ReadLine, LineStop>>, LineBatches) {
    let (sender, receiver) = mpsc::channel(100);
    (sender, LineBatches::new(receiver, limits, ("id".to_owned(), position(start))))
}

/// The records of each batch with their end, and the request ids.
async fn all(limits: BatchLimits, start: u64, lines: Vec<ReadLine>) -> (Vec<String>, Vec<String>) {
    let (sender, mut batches) = batches(limits, start);
    for line in lines {
        sender.try_send(Ok(line)).unwrap();
    }
    drop(sender);
    let (mut shown, mut ids) = (Vec::new(), Vec::new());
    while let Some(batch) = batches.next().await {
        let records: Vec<_> =
            batch.records.iter().map(|one| str::from_utf8(one).unwrap()).collect();
        let end = batch.end.map_or("-".to_owned(), |end| end.line.to_string());
        shown.push(format!("{}@{end}", records.join(" ")));
        ids.push(batch.request_id);
    }
    (shown, ids)
}

#[tokio::test]
async fn batches_end_at_their_bounds() {
    let origin = Arc::new(RecordOrigin::default());
    let lines = || (1..=5).map(|number| line(number, &[("a", &origin)])).collect();
    assert_eq!(all(limits(2), 0, lines()).await.0, ["a a@2", "a a@4", "a@5"]);
    let small = BatchLimits { bytes: 3, ..limits(10) };
    assert_eq!(all(small, 0, lines()).await.0, ["a a a@3", "a a@5"]);
    let large = vec![line(1, &[("abcdef", &origin)]), line(2, &[("b", &origin)])];
    assert_eq!(all(small, 0, large).await.0, ["abcdef@1", "b@2"]);
}

#[tokio::test]
async fn a_batch_has_one_origin() {
    let [one, two] = ["one", "two"].map(|name| {
        let resource = vec![("service.name".to_owned(), crate::log::any_value::of_text(name))];
        Arc::new(RecordOrigin { resource, scope: None })
    });
    let same = Arc::new(RecordOrigin::clone(&one));
    let lines = vec![
        line(1, &[("a", &one)]),
        line(2, &[("b", &same)]),
        line(3, &[("c", &two)]),
        line(4, &[("d", &two), ("e", &one)]),
    ];
    // A batch that ends within a line ends nowhere: a resumed append begins with the line before it.
    assert_eq!(all(limits(10), 0, lines).await.0, ["a b@2", "c d@-", "e@4"]);
}

#[tokio::test]
async fn a_line_of_many_records_is_split_only_if_it_exceeds_a_batch() {
    let origin = Arc::new(RecordOrigin::default());
    let of = |texts: &[&'static str], number| {
        line(number, &texts.iter().map(|text| (*text, &origin)).collect::<Vec<_>>())
    };
    let lines = vec![of(&["a", "b"], 1), of(&["c", "d"], 2), of(&["e", "f", "g", "h"], 3)];
    // The first part of the last line ends nowhere: a resumed append begins with that line.
    assert_eq!(all(limits(3), 0, lines).await.0, ["a b@1", "c d@2", "e f g@-", "h@3"]);
}

#[tokio::test]
async fn request_ids_depend_on_the_position_and_the_lines() {
    let origin = Arc::new(RecordOrigin::default());
    let lines = |from| (from..=4).map(|number| line(number, &[("a", &origin)])).collect();
    let (_, whole) = all(limits(2), 0, lines(1)).await;
    let (_, resumed) = all(limits(2), 2, lines(3)).await;
    assert_eq!(whole[1..], resumed);
    assert_ne!(whole[0], whole[1]);
    let (_, moved) = all(limits(2), 1, lines(3)).await;
    assert_ne!(resumed, moved);
    let mut changed: Vec<ReadLine> = lines(3);
    changed[0].hash += 1;
    assert_ne!(all(limits(2), 2, changed).await.1, resumed);
    assert!(whole.iter().all(|id| id.len() <= 64));
}

#[tokio::test]
async fn rejected_lines_and_records_are_left_out() {
    let origin = Arc::new(RecordOrigin::default());
    let (sender, mut batches) = batches(limits(10), 0);
    let rejected = ReadLine { records: Err("rule".to_owned()), ..line(2, &[]) };
    for line in [line(1, &[("a", &origin)]), rejected, line(3, &[("b", &origin), ("c", &origin)])] {
        sender.try_send(Ok(line)).unwrap();
    }
    sender.try_send(Err(LineStop::Rejected(4, "rule".to_owned()))).unwrap();
    let mut batch = batches.next().await.unwrap();
    assert_eq!(batch.rejected, [(2, "rule".to_owned())]);
    let lines = |batch: &AppendBatch| {
        batch.lines.iter().map(|line| (line.number, line.has_time)).collect::<Vec<_>>()
    };
    assert_eq!(lines(&batch), [(1, false), (3, true), (3, true)]);
    let id = batch.request_id.clone();
    batch.without(&[0, 2]);
    assert_eq!(
        (batch.records.as_slice(), lines(&batch)),
        (&[Bytes::from("b")][..], vec![(3, true)])
    );
    assert_ne!(batch.request_id, id);
    assert_eq!(batch.request("s").records, [Bytes::from("b")]);
    assert!(batches.next().await.is_none());
    assert!(matches!(batches.stop, Some(LineStop::Rejected(4, _))));
}

#[tokio::test(start_paused = true)]
async fn a_batch_of_a_pipe_does_not_wait_for_long() {
    let origin = Arc::new(RecordOrigin::default());
    let linger = Duration::from_millis(200);
    let (sender, mut batches) = batches(BatchLimits { linger: Some(linger), ..limits(10) }, 0);
    sender.try_send(Ok(line(1, &[("a", &origin)]))).unwrap();
    let began = Instant::now();
    assert_eq!(batches.next().await.unwrap().records.len(), 1);
    assert_eq!(began.elapsed(), linger);
}
