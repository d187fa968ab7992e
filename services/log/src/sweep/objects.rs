//! Objects that no segment has: those of removed segments, and those of writes that a crash or an error ended.

use trestle_kv::{ChangeSpec, Entry, Span, Writes, transact};
use trestle_model::time::Ticks;

use super::{ANNOUNCED_GRACE, LogSweeper, STEP};
use crate::{
    error::LogError,
    keys::{self, StreamRow},
    manifest,
    stored::decode_path,
    stream::{SegmentId, StreamId},
};

impl LogSweeper {
    /// Deletes the objects of segments that were removed, once reads of them have ended.
    pub(super) async fn delete_retired(&self, id: StreamId) -> Result<bool, LogError> {
        let engine = &self.logs.engine;
        let (now, is_short) = (engine.now(), engine.status().is_space_short());
        let before = now.before(self.grace.at(now, is_short)).get();
        self.delete_objects(id, &keys::rows_before(StreamRow::Retired, id, before)).await
    }

    /// Retires objects that were announced long ago and never published: their ids are the times of the announcements.
    /// A seal or merge that still writes one cannot publish it from then on, so nothing that is published is deleted,
    /// even if the clock was stepped or the machine suspended.
    pub(super) async fn retire_announced(&self, id: StreamId) -> Result<bool, LogError> {
        let before = self.logs.engine.now().before(ANNOUNCED_GRACE).get();
        let announced = keys::rows_before(StreamRow::Announced, id, before);
        let scan = self.logs.engine.scan(&announced, STEP).await?;
        let mut remaining = scan.entries.as_slice();
        while !remaining.is_empty() {
            let paths = remaining.iter().map(|entry| decode_path(&entry.value).unwrap_or_default());
            let (entries, rest) = remaining.split_at(manifest::retired_at_once(paths));
            remaining = rest;
            let mut spec = ChangeSpec::new(keys::stream_domain(id));
            let mut rows = Vec::with_capacity(entries.len());
            for entry in entries {
                let segment = SegmentId(keys::number_of(&entry.key)?);
                rows.push((spec.read(entry.key.clone()), segment));
            }
            transact(&*self.logs.engine, spec, move |reads, _| {
                let mut writes = Writes::new();
                for (row, segment) in &rows {
                    // Published meanwhile, unless it is there.
                    let Some(path) = reads.get(*row) else { continue };
                    let at = Ticks::new(segment.0).ok_or_else(|| LogError::corrupt("id"))?;
                    writes.put(keys::retired(id, at, *segment), path.clone());
                    writes.delete(reads.key(*row).clone());
                }
                Ok::<_, LogError>((writes, ()))
            })
            .await??;
        }
        Ok(scan.more)
    }

    /// Deletes the objects of a part of some rows, and the rows, while no backup reads objects.
    async fn delete_objects(&self, id: StreamId, rows: &Span) -> Result<bool, LogError> {
        let Some(_deletes) = self.logs.area.hold.begin_delete() else { return Ok(false) };
        let scan = self.logs.engine.scan(rows, STEP).await?;
        for entry in &scan.entries {
            self.delete_object(decode_path(&entry.value)?).await?;
        }
        self.delete_keys(id, &scan.entries).await?;
        Ok(scan.more)
    }

    /// Deletes rows of a stream.
    pub(super) async fn delete_keys(&self, id: StreamId, rows: &[Entry]) -> Result<(), LogError> {
        let rows: Vec<_> = rows.iter().map(|row| row.key.clone()).collect();
        self.delete_rows(&keys::stream_domain(id), &rows).await
    }

    /// Deletes an object; an absent one is not an error, unless all are absent: then they are deleted once they are
    /// back.
    pub(super) async fn delete_object(&self, path: &str) -> Result<(), LogError> {
        self.logs.area.delete(path).await.map_err(|error| LogError::objects(&error))
    }
}
