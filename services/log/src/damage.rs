//! Segments that cannot be read. One that is corrupt is set aside: merges leave it out, the list of segments shows it,
//! and it can be dropped. One that the object store cannot read now is left out for a while.

#[cfg(test)]
mod tests;

use trestle_kv::{ScanLimit, Span, after_key};
use trestle_model::etag::format_time;
use trestle_model::fault::{Fault, Reason};
use trestle_model::time::Ticks;

use crate::{
    error::LogError,
    keys::{self, StreamRow},
    logs::Logs,
    manifest::{self, ManifestChange},
    segment::SegmentRead,
    stored::StoredForm as _,
    stream::{SegmentId, SegmentRecord},
    streams::OpenStream,
};

/// Rows that one scan of the manifest reads.
const SCAN: ScanLimit = ScanLimit { rows: 1000, bytes: 1024 * 1024 };

/// A segment that was read to its end.
#[derive(Debug, Clone)]
pub(crate) struct VerifiedSegment {
    /// It.
    pub(crate) segment: SegmentRecord,
    /// How many of its records could be read, up to the first one that could not.
    pub(crate) readable: u64,
    /// Why the others cannot; none where all can.
    pub(crate) error: Option<LogError>,
}

/// The times of the oldest and the newest record of a segment, for people.
fn times(segment: &SegmentRecord) -> [String; 2] {
    [segment.min_time, segment.max_time].map(|nanos| {
        let seconds = i64::try_from(nanos / 1_000_000_000).ok();
        let at = seconds.and_then(|seconds| Ticks::from_unix(seconds, 0));
        at.map_or_else(|| format!("{nanos} ns"), format_time)
    })
}

impl Logs {
    /// Without segments that cannot be read, as far as is known.
    pub(crate) fn readable(&self, mut segments: Vec<SegmentRecord>) -> Vec<SegmentRecord> {
        segments.retain(|segment| segment.damage.is_empty());
        self.unreadable.leave_out(&mut segments, self.engine.now());
        segments
    }

    /// Examines segments that could not be merged. Returns true where some are left out from now on, so that the others
    /// can be merged.
    ///
    /// # Errors
    /// `failure`, where it is not due to one of them; a failed commit.
    pub(crate) async fn set_damaged_aside(
        &self,
        stream: &OpenStream,
        segments: &[SegmentRecord],
        failure: LogError,
    ) -> Result<bool, LogError> {
        if !matches!(failure, LogError::Corrupt(_) | LogError::Objects) {
            return Err(failure);
        }
        let (mut corrupt, mut unread) = (0, Vec::new());
        for segment in segments {
            match self.verify_segment(stream, segment.clone()).await?.error {
                None => {}
                Some(LogError::Corrupt(_)) => corrupt += 1,
                Some(_) => unread.push(segment),
            }
        }
        // A store that reads nothing is the one that failed.
        if unread.len() == segments.len() {
            return Err(failure);
        }
        let now = self.engine.now();
        for segment in &unread {
            self.unreadable.add(segment.path.clone(), now);
            let (stream, segment) = (stream.name.as_str(), segment.id.0);
            tracing::warn!(
                stream,
                segment,
                "a segment cannot be read now, and is left out of merges"
            );
        }
        match corrupt + unread.len() {
            0 => Err(failure),
            _ => Ok(true),
        }
    }

    /// Reads a segment to its end. One that is corrupt is set aside and logged, once.
    ///
    /// # Errors
    /// A failed commit.
    pub(crate) async fn verify_segment(
        &self,
        stream: &OpenStream,
        segment: SegmentRecord,
    ) -> Result<VerifiedSegment, LogError> {
        let mut readable = 0;
        let error = self.read_through(&segment, &mut readable).await.err();
        if let Some(LogError::Corrupt(damage)) = &error {
            let (id, damage) = (stream.record.id, damage.to_string());
            if manifest::set_aside(&*self.engine, id, &segment, damage.clone()).await? {
                let (stream, [from, to]) = (stream.name.as_str(), times(&segment));
                let (segment, records) = (segment.id.0, segment.records);
                tracing::error!(
                    stream,
                    segment,
                    from,
                    to,
                    records,
                    damage,
                    "a segment is damaged and set aside"
                );
            }
        }
        Ok(VerifiedSegment { segment, readable, error })
    }

    async fn read_through(
        &self,
        segment: &SegmentRecord,
        readable: &mut u64,
    ) -> Result<(), LogError> {
        // What was read before may be in memory, and not as it is on the disk now.
        self.metadata.remove(&segment.path);
        let (mut reader, _) = self.segment_reader(segment, SegmentRead::whole()).await?;
        while let Some(rows) = reader.next_rows().await? {
            *readable += rows.len() as u64;
        }
        if *readable != segment.records {
            let records = segment.records;
            let what =
                format!("a segment has fewer records: has=`{readable}`, records=`{records}`");
            return Err(LogError::corrupt(what));
        }
        Ok(())
    }

    /// Reads one segment to its end.
    ///
    /// # Errors
    /// An id that no segment of the stream has; a failed read or commit.
    pub(crate) async fn verify_one(
        &self,
        stream: &OpenStream,
        id: SegmentId,
    ) -> Result<VerifiedSegment, LogError> {
        let segment = self.find_segment(stream, id).await?;
        self.verify_segment(stream, segment).await
    }

    /// Removes a segment that is corrupt from the stream, with all of its records.
    ///
    /// # Errors
    /// A segment that can be read, or that the stream does not have; a failed read or commit.
    pub(crate) async fn drop_segment(
        &self,
        stream: &OpenStream,
        id: SegmentId,
    ) -> Result<VerifiedSegment, LogError> {
        let verified = self.verify_one(stream, id).await?;
        match &verified.error {
            Some(LogError::Corrupt(_)) => {}
            Some(error) => return Err(error.clone()),
            None => {
                let rule = format!("must be a damaged segment: id=`{}`", id.0);
                return Err(Fault::violation(Reason::InvalidInput, "id", rule).into());
            }
        }
        let removed = vec![verified.segment.clone()];
        let change = ManifestChange { removed, ..ManifestChange::default() };
        let published = manifest::publish(&*self.engine, stream.record.id, change).await?;
        if published.is_none() {
            return Err(LogError::KeepsChanging(stream.name.clone()));
        }
        let (stream, segment, records) = (stream.name.as_str(), id.0, verified.segment.records);
        tracing::warn!(stream, segment, records, "a damaged segment was dropped");
        Ok(verified)
    }

    async fn find_segment(
        &self,
        stream: &OpenStream,
        id: SegmentId,
    ) -> Result<SegmentRecord, LogError> {
        let snapshot = self.engine.snapshot().await?;
        let mut span = keys::rows(StreamRow::Segment, stream.record.id);
        loop {
            let scan = snapshot.scan(&span, SCAN).await?;
            for entry in &scan.entries {
                let segment = SegmentRecord::decode(&entry.value)?;
                if segment.id == id {
                    return Ok(segment);
                }
            }
            let Some(last) = scan.entries.last().filter(|_| scan.more) else {
                let rule = format!("must be a segment of the stream: id=`{}`", id.0);
                return Err(Fault::violation(Reason::InvalidInput, "id", rule).into());
            };
            span = Span::new(after_key(&last.key), span.end);
        }
    }
}
