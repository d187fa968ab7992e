//! Blobs of a workspace, from its database and its extents to their containers.

use std::{collections::BTreeMap, path::Path, sync::Arc};

use futures::{StreamExt as _, TryStreamExt as _};
use tokio::sync::Semaphore;
use trestle_command::{errors::CliError, output::skip_ahead};

use super::{
    blob_documents::{self, StateKey},
    extents::{Extents, StoredContent},
    loki::{self, Database},
    workspace::BLOBS,
};
use crate::{
    ImportTarget,
    blobs::{self, BATCH_MAX, BlobFailure, BlobStates, BlobTarget, ImportedBlob},
    progress::{BlobPosition, Skipped},
};

/// Most containers that are copied at once, which share the windows.
const CONTAINERS_AT_ONCE: usize = 4;

/// A state of a blob: its snapshot, and its document.
type StateDocument<'a> = (String, &'a str);
/// The states of blobs by their names.
type NamedStates<'a> = BTreeMap<String, Vec<StateDocument<'a>>>;

/// The blobs of an account in a workspace, and where they are copied to.
#[derive(Clone, Copy)]
pub(super) struct WorkspaceBlobs<'a> {
    /// Their database, if there is one.
    pub(super) path: Option<&'a Path>,
    pub(super) account: &'a str,
    pub(super) extents: &'a Arc<Extents>,
    pub(super) target: ImportTarget<'a>,
    /// Whether snapshots are copied.
    pub(super) snapshots: bool,
    /// Most blobs of a container that are copied at once.
    pub(super) parallel: usize,
}

impl WorkspaceBlobs<'_> {
    /// Copies the blobs of every container that is in the progress.
    pub(super) async fn copy(&self) -> Result<(), CliError> {
        let Some(path) = self.path else { return Ok(()) };
        let text = loki::read(path).await?;
        let database = loki::parse(&text, path)?;
        let windows = blobs::windows();
        let containers = futures::stream::iter(self.by_container(&database)).map(Ok);
        let copy = |(container, names): (String, _)| {
            let windows = &windows;
            async move { self.copy_container(&container, names, windows).await }
        };
        containers.try_for_each_concurrent(CONTAINERS_AT_ONCE, copy).await
    }

    /// The documents of the blobs to copy.
    fn by_container<'d>(&self, database: &Database<'d>) -> BTreeMap<String, NamedStates<'d>> {
        let tracker = self.target.tracker;
        let mut containers: BTreeMap<String, NamedStates<'d>> = tracker.read(|progress| {
            progress.containers.keys().map(|name| (name.clone(), NamedStates::new())).collect()
        });
        let lists = database.collections.iter().filter(|collection| collection.name == BLOBS);
        for (number, json) in lists.flat_map(|list| list.documents(0)) {
            let key: StateKey = match serde_json::from_str(json) {
                Ok(key) => key,
                Err(error) => {
                    let which = format!("document {number}");
                    let skipped = Skipped::new("blobs", which, format!("is not a blob: {error}"));
                    tracker.change(|progress| progress.skip(skipped));
                    continue;
                }
            };
            let is_copied = key.account_name == self.account
                && key.is_committed
                && (key.snapshot.is_empty() || self.snapshots);
            match containers.get_mut(&key.container_name).filter(|_| is_copied) {
                Some(names) => names.entry(key.name).or_default().push((key.snapshot, json)),
                None => tracker.bar.inc(u64::try_from(json.len()).unwrap_or_default()),
            }
        }
        containers
    }

    async fn copy_container(
        &self,
        container: &str,
        names: NamedStates<'_>,
        windows: &Semaphore,
    ) -> Result<(), CliError> {
        let (target, parallel, bar) = (self.target, self.parallel, &self.target.tracker.bar);
        let into = BlobTarget { target, container, windows, parallel };
        let mut position = match into.position() {
            Some(BlobPosition::Names(count)) => count,
            Some(BlobPosition::Start) => 0,
            _ => {
                skip_ahead(bar, names.values().map(|states| length(states)).sum());
                return Ok(());
            }
        };
        let mut names = names.into_iter();
        let before = usize::try_from(position).unwrap_or(usize::MAX);
        let copied: u64 = names.by_ref().take(before).map(|(_, states)| length(&states)).sum();
        if copied > 0 {
            skip_ahead(bar, copied);
        }
        loop {
            let batch: Vec<_> = names.by_ref().take(BATCH_MAX).collect();
            position = position.saturating_add(u64::try_from(batch.len()).unwrap_or_default());
            let next = match batch.len() {
                BATCH_MAX => BlobPosition::Names(position),
                _ => BlobPosition::End,
            };
            let load = async |name: &str, states: Vec<StateDocument<'_>>| {
                bar.inc(length(&states));
                load(name, states, self.extents)
            };
            into.copy_batch(batch, next.clone(), load).await?;
            if next == BlobPosition::End {
                return Ok(());
            }
        }
    }
}

/// Bytes of the documents.
fn length(states: &[StateDocument<'_>]) -> u64 {
    states.iter().map(|(_, json)| u64::try_from(json.len()).unwrap_or_default()).sum()
}

/// The states of a blob: snapshots by their times, and the blob at the end.
fn load(
    name: &str,
    mut states: Vec<StateDocument<'_>>,
    extents: &Arc<Extents>,
) -> Result<BlobStates<StoredContent>, BlobFailure> {
    states.sort_by(|(first, _), (second, _)| {
        (first.is_empty(), first.as_str()).cmp(&(second.is_empty(), second.as_str()))
    });
    if states.last().is_none_or(|(snapshot, _)| !snapshot.is_empty()) {
        return Err(BlobFailure::Item("has snapshots, and no blob".to_owned()));
    }
    let states = states.into_iter().map(|(snapshot, json)| {
        let (blob, pieces) = blob_documents::blob(json, name)?;
        let blob = ImportedBlob { is_snapshot: !snapshot.is_empty(), ..blob };
        let (extents, pieces) = (Arc::clone(extents), Arc::new(pieces));
        Ok((blob, StoredContent { extents, pieces }))
    });
    states.collect::<Result<_, String>>().map_err(BlobFailure::Item)
}
