//! Tests of the module.

use std::io::Cursor;

use tokio::sync::mpsc;

use super::*;

fn chunks_of(text: &str, keep_going: bool) -> Vec<Result<RowChunk, ImportStop>> {
    let input = Box::new(Cursor::new(text.to_owned().into_bytes()));
    let reader = RowReader::jsonl(input, FilePosition::default());
    let (sender, mut receiver) = mpsc::channel(1000);
    produce(reader, keep_going, &sender);
    drop(sender);
    std::iter::from_fn(|| receiver.blocking_recv()).collect()
}

fn row(key: usize, value: &str) -> String {
    format!("{{\"PartitionKey\":\"p\",\"RowKey\":\"{key}\",\"v\":\"{value}\"}}\n")
}

#[test]
fn chunks_end_at_500_rows_and_report_their_end_position() {
    let text: String = (0..501).map(|key| row(key, "")).collect();

    let chunks = chunks_of(&text, false);

    assert_eq!(chunks.len(), 2);
    let first = chunks[0].as_ref().unwrap();
    assert_eq!(first.labels.len(), 500);
    assert_eq!(first.end.unwrap().row, 500);
    let rest = usize::try_from(first.end.unwrap().byte).unwrap();
    assert_eq!(&text[rest..], row(500, ""));
    let last = chunks[1].as_ref().unwrap();
    assert_eq!(last.entities()[0].row_key, "500");
    assert_eq!(usize::try_from(last.end.unwrap().byte).unwrap(), text.len());
}

#[test]
fn chunks_end_before_a_megabyte() {
    let value = "x".repeat(300_000);
    let text: String = (0..4).map(|key| row(key, &value)).collect();

    let chunks = chunks_of(&text, false).into_iter();
    let sizes: Vec<_> = chunks.map(|chunk| chunk.unwrap().labels.len()).collect();

    assert_eq!(sizes, [3, 1]);
}

#[test]
fn a_malformed_row_is_recorded_when_continuing() {
    let text = format!("{}oops\n{}", row(0, ""), row(1, ""));

    let chunks = chunks_of(&text, true);

    let only = chunks[0].as_ref().unwrap();
    assert_eq!(only.labels, [1, 3]);
    assert_eq!(only.rejected[0].0, 2);
    assert_eq!(only.end.unwrap().row, 3);
}
