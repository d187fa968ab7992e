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
        // Those that are known later may have been created behind the rows that are read.
        let known = self.unsealed.known();
        let mut heads = HashMap::<StreamId, Head>::new();
        visit_rows(&*self.engine, keys::every_head(), |entry| {
            if let (Ok(id), Ok(head)) = (keys::head_of(&entry.key), Head::decode(&entry.value)) {
                heads.insert(id, head);
            }
        })
        .await?;
        for id in known.into_iter().filter(|id| !heads.contains_key(id)) {
            self.unsealed.deleted(id);
        }
        visit_rows(&*self.engine, keys::every_stream(), |entry| {
            let Ok(stream) = OpenStream::of_row(entry) else { return };
            if let Some(head) = heads.get(&stream.record.id) {
                self.unsealed.changed(&stream, head);
            }
        })
        .await?;
        Ok(())
    }
}
