//! Blobs of the target: a batch of names at a time, several names at once, each state of a blob written and then read
//! back.
//!
//! A name is copied as a whole: its snapshots in their order, then the blob. What fails is deleted again and reported,
//! and the others are copied.

mod failure;
mod verify;
mod write;

use std::collections::{BTreeSet, HashMap};

use bytes::Bytes;
use futures::TryStreamExt as _;
use tokio::sync::Semaphore;
use trestle_command::{
    errors::CliError,
    retry::{Retries, repeated},
};
use trestle_proto::blob::v1::{
    AccessTier, Blob, BlobConditions, DeleteBlobRequest, DeleteSnapshots, HttpProperties,
    SetBlobTierRequest, SnapshotBlobRequest,
};

pub(super) use self::failure::{BlobFailure, reason};
use super::{
    ImportTarget, containers,
    progress::{BlobPosition, Skipped},
};
use crate::digest::{self, Hash};

/// Bytes of a blob that are read at once, and most bytes of a write of pages.
pub(super) const WINDOW_BYTES: u64 = 4 * 1024 * 1024;
/// Windows of all copies together that memory holds: 64 MiB.
const WINDOWS_MAX: u32 = 16;
/// Most names of a batch, between two positions from which an import continues.
pub(super) const BATCH_MAX: usize = 500;

/// The description of a state of a blob in the source.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct ImportedBlob {
    pub(super) name: String,
    pub(super) is_snapshot: bool,
    pub(super) kind: ImportedKind,
    /// Length of the content, in bytes.
    pub(super) size: u64,
    pub(super) properties: HttpProperties,
    pub(super) metadata: HashMap<String, String>,
    pub(super) tags: HashMap<String, String>,
    /// Unspecified where the source has set none.
    pub(super) tier: AccessTier,
}

/// The type of a blob.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum ImportedKind {
    #[default]
    Block,
    Append {
        is_sealed: bool,
    },
    Page {
        sequence_number: u64,
    },
}

/// Pages that follow each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct PagesWithData {
    /// Where the first one begins, in bytes.
    pub(super) offset: u64,
    /// In bytes.
    pub(super) length: u64,
}

/// The content of a state of a blob in the source.
pub(super) trait ImportedContent {
    /// Exactly these bytes, at most [`WINDOW_BYTES`].
    async fn read(&self, offset: u64, length: u64) -> Result<Bytes, BlobFailure>;
    /// The pages with data in a part of a page blob, by offset.
    async fn pages(&self, offset: u64, length: u64) -> Result<Vec<PagesWithData>, BlobFailure>;
}

/// The states of one name: snapshots by age, and the blob at the end.
pub(super) type BlobStates<C> = Vec<(ImportedBlob, C)>;

/// Windows for the copies of an import.
pub(super) fn windows() -> Semaphore {
    Semaphore::new(WINDOWS_MAX as usize)
}

/// A container of the target, and what bounds the copies into it.
#[derive(Clone, Copy)]
pub(super) struct BlobTarget<'a> {
    pub(super) target: ImportTarget<'a>,
    pub(super) container: &'a str,
    pub(super) windows: &'a Semaphore,
    /// Most names that are copied at once.
    pub(super) parallel: usize,
}

/// The copied states of a name.
#[derive(Default)]
struct CopiedStates {
    hashes: Vec<Hash>,
    bytes: u64,
    /// Whether a state was written, also where a later one failed.
    is_written: bool,
}

impl BlobTarget<'_> {
    /// Where the copy of this container continues; none if there is nothing left.
    pub(super) fn position(&self) -> Option<BlobPosition> {
        self.target.tracker.read(|progress| {
            let container = progress.containers.get(self.container)?;
            (!container.is_complete()).then(|| container.position.clone())
        })
    }

    /// Copies the names of a batch that an earlier run did not copy, and records that the source continues at `next`.
    pub(super) async fn copy_batch<T, C: ImportedContent>(
        &self,
        names: Vec<(String, T)>,
        next: BlobPosition,
        load: impl AsyncFn(&str, T) -> Result<BlobStates<C>, BlobFailure>,
    ) -> Result<(), CliError> {
        let tracker = self.target.tracker;
        let done: BTreeSet<String> = tracker.read(|progress| {
            let container = progress.containers.get(self.container);
            container.map(|it| it.done.clone()).unwrap_or_default()
        });
        let names = names.into_iter().filter(|(name, _)| !done.contains(name)).map(Ok);
        let load = &load;
        let copy = |(name, item): (String, T)| async move {
            let loaded = load(&name, item).await;
            self.copy_name(&name, loaded).await
        };
        futures::stream::iter(names).try_for_each_concurrent(self.parallel, copy).await?;
        tracker.change(|progress| {
            let container = progress.containers.entry(self.container.to_owned()).or_default();
            container.done.clear();
            container.position = next;
        });
        Ok(())
    }

    async fn copy_name<C: ImportedContent>(
        &self,
        name: &str,
        loaded: Result<BlobStates<C>, BlobFailure>,
    ) -> Result<(), CliError> {
        let count = loaded.as_ref().map_or(1, Vec::len);
        let mut copied = CopiedStates::default();
        let result = match loaded {
            Ok(states) => self.copy_again(name, &states, &mut copied).await,
            Err(failure) => Err(failure),
        };
        let failed = match result {
            Ok(()) => None,
            Err(BlobFailure::Item(why)) => {
                if copied.is_written {
                    self.delete(name).await?;
                }
                Some(why)
            }
            Err(BlobFailure::Fatal(error)) => return Err(error),
        };
        let count = u64::try_from(count).unwrap_or(u64::MAX);
        self.target.tracker.change(|progress| {
            let container = progress.containers.entry(self.container.to_owned()).or_default();
            container.done.insert(name.to_owned());
            container.read += count;
            let Some(why) = failed else {
                copied.hashes.into_iter().for_each(|hash| container.written.add(hash));
                container.bytes += copied.bytes;
                return;
            };
            container.rejected += count;
            let (whose, which) = (containers::whose(self.container), format!("blob `{name}`"));
            progress.skip(Skipped::new(whose, which, why));
        });
        Ok(())
    }

    /// Copies the states of a name, and begins again after a temporary error where there are snapshots: a call for one
    /// is not repeated, since a try without a response may have made it.
    async fn copy_again<C: ImportedContent>(
        &self,
        name: &str,
        states: &[(ImportedBlob, C)],
        copied: &mut CopiedStates,
    ) -> Result<(), BlobFailure> {
        let mut retries = Retries::default();
        loop {
            match self.copy_states(name, states, copied).await {
                Err(BlobFailure::Fatal(error)) if states.len() > 1 => {
                    retries.wait(error).await?;
                    *copied = CopiedStates::default();
                }
                done => return done,
            }
        }
    }

    async fn copy_states<C: ImportedContent>(
        &self,
        name: &str,
        states: &[(ImportedBlob, C)],
        copied: &mut CopiedStates,
    ) -> Result<(), BlobFailure> {
        let has_tiers = states.iter().any(|(state, _)| state.tier != AccessTier::Unspecified);
        let has_snapshots = states.len() > 1;
        if has_snapshots {
            // Those of an interrupted run would be there twice.
            self.delete(name).await?;
        }
        for (state, content) in states {
            let mut state = state.clone();
            if has_snapshots && has_tiers && state.tier == AccessTier::Unspecified {
                // Otherwise it would have the tier of the state that it overwrites.
                state.tier = state.default_tier();
            }
            let blob = self.copy_state(&state, content, &mut copied.is_written).await?;
            let blob = match state.is_snapshot {
                true => self.snapshot(blob).await?,
                false => blob,
            };
            copied.bytes += state.size;
            copied.hashes.push(digest::of_blob(&blob));
        }
        Ok(())
    }

    /// Writes one state, and reads it back.
    async fn copy_state<C: ImportedContent>(
        &self,
        state: &ImportedBlob,
        content: &C,
        is_written: &mut bool,
    ) -> Result<Blob, BlobFailure> {
        let windows = write::block_bytes(state)?.div_ceil(WINDOW_BYTES);
        let windows = u32::try_from(windows).unwrap_or(WINDOWS_MAX).min(WINDOWS_MAX);
        // It is never closed.
        let _held = self.windows.acquire_many(windows).await.map_err(|_| CliError::Interrupted)?;
        let sum = self.write(state, content, is_written).await?;
        let blob = self.verify(state, &sum).await?;
        if let ImportedKind::Append { is_sealed: true } = state.kind
            && !state.is_snapshot
        {
            self.seal(&state.name).await?;
        }
        if state.tier == AccessTier::Archive && !state.is_snapshot {
            // An archived blob cannot be read back.
            self.archive(&state.name).await?;
        }
        Ok(blob)
    }

    async fn snapshot(&self, blob: Blob) -> Result<Blob, BlobFailure> {
        let conditions = BlobConditions { if_match: vec![blob.etag], ..Default::default() };
        let request = SnapshotBlobRequest {
            container: self.container.to_owned(),
            blob: blob.name,
            conditions: Some(conditions),
            ..Default::default()
        };
        let session = self.target.session;
        // Not repeated here: a second try might make a second snapshot.
        let made = session.blobs().snapshot_blob(request).await?;
        Ok(made.into_inner().snapshot.unwrap_or_default())
    }

    async fn archive(&self, name: &str) -> Result<(), BlobFailure> {
        let request = SetBlobTierRequest {
            container: self.container.to_owned(),
            blob: name.to_owned(),
            access_tier: AccessTier::Archive.into(),
            ..Default::default()
        };
        let session = self.target.session;
        repeated(async || session.blobs().set_blob_tier(request.clone()).await).await?;
        Ok(())
    }

    /// Deletes a blob with its snapshots, if it exists.
    async fn delete(&self, name: &str) -> Result<(), CliError> {
        let request = DeleteBlobRequest {
            container: self.container.to_owned(),
            blob: name.to_owned(),
            delete_snapshots: DeleteSnapshots::Include.into(),
            ..Default::default()
        };
        let session = self.target.session;
        let deleted = repeated(async || session.blobs().delete_blob(request.clone()).await).await;
        match deleted.map_err(BlobFailure::from) {
            // It is absent, or another client holds a lease, and the next write reports that.
            Ok(_) | Err(BlobFailure::Item(_)) => Ok(()),
            Err(BlobFailure::Fatal(error)) => Err(error),
        }
    }
}

impl ImportedBlob {
    fn default_tier(&self) -> AccessTier {
        match self.kind {
            ImportedKind::Block => AccessTier::Hot,
            ImportedKind::Append { .. } | ImportedKind::Page { .. } => AccessTier::Unspecified,
        }
    }
}

#[cfg(test)]
mod tests;
