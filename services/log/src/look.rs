//! What other processes did to the streams of a shared store: records for those who follow a stream here, and records
//! that this process is to seal.

#[cfg(test)]
mod tests;

use trestle_kv::visit_rows;

use crate::{
    error::LogError,
    heads::read_heads,
    keys,
    logs::Logs,
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
        let heads = read_heads(&*self.engine, usize::MAX).await?;
        for id in known.iter().filter(|id| !heads.contains_key(id)) {
            self.unsealed.deleted(*id);
        }
        let is_of_interest = |(id, head): (&StreamId, &Option<Head>)| {
            known.contains(id) || head.is_some_and(|head| head.unsealed_records() > 0)
        };
        if !heads.iter().any(is_of_interest) {
            return Ok(());
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
