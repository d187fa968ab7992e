//! Rows into chunks: runs on a thread of its own, because reading files blocks.

use std::io;

use tokio::sync::mpsc::Sender;
use trestle_proto::table::v1::Entity;

use crate::{
    rows::{FieldError, Position, Row, RowReader},
    upload,
};

/// Most chunks that wait to be sent.
pub(super) const AHEAD_MAX: usize = 2;
/// Most rows of a chunk.
const ROWS_MAX: usize = 500;
/// Largest chunk, in bytes of its entities; a larger entity makes a chunk of its own.
const BYTES_MAX: usize = 1024 * 1024;

/// What a chunk says of its rows.
#[derive(Debug, Default)]
pub(super) struct Mark {
    /// The line of each entity.
    pub(super) lines: Vec<u64>,
    /// Rows among them that are malformed, with their lines.
    pub(super) malformed: Vec<(u64, FieldError)>,
    /// Where the file goes on after the chunk.
    pub(super) end: Position,
}

/// Rows to send together.
pub(super) type Chunk = upload::Chunk<Mark>;

/// Why reading stopped before the end.
#[derive(Debug)]
pub(super) enum Stop {
    /// At a malformed row.
    Row(u64, FieldError),
    /// The file cannot be read on after this line.
    File(u64, io::Error),
}

/// Reads to the end, to the first malformed row unless `keep_going`, or until nobody receives.
pub(super) fn produce(
    mut reader: RowReader,
    keep_going: bool,
    chunks: &Sender<Result<Chunk, Stop>>,
) {
    let mut building = Building::default();
    let stop = loop {
        let row = match reader.next() {
            Ok(Some(row)) => row,
            Ok(None) => break None,
            Err(error) => break Some(Stop::File(reader.position().line, error)),
        };
        match row {
            Row { line, entity: Err(error) } if !keep_going => break Some(Stop::Row(line, error)),
            Row { line, entity } => {
                let size = entity.as_ref().map_or(0, prost::Message::encoded_len);
                if building.is_full(size) && chunks.blocking_send(Ok(building.take())).is_err() {
                    return;
                }
                building.add(line, entity, size, reader.position());
            }
        }
    };
    if building.rows() > 0 && chunks.blocking_send(Ok(building.take())).is_err() {
        return;
    }
    if let Some(stop) = stop {
        // Nobody receiving means that the import failed for another reason, which is shown.
        let _ = chunks.blocking_send(Err(stop));
    }
}

#[derive(Default)]
struct Building {
    entities: Vec<Entity>,
    bytes: usize,
    mark: Mark,
}

impl Building {
    fn rows(&self) -> usize {
        self.entities.len().saturating_add(self.mark.malformed.len())
    }

    fn is_full(&self, next: usize) -> bool {
        self.rows() >= ROWS_MAX || (self.rows() > 0 && self.bytes.saturating_add(next) > BYTES_MAX)
    }

    fn add(&mut self, line: u64, entity: Result<Entity, FieldError>, size: usize, end: Position) {
        match entity {
            Ok(entity) => {
                self.entities.push(entity);
                self.mark.lines.push(line);
            }
            Err(error) => self.mark.malformed.push((line, error)),
        }
        self.bytes = self.bytes.saturating_add(size);
        self.mark.end = end;
    }

    fn take(&mut self) -> Chunk {
        let entities = std::mem::take(&mut self.entities);
        self.bytes = 0;
        Chunk::new(entities, std::mem::take(&mut self.mark))
    }
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use tokio::sync::mpsc;

    use super::*;
    use crate::rows::jsonl;

    fn chunks_of(text: &str, keep_going: bool) -> Vec<Result<Chunk, Stop>> {
        let input = Box::new(Cursor::new(text.to_owned().into_bytes()));
        let reader = RowReader::Jsonl(jsonl::Reader::new(input, Position::default()));
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
        assert_eq!(first.mark.lines.len(), 500);
        assert_eq!(first.mark.end.row, 500);
        let rest = usize::try_from(first.mark.end.byte).unwrap();
        assert_eq!(&text[rest..], row(500, ""));
        let last = chunks[1].as_ref().unwrap();
        assert_eq!(last.entities()[0].row_key, "500");
        assert_eq!(usize::try_from(last.mark.end.byte).unwrap(), text.len());
    }

    #[test]
    fn chunks_end_before_a_megabyte() {
        let value = "x".repeat(300_000);
        let text: String = (0..4).map(|key| row(key, &value)).collect();

        let sizes: Vec<_> = chunks_of(&text, false)
            .into_iter()
            .map(|chunk| chunk.unwrap().mark.lines.len())
            .collect();

        assert_eq!(sizes, [3, 1]);
    }

    #[test]
    fn a_malformed_row_stops_after_what_came_before_it() {
        let text = format!("{}oops\n{}", row(0, ""), row(1, ""));

        let chunks = chunks_of(&text, false);

        assert_eq!(chunks[0].as_ref().unwrap().mark.lines, [1]);
        assert!(matches!(chunks[1], Err(Stop::Row(2, _))));
        assert_eq!(chunks.len(), 2);
    }

    #[test]
    fn a_malformed_row_is_noted_when_going_on() {
        let text = format!("{}oops\n{}", row(0, ""), row(1, ""));

        let chunks = chunks_of(&text, true);

        let only = chunks[0].as_ref().unwrap();
        assert_eq!(only.mark.lines, [1, 3]);
        assert_eq!(only.mark.malformed[0].0, 2);
        assert_eq!(only.mark.end.row, 3);
    }
}
