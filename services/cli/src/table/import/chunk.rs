//! Rows into chunks: runs on a thread of its own, because reading files blocks.

use std::io;

use tokio::sync::mpsc::Sender;

use crate::{
    field_error::FieldError,
    lines::Position,
    rows::{Row, RowReader},
    upload::{self, ChunkBuilder},
};

/// Rows to send together, each with its line.
pub(super) type Chunk = upload::Chunk<u64, u64, Position>;

/// Why reading stopped before the end.
#[derive(Debug)]
pub(super) enum ImportStop {
    /// At a malformed row.
    Row(u64, FieldError),
    /// The file cannot be read on after this line.
    File(u64, io::Error),
}

/// Reads to the end, to the first malformed row unless `keep_going`, or until the receiver is closed.
pub(super) fn produce(
    mut reader: RowReader,
    keep_going: bool,
    chunks: &Sender<Result<Chunk, ImportStop>>,
) {
    let mut batch = ChunkBuilder::default();
    let (stop, end) = loop {
        let before = Some(reader.position());
        let chunk = match reader.next() {
            Ok(Some(Row { line, entity: Ok(entity) })) => batch.add(line, entity, before),
            Ok(Some(Row { line, entity: Err(error) })) if keep_going => {
                batch.reject(line, error.to_string(), before)
            }
            Ok(Some(Row { line, entity: Err(error) })) => {
                break (Some(ImportStop::Row(line, error)), before);
            }
            Ok(None) => break (None, before),
            Err(error) => break (Some(ImportStop::File(reader.position().line, error)), before),
        };
        if let Some(chunk) = chunk
            && chunks.blocking_send(Ok(chunk)).is_err()
        {
            return;
        }
    };
    let rest = batch.take(end).map(Ok).into_iter().chain(stop.map(Err));
    for item in rest {
        // A closed receiver means that the import failed for another reason, which is shown.
        if chunks.blocking_send(item).is_err() {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use tokio::sync::mpsc;

    use super::*;
    use crate::rows::jsonl;

    fn chunks_of(text: &str, keep_going: bool) -> Vec<Result<Chunk, ImportStop>> {
        let input = Box::new(Cursor::new(text.to_owned().into_bytes()));
        let reader = RowReader::Jsonl(jsonl::JsonlReader::new(input, Position::default()));
        let (sender, mut receiver) = mpsc::channel(1000);
        produce(reader, keep_going, &sender);
        drop(sender);
        std::iter::from_fn(|| receiver.blocking_recv()).collect()
    }

    fn row(key: usize, value: &str) -> String {
        format!("{{\"PartitionKey\":\"p\",\"RowKey\":\"{key}\",\"v\":\"{value}\"}}\n")
    }

    #[test]
    fn chunks_end_at_500_rows_and_know_where_they_end() {
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
    fn a_malformed_row_stops_after_what_came_before_it() {
        let text = format!("{}oops\n{}", row(0, ""), row(1, ""));

        let chunks = chunks_of(&text, false);

        assert_eq!(chunks[0].as_ref().unwrap().labels, [1]);
        assert!(matches!(chunks[1], Err(ImportStop::Row(2, _))));
        assert_eq!(chunks.len(), 2);
    }

    #[test]
    fn a_malformed_row_is_noted_when_going_on() {
        let text = format!("{}oops\n{}", row(0, ""), row(1, ""));

        let chunks = chunks_of(&text, true);

        let only = chunks[0].as_ref().unwrap();
        assert_eq!(only.labels, [1, 3]);
        assert_eq!(only.rejected[0].0, 2);
        assert_eq!(only.end.unwrap().row, 3);
    }
}
