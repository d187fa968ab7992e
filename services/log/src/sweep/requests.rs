//! Request ids that are no longer remembered.

use trestle_kv::{ChangeSpec, Writes, transact};

use super::{LogSweeper, STEP};
use crate::{
    append::REQUEST_MEMORY,
    error::LogError,
    keys::{self, StreamRow},
    stored::StoredForm as _,
    stream::{RequestRecord, StreamId},
};

impl LogSweeper {
    /// Deletes a part of the request ids that are too old.
    pub(super) async fn forget_requests(&self, id: StreamId) -> Result<bool, LogError> {
        let before = self.logs.engine.now().before(REQUEST_MEMORY);
        let old = keys::rows_before(StreamRow::RequestTime, id, before.get());
        let scan = self.logs.engine.scan(&old, STEP).await?;
        for entries in scan.entries.chunks(super::DELETES_MAX) {
            let mut spec = ChangeSpec::new(keys::stream_domain(id));
            let mut rows = Vec::with_capacity(entries.len());
            for entry in entries {
                let request = spec.read(keys::request(id, keys::request_id_of(&entry.key)?));
                rows.push((request, entry.key.clone(), keys::number_of(&entry.key)?));
            }
            transact(&*self.logs.engine, spec, move |reads, _| {
                let mut writes = Writes::new();
                for (request, time, at) in &rows {
                    writes.delete(time.clone());
                    let stored = reads.get(*request).map(|value| RequestRecord::decode(value));
                    // The same id may have been used again since.
                    if stored.transpose()?.is_some_and(|stored| stored.at.get() == *at) {
                        writes.delete(reads.key(*request).clone());
                    }
                }
                Ok::<_, LogError>((writes, ()))
            })
            .await??;
        }
        Ok(scan.more)
    }
}
