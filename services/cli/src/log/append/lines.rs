//! Lines, read and parsed on a thread of its own, because reading files blocks.

use std::io::{self, Read};

use bytes::Bytes;
use prost::Message as _;
use tokio::sync::mpsc::Sender;
use trestle_command::lines::{FilePosition, Lines};
use xxhash_rust::xxh3::xxh3_64;

use crate::log::input::{LineParser, ParsedRecord, RecordOrigin};

/// Most lines that wait to be collected into batches.
pub(super) const AHEAD_MAX: usize = 1024;
/// Longest line, in bytes: a batch of a collector of OpenTelemetry is one line.
const LINE_BYTES_MAX: u64 = 16 * 1024 * 1024;

/// Most bytes of a record with its resource and its scope: a request has at most 8 MiB, and a larger one is rejected
/// as a whole. Smaller records over the limit of the server, 1 MiB, are rejected by it.
const SENT_BYTES_MAX: usize = 4 * 1024 * 1024;

/// A line.
#[derive(Debug)]
pub(super) struct ReadLine {
    /// Its number, from 1.
    pub(super) line: u64,
    /// Where the next line begins.
    pub(super) end: FilePosition,
    /// The hash of its text.
    pub(super) hash: u64,
    /// Its records, or the rule that it breaks.
    pub(super) records: Result<Vec<EncodedRecord>, String>,
}

/// A record of a line.
#[derive(Debug)]
pub(super) struct EncodedRecord {
    pub(super) record: Bytes,
    /// Whether its line has a time.
    pub(super) has_time: bool,
    pub(super) origin: std::sync::Arc<RecordOrigin>,
}

impl From<ParsedRecord> for EncodedRecord {
    fn from(ParsedRecord { record, origin }: ParsedRecord) -> Self {
        let has_time = record.time_unix_nano != 0 || record.observed_time_unix_nano != 0;
        Self { record: record.encode_to_vec().into(), has_time, origin }
    }
}

impl EncodedRecord {
    /// The record, if it fits into a request.
    fn checked(self) -> Result<Self, String> {
        let bytes = self.record.len() + self.origin.encoded_len();
        match bytes > SENT_BYTES_MAX {
            true => Err(format!("a record must have at most 1 MiB: bytes=`{bytes}`")),
            false => Ok(self),
        }
    }
}

/// The reason for stopping before the end.
#[derive(Debug)]
pub(super) enum LineStop {
    /// At a line that breaks a rule.
    Rejected(u64, String),
    /// A read error after this line.
    File(u64, io::Error),
}

/// Reads ahead of what is sent.
pub(super) struct LinesAhead {
    pub(super) parser: LineParser,
    /// Whether a malformed line is the last one.
    pub(super) is_strict: bool,
}

impl LinesAhead {
    /// Reads to the end, or until the receiver is closed. Blank lines are skipped.
    pub(super) fn read(
        self,
        input: Box<dyn Read + Send>,
        start: FilePosition,
        sender: &Sender<Result<ReadLine, LineStop>>,
    ) {
        let mut lines = Lines::new(input, start, LINE_BYTES_MAX);
        loop {
            let item = match self.next(&mut lines) {
                Ok(None) => return,
                Ok(Some(ReadLine { line, records: Err(rule), .. })) if self.is_strict => {
                    Err(LineStop::Rejected(line, rule))
                }
                Ok(Some(line)) => Ok(line),
                Err(error) => Err(LineStop::File(lines.at.line, error)),
            };
            let is_last = item.is_err();
            // A closed receiver means that the append failed, which is reported.
            if sender.blocking_send(item).is_err() || is_last {
                return;
            }
        }
    }

    fn next(&self, lines: &mut Lines) -> io::Result<Option<ReadLine>> {
        loop {
            let Some(text) = lines.read_line_or_skip()? else { return Ok(None) };
            if text.as_ref().is_ok_and(|text| text.trim_ascii().is_empty()) {
                continue;
            }
            let (hash, parsed) = match text {
                Ok(text) => (xxh3_64(text), self.parser.parse(text)),
                // A line without records is in no request, so that its hash is not needed.
                Err(rule) => (0, Err(rule.to_string())),
            };
            let records = parsed.and_then(|all| {
                all.into_iter().map(|one| EncodedRecord::from(one).checked()).collect()
            });
            if let Ok(records) = &records {
                let count = Vec::len(records);
                lines.at.row += u64::try_from(count).unwrap_or_default();
            }
            return Ok(Some(ReadLine { line: lines.at.line, end: lines.at, hash, records }));
        }
    }
}
