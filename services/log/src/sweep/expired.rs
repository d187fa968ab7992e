//! Segments that a retention removed and that can no longer be restored.

use trestle_kv::{ChangeSpec, Writes, transact};

use super::{LogSweeper, RESTORABLE, STEP};
use crate::{
    error::LogError,
    keys::{self, StreamRow},
    manifest,
    stored::encode_path,
    stream::{ExpiredSegment, StreamId},
};

impl LogSweeper {
    /// Retires a part of the segments that were removed a day ago, and all of them while disk space is short. A call
    /// that restores one at the same time does it before, or finds it retired: both decide on its row.
    pub(super) async fn retire_expired(&self, id: StreamId) -> Result<bool, LogError> {
        let engine = &self.logs.engine;
        let expired = match engine.status().is_space_short() {
            true => keys::rows(StreamRow::Expired, id),
            false => {
                let before = engine.now().before(RESTORABLE).get();
                keys::rows_before(StreamRow::Expired, id, before)
            }
        };
        let scan = engine.scan(&expired, STEP).await?;
        let rows =
            scan.entries.iter().map(ExpiredSegment::of_row).collect::<Result<Vec<_>, _>>()?;
        let mut remaining = rows.as_slice();
        while !remaining.is_empty() {
            let paths = remaining.iter().map(|row| row.segment.path.as_str());
            let (part, rest) = remaining.split_at(manifest::retired_at_once(paths));
            remaining = rest;
            self.retire_part(id, part).await?;
        }
        Ok(scan.more)
    }

    /// Retires those that are still expired.
    pub(crate) async fn retire_part(
        &self,
        id: StreamId,
        part: &[ExpiredSegment],
    ) -> Result<(), LogError> {
        let mut spec = ChangeSpec::new(keys::stream_domain(id));
        let rows = part.iter().map(|row| {
            let retired = keys::retired(id, row.at, row.segment.id);
            (
                spec.read(keys::expired(id, row.at, row.segment.id)),
                retired,
                encode_path(&row.segment.path),
            )
        });
        let rows: Vec<_> = rows.collect();
        transact(&*self.logs.engine, spec, move |reads, _| {
            let mut writes = Writes::new();
            for (row, retired, path) in &rows {
                // Restored meanwhile, unless it is there.
                if reads.get(*row).is_some() {
                    writes.put(retired.clone(), path.clone());
                    writes.delete(reads.key(*row).clone());
                }
            }
            Ok::<_, LogError>((writes, ()))
        })
        .await?
    }
}
