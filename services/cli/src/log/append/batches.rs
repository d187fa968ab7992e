//! Lines collected into batches of bounded size.

use std::{collections::VecDeque, sync::Arc, time::Duration};

use bytes::Bytes;
use prost::Message as _;
use tokio::{
    sync::mpsc::Receiver,
    time::{Instant, timeout_at},
};
use trestle_command::lines::FilePosition;
use trestle_proto::log::v1::wire::AppendRecordsRequest;
use xxhash_rust::xxh3::Xxh3;

use super::lines::{EncodedRecord, LineStop, ReadLine};
use crate::log::input::RecordOrigin;

/// When a batch is complete.
#[derive(Debug, Clone, Copy)]
pub(super) struct BatchLimits {
    pub(super) records: usize,
    pub(super) bytes: usize,
    /// The longest wait for another line.
    pub(super) linger: Option<Duration>,
}

/// The line of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct RecordLine {
    /// Its number, from 1.
    pub(super) number: u64,
    /// Whether it has a time.
    pub(super) has_time: bool,
}

/// Records to append together, and the lines around them.
#[derive(Debug, Default)]
pub(super) struct AppendBatch {
    pub(super) request_id: String,
    pub(super) records: Vec<Bytes>,
    /// The line of each record.
    pub(super) lines: Vec<RecordLine>,
    /// Malformed lines among them.
    pub(super) rejected: Vec<(u64, String)>,
    /// Where the lines after the batch begin; none if its last line has more records.
    pub(super) end: Option<FilePosition>,
    origin: Arc<RecordOrigin>,
    bytes: usize,
    /// On how many streams it was sent.
    pub(super) sends: u32,
}

impl AppendBatch {
    /// Its request. Records are shared, not copied.
    pub(super) fn request(&self, stream: &str) -> AppendRecordsRequest {
        let scope = self.origin.scope.as_ref();
        AppendRecordsRequest {
            stream: stream.to_owned(),
            records: self.records.clone(),
            resource: self.origin.encoded_resource(),
            scope: scope.map(|scope| scope.encode_to_vec().into()),
            request_id: self.request_id.clone(),
            expected_next_sequence: None,
        }
    }

    /// Without the records at these positions, which are ordered. It is another request.
    pub(super) fn without(&mut self, positions: &[usize]) {
        let mut hasher = Xxh3::new();
        hasher.update(self.request_id.as_bytes());
        for position in positions.iter().rev() {
            if *position < self.records.len() {
                self.records.remove(*position);
                self.lines.remove(*position);
            }
            hasher.update(&position.to_be_bytes());
        }
        self.request_id = request_id(&hasher);
    }

    fn is_empty(&self) -> bool {
        self.records.is_empty() && self.rejected.is_empty() && self.end.is_none()
    }
}

/// See the module.
pub(super) struct LineBatches {
    lines: Receiver<Result<ReadLine, LineStop>>,
    limits: BatchLimits,
    /// The id of the append, and where the open batch begins.
    id: String,
    start: FilePosition,
    open: AppendBatch,
    hasher: Xxh3,
    /// When the open batch is sent as it is.
    deadline: Option<Instant>,
    ready: VecDeque<AppendBatch>,
    has_ended: bool,
    /// Why the lines ended early.
    pub(super) stop: Option<LineStop>,
}

impl LineBatches {
    pub(super) fn new(
        lines: Receiver<Result<ReadLine, LineStop>>,
        limits: BatchLimits,
        (id, start): (String, FilePosition),
    ) -> Self {
        let mut batches = Self {
            lines,
            limits,
            id,
            start,
            open: AppendBatch::default(),
            hasher: Xxh3::new(),
            deadline: None,
            ready: VecDeque::new(),
            has_ended: false,
            stop: None,
        };
        batches.begin();
        batches
    }

    /// The next batch; none at the end. Nothing is lost if the future is dropped.
    pub(super) async fn next(&mut self) -> Option<AppendBatch> {
        loop {
            if let Some(batch) = self.ready.pop_front() {
                return Some(batch);
            }
            if self.has_ended {
                return None;
            }
            let received = match self.deadline {
                Some(deadline) => match timeout_at(deadline, self.lines.recv()).await {
                    Ok(received) => received,
                    Err(_) => {
                        self.cut();
                        continue;
                    }
                },
                None => self.lines.recv().await,
            };
            match received {
                Some(Ok(line)) => self.add(line),
                other => {
                    self.stop = other.and_then(Result::err);
                    self.has_ended = true;
                    self.cut();
                }
            }
        }
    }

    fn add(&mut self, line: ReadLine) {
        let ReadLine { line, end, hash, records } = line;
        match records {
            Err(rule) => self.open.rejected.push((line, rule)),
            Ok(records) => {
                let count = records.len();
                let bytes = records.iter().map(|one| one.record.len()).sum::<usize>();
                // A line that fits into a batch is not split.
                if !self.has_room(count, bytes) {
                    self.cut();
                }
                for (index, record) in records.into_iter().enumerate() {
                    self.push(record, (line, hash, index));
                }
            }
        }
        self.open.end = Some(end);
        if let Some(linger) = self.limits.linger {
            self.deadline.get_or_insert_with(|| Instant::now() + linger);
        }
        if self.open.records.len() >= self.limits.records {
            self.cut();
        }
    }

    fn push(&mut self, record: EncodedRecord, (line, hash, index): (u64, u64, usize)) {
        let EncodedRecord { record, has_time, origin } = record;
        let is_first = self.open.records.is_empty();
        if !is_first && (!self.has_room(1, record.len()) || *self.open.origin != *origin) {
            // More records of the same line follow: a resumed append begins before it again.
            if index > 0 {
                self.open.end = None;
            }
            self.cut();
        }
        self.hasher.update(&hash.to_be_bytes());
        self.hasher.update(&index.to_be_bytes());
        self.open.origin = origin;
        self.open.bytes += record.len();
        self.open.records.push(record);
        self.open.lines.push(RecordLine { number: line, has_time });
    }

    fn has_room(&self, count: usize, bytes: usize) -> bool {
        self.open.records.is_empty()
            || self.open.records.len() + count <= self.limits.records
                && self.open.bytes + bytes <= self.limits.bytes
    }

    /// Completes the open batch.
    fn cut(&mut self) {
        self.deadline = None;
        if self.open.is_empty() {
            return;
        }
        self.start = self.open.end.unwrap_or(self.start);
        self.open.request_id = request_id(&self.hasher);
        self.ready.push_back(std::mem::take(&mut self.open));
        self.begin();
    }

    fn begin(&mut self) {
        self.hasher.reset();
        self.hasher.update(self.id.as_bytes());
        self.hasher.update(&self.start.byte.to_be_bytes());
    }
}

/// An id of 32 digits; the id of the append is part of the hash, and it is not secret.
fn request_id(hasher: &Xxh3) -> String {
    format!("append-{:032x}", hasher.digest128())
}

#[cfg(test)]
mod tests;
