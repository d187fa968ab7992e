//! The manifest of a stream: which segments it has. Every change of it is one commit that gives it a new snapshot
//! number: segments appear and disappear at once, with the batches that they replace.

#[cfg(test)]
mod tests;

use bytes::Bytes;
use trestle_kv::{ChangeSpec, Engine, Lock, Writes, limits::RECLAIM_PUT_BYTES_MAX, transact};

use crate::{
    clocks::Clocks,
    error::LogError,
    keys,
    stored::{StoredForm as _, encode_path},
    stream::{ExpiredSegment, Head, SegmentId, SegmentRecord, StreamId, StreamRecord},
};

/// A change of the segments of a stream.
#[derive(Debug, Clone, Default)]
pub(crate) struct ManifestChange {
    /// The batches that the added segments replace.
    pub(crate) sealed: Option<SealedRange>,
    /// New segments, which were announced.
    pub(crate) added: Vec<SegmentRecord>,
    /// Segments that are removed for good.
    pub(crate) removed: Vec<SegmentRecord>,
    /// Segments that are removed and can be restored for a while.
    pub(crate) expired: Vec<SegmentRecord>,
    /// Such segments that are restored.
    pub(crate) restored: Vec<ExpiredSegment>,
    /// What the retention of the stream must be for the change: it is refused if a segment that it removes is not past
    /// the retention that the stream has then.
    pub(crate) retention: Option<RetentionCheck>,
}

/// The record of a stream, whose retention a change depends on.
#[derive(Debug, Clone)]
pub(crate) struct RetentionCheck {
    /// The key of the record.
    pub(crate) record: Bytes,
    /// The time by which segments are past it.
    pub(crate) clocks: Clocks,
}

impl RetentionCheck {
    /// Whether the stream has a retention that segments are past. `record` is its present record.
    fn allows(
        &self,
        stream: StreamId,
        record: Option<&Bytes>,
        change: &ManifestChange,
    ) -> Result<bool, LogError> {
        let record = record.map(|value| StreamRecord::decode(value)).transpose()?;
        let record = record.filter(|record| record.id == stream);
        let Some(retention) = record.and_then(|record| record.settings.retention) else {
            return Ok(false);
        };
        let kept_from = self.clocks.kept_from(retention);
        let mut removed = change.removed.iter().chain(&change.expired);
        Ok(removed.all(|segment| segment.max_time < kept_from))
    }
}

/// Batches that are sealed: the first ones that were not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SealedRange {
    /// The sequence of the first record.
    pub(crate) from: u64,
    /// The sequence behind the last record.
    pub(crate) before: u64,
    /// The bytes of the batches.
    pub(crate) bytes: u64,
}

/// Bytes of the row of a retired object that has no path, beside those of the row that it replaces.
const RETIRED_BYTES: usize = 16;
/// Bytes of the position of a stream, at most: a number has up to 11.
const HEAD_BYTES_MAX: usize = 128;

/// How many of the first objects one change may retire, at least one: while disk space is short, a change is accepted
/// if it puts little more than it removes, and each path is put.
pub(crate) fn retired_at_once<'p>(paths: impl IntoIterator<Item = &'p str>) -> usize {
    let mut bytes = HEAD_BYTES_MAX;
    let fits = |path: &&str| {
        bytes += path.len() + RETIRED_BYTES;
        bytes <= RECLAIM_PUT_BYTES_MAX
    };
    paths.into_iter().take_while(fits).count().max(1)
}

/// Records that an object will be written, before it is: a crash leaves a row by which it is found. Returns the id of
/// the segment, whose path is `path` of it; none where the stream was deleted. A segment of batches is announced and
/// published while space is short too: it gives back space.
///
/// # Errors
/// A failed commit.
pub(crate) async fn announce(
    engine: &dyn Engine,
    stream: StreamId,
    path: impl Fn(SegmentId) -> String + Send + 'static,
    is_of_batches: bool,
) -> Result<Option<(SegmentId, String)>, LogError> {
    let mut spec = ChangeSpec::new(keys::stream_domain(stream));
    if is_of_batches {
        spec.gives_back_space();
    }
    let head = spec.read(keys::head(stream));
    transact(engine, spec, move |reads, version| {
        let mut writes = Writes::new();
        if reads.get(head).is_none() {
            return Ok::<_, LogError>((writes, None));
        }
        let id = SegmentId(version.ticks().get());
        let path = path(id);
        writes.put(keys::announced(stream, id), encode_path(&path));
        Ok((writes, Some((id, path))))
    })
    .await?
}

/// Changes the manifest. Returns the position of the stream afterwards; none where the stream was deleted, or is not as
/// the change assumes: another change came before, or the sweeper retired an object that was announced long ago.
///
/// # Errors
/// A failed commit.
pub(crate) async fn publish(
    engine: &dyn Engine,
    stream: StreamId,
    change: ManifestChange,
) -> Result<Option<Head>, LogError> {
    let mut spec = ChangeSpec::new(keys::stream_domain(stream));
    if change.sealed.is_some() {
        spec.gives_back_space();
    }
    let head = spec.read(keys::head(stream));
    let removed = change.removed.iter().chain(&change.expired);
    let mut rows: Vec<_> = removed.map(|it| spec.read(key(stream, it))).collect();
    rows.extend(change.restored.iter().map(|it| spec.read(expired_key(stream, it))));
    rows.extend(change.added.iter().map(|it| spec.read(keys::announced(stream, it.id))));
    let record = change.retention.as_ref().map(|check| {
        spec.also(keys::own_domain(&check.record), Lock::Shared);
        spec.read(check.record.clone())
    });
    transact(engine, spec, move |reads, version| {
        let now = version.ticks();
        let Some(value) = reads.get(head) else { return Ok((Writes::new(), None)) };
        if let (Some(check), Some(record)) = (&change.retention, record)
            && !check.allows(stream, reads.get(record), &change)?
        {
            return Ok((Writes::new(), None));
        }
        let mut before = Head::decode(value)?;
        let is_there = rows.iter().all(|row| reads.get(*row).is_some());
        // A segment may have been set aside since it was read.
        for row in rows.iter().take(change.removed.len() + change.expired.len()) {
            let removed = reads.get(*row).map(|value| SegmentRecord::decode(value)).transpose()?;
            let is_damaged = removed.is_some_and(|segment| !segment.damage.is_empty());
            before.damaged_segments = before.damaged_segments.saturating_sub(u64::from(is_damaged));
        }
        let damaged = change.restored.iter().filter(|it| !it.segment.damage.is_empty()).count();
        before.damaged_segments = before.damaged_segments.saturating_add(damaged as u64);
        let Some(after) = decide(before, &change, now.get()).filter(|_| is_there) else {
            return Ok::<_, LogError>((Writes::new(), None));
        };
        let mut writes = Writes::new();
        for segment in &change.added {
            writes.put(key(stream, segment), segment.encode());
            writes.delete(keys::announced(stream, segment.id));
        }
        for segment in &change.removed {
            writes.delete(key(stream, segment));
            writes.put(keys::retired(stream, now, segment.id), encode_path(&segment.path));
        }
        for (segment, row) in change.expired.iter().zip(rows.iter().skip(change.removed.len())) {
            // As it is stored now, which may be set aside.
            let Some(stored) = reads.get(*row) else { continue };
            writes.put(keys::expired(stream, now, segment.id), stored.clone());
            writes.delete(key(stream, segment));
        }
        for restored in &change.restored {
            writes.delete(expired_key(stream, restored));
            writes.put(key(stream, &restored.segment), restored.segment.encode());
        }
        writes.put(reads.key(head).clone(), after.encode());
        Ok((writes, Some(after)))
    })
    .await?
}

/// Records that a segment is damaged: merges leave it out, and a list of segments shows it. Returns whether it was not
/// recorded before.
///
/// # Errors
/// A failed commit.
pub(crate) async fn set_aside(
    engine: &dyn Engine,
    stream: StreamId,
    segment: &SegmentRecord,
    damage: String,
) -> Result<bool, LogError> {
    let mut spec = ChangeSpec::new(keys::stream_domain(stream));
    let (head, row) = (spec.read(keys::head(stream)), spec.read(key(stream, segment)));
    transact(engine, spec, move |reads, _| {
        let mut writes = Writes::new();
        let (Some(value), Some(stored)) = (reads.get(head), reads.get(row)) else {
            return Ok::<_, LogError>((writes, false));
        };
        let stored = SegmentRecord::decode(stored)?;
        if !stored.damage.is_empty() {
            return Ok((writes, false));
        }
        let before = Head::decode(value)?;
        let damaged_segments = before.damaged_segments.saturating_add(1);
        writes.put(reads.key(head).clone(), Head { damaged_segments, ..before }.encode());
        let damage = damage.clone();
        writes.put(reads.key(row).clone(), SegmentRecord { damage, ..stored }.encode());
        Ok((writes, true))
    })
    .await?
}

fn key(stream: StreamId, segment: &SegmentRecord) -> Bytes {
    keys::segment(stream, segment.max_time, segment.id)
}

fn expired_key(stream: StreamId, expired: &ExpiredSegment) -> Bytes {
    keys::expired(stream, expired.at, expired.segment.id)
}

/// The position after a change; none where the batches that it seals are not the first ones.
fn decide(before: Head, change: &ManifestChange, now: u64) -> Option<Head> {
    let ManifestChange { sealed, added, removed, expired, restored, .. } = change;
    let mut after = before;
    if let Some(SealedRange { from, before: end, bytes }) = *sealed {
        if from != before.sealed_before || end > before.next_sequence {
            return None;
        }
        after.sealed_before = end;
        after.unsealed_bytes = before.unsealed_bytes.saturating_sub(bytes);
        // Of those that remain the age is not known here; they arrived after the seal began, or nearly so.
        after.unsealed_since = now;
    }
    let of = |total: u64, of: fn(&SegmentRecord) -> u64| {
        let more = added.iter().chain(restored.iter().map(|restored| &restored.segment));
        let less = removed.iter().chain(expired);
        let more = more.map(of).fold(total, u64::saturating_add);
        less.map(of).fold(more, u64::saturating_sub)
    };
    after.snapshot = before.snapshot + 1;
    after.segments = of(before.segments, |_| 1);
    after.segment_records = of(before.segment_records, |segment| segment.records);
    after.segment_bytes = of(before.segment_bytes, |segment| segment.bytes);
    Some(after)
}
