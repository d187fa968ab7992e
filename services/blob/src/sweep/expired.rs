//! Deleted states whose time to be restored has ended.

use trestle_kv::{ChangeSpec, Entry, Writes, transact};
use trestle_model::time::Ticks;

use super::BlobSweeper;
use crate::{
    blobs::{BlobKey, CURRENT_STATE, decode_stored},
    error::BlobError,
    keys::{self, BlobRow},
    record::{Content, Retired},
};

/// The number in a row of a deleted state, for errors.
const EXPIRY: &str = "expiry of a deleted state";

impl BlobSweeper {
    /// Deletes the states whose retention has ended, and retires their contents.
    pub(super) async fn sweep_expired(&self) -> Result<bool, BlobError> {
        let from = self.with(|positions| positions.expired.clone());
        let part = self.part(keys::every(BlobRow::SoftDeleted), from).await?;
        let now = self.blobs.engine.now();
        for entry in &part.entries {
            if now.get() >= keys::decode_number(&entry.value, EXPIRY)? {
                self.expire(entry, now).await?;
            }
        }
        let more = !part.next.is_empty();
        self.with(|positions| positions.expired = part.next);
        Ok(more)
    }

    async fn expire(&self, entry: &Entry, now: Ticks) -> Result<(), BlobError> {
        let (container, name) = keys::blob_of(&entry.key)?;
        let (blob, state) = (BlobKey { container, name }, keys::time_of(&entry.key)?);
        let is_current = state.get() == CURRENT_STATE;
        let mut spec = ChangeSpec::new(blob.domain());
        let row = spec.read(match is_current {
            true => blob.row(BlobRow::Record, &[]),
            false => blob.row(BlobRow::Past, &[state.get()]),
        });
        let marker = spec.read(entry.key.clone());
        transact(&*self.blobs.engine, spec, move |reads, version| {
            let (mut writes, mut retired) = (Writes::new(), Retired::default());
            let until = reads.get(marker).map(|value| keys::decode_number(value, EXPIRY));
            // It may have been restored meanwhile, and deleted again.
            if until.transpose()?.is_none_or(|until| now.get() < until) {
                return Ok((writes, ()));
            }
            let record = decode_stored(reads.get(row))?;
            let expired = record.filter(|it| it.deletion.is_some_and(|it| now >= it.until));
            if let Some(expired) = expired {
                writes.delete(reads.key(row).clone());
                if let Content::Inline { .. } = expired.content {
                    let at = if is_current { expired.etag.0 } else { state };
                    writes.delete(blob.row(BlobRow::Inline, &[at.get()]));
                }
                retired.content(&expired.content);
                let past = (!is_current).then_some(state);
                blob.retire_shared(&retired, past, version, &mut writes);
            }
            writes.delete(reads.key(marker).clone());
            Ok::<_, BlobError>((writes, ()))
        })
        .await?
    }
}
