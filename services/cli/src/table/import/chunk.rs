//! Rows into chunks: runs on a thread of its own, because reading files blocks.

use std::io;

use tokio::sync::mpsc::Sender;
use trestle_command::{
    field_error::FieldError,
    lines::FilePosition,
    rows::{Row, RowReader},
    upload::{self, ChunkBuilder},
};

/// Rows to send together, each with its line.
pub(super) type RowChunk = upload::UploadChunk<u64, u64, FilePosition>;

/// The reason for stopping before the end.
#[derive(Debug)]
pub(super) enum ImportStop {
    /// At a malformed row.
    Row(u64, FieldError),
    /// A read error after this line.
    File(u64, io::Error),
}

/// Reads to the end, to the first malformed row unless `keep_going`, or until the receiver is closed.
pub(super) fn produce(
    mut reader: RowReader,
    keep_going: bool,
    chunks: &Sender<Result<RowChunk, ImportStop>>,
) {
    let mut batch = ChunkBuilder::default();
    let (stop, end) = loop {
        let before = Some(reader.position());
        let chunk = match reader.read() {
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
        // A closed receiver means that the import failed with another error, which is reported.
        if chunks.blocking_send(item).is_err() {
            return;
        }
    }
}

#[cfg(test)]
mod tests;
