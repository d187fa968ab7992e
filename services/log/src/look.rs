//! What other processes did to the streams of a shared store: records for those who follow a stream here, and records
//! that this process is to seal.

#[cfg(test)]
mod tests;

use std::collections::HashMap;

use trestle_kv::visit_rows;

use crate::{
    error::LogError,
    keys,
    logs::Logs,
    stored::StoredForm as _,
    stream::{Head, StreamId},
    streams::OpenStream,
};

impl Logs {
    /// Reads where each stream is now, wakes those who wait for its records, and forgets deleted ones.
    ///
    /// # Errors
    /// A failed read. A row that cannot be read hides only its own stream.
    pub(crate) async fn look(&self) -> Result<(), LogError> {
        // Before the heads are read: one that is created meanwhile may have its head behind those that were read.
        let known = self.unsealed.known();
        let mut heads = HashMap::<StreamId, Option<Head>>::new();
        visit_rows(&*self.engine, keys::every_head(), |entry| {
            if let Ok(id) = keys::head_of(&entry.key) {
                heads.insert(id, Head::decode(&entry.value).ok());
            }
        })
        .await?;
        for id in known.into_iter().filter(|id| !heads.contains_key(id)) {
            self.unsealed.deleted(id);
        }
        visit_rows(&*self.engine, keys::every_stream(), |entry| {
            let Ok(stream) = OpenStream::from_row(entry) else { return };
            if let Some(Some(head)) = heads.get(&stream.record.id) {
                self.unsealed.changed(&stream, head);
            }
        })
        .await?;
        Ok(())
    }
}
