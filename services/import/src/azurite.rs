//! `import azurite`: an Azurite workspace on disk.

use std::{path::PathBuf, sync::Arc};

use futures::{StreamExt as _, TryStreamExt as _};
use serde_json::{Value, json};
use trestle_command::{errors::CliError, files, output::skip_ahead};

use super::{
    ImportTarget, Source,
    args::ImportAzuriteArgs,
    plan::ImportPlan,
    progress::SourcePosition,
    tables::{self, ChunkSender, TableBatch},
};

mod blob_documents;
mod blobs;
mod documents;
mod extents;
#[cfg(feature = "testing")]
pub(super) mod fuzzed;
mod loki;
mod messages;
mod regular_file;
mod texts;
mod workspace;

pub(super) use blob_documents::tier_of;
use blobs::WorkspaceBlobs;
use extents::Extents;
use loki::Collection;
use workspace::Workspace;

/// A workspace.
pub(super) struct Azurite {
    workspace: Workspace,
    account: String,
    parallel: usize,
    snapshots: bool,
    extents: Arc<Extents>,
}

impl Azurite {
    /// Finds a workspace and lists what it holds.
    pub(super) async fn open(args: &ImportAzuriteArgs) -> Result<(Self, ImportPlan), CliError> {
        let copy = &args.copy;
        let workspace = Workspace::find(&args.directory, copy)?;
        let (account, plan) = workspace::scan(&workspace, args.from_account.as_deref()).await?;
        let (parallel, snapshots) = (copy.parallel.into(), copy.snapshots);
        let extents = Extents::open(workspace.extents(), workspace.extent_list.as_deref());
        let extents = Arc::new(extents.await?);
        Ok((Self { workspace, account, parallel, snapshots, extents }, plan))
    }
}

impl Source for Azurite {
    fn identity(&self) -> Result<Value, CliError> {
        let Self { workspace, account, .. } = self;
        let (directory, files) = (&workspace.directory, workspace.versions()?);
        Ok(json!({
            "directory": directory.to_string_lossy(), "account": account, "files": files,
            "--snapshots": self.snapshots,
        }))
    }

    fn checkpoint(&self) -> PathBuf {
        files::with_suffix(&self.workspace.directory, ".trestle-import")
    }

    fn bytes(&self) -> Option<u64> {
        self.workspace.files().map(|path| path.metadata().ok().map(|found| found.len())).sum()
    }

    async fn copy(&self, target: ImportTarget<'_>, plan: &ImportPlan) -> Result<(), CliError> {
        let blobs = self.blobs(target);
        tokio::try_join!(
            self.copy_tables(target, plan),
            messages::copy(&self.workspace, &self.account, target),
            blobs.copy(),
        )?;
        // Everything is read, and every message answered.
        target.tracker.change(|progress| {
            progress.queues.values_mut().for_each(|queue| queue.complete = true);
        });
        Ok(())
    }
}

impl Azurite {
    fn blobs<'a>(&'a self, target: ImportTarget<'a>) -> WorkspaceBlobs<'a> {
        WorkspaceBlobs {
            path: self.workspace.blobs.as_deref(),
            account: &self.account,
            extents: &self.extents,
            target,
            snapshots: self.snapshots,
            parallel: self.parallel,
        }
    }

    async fn copy_tables(
        &self,
        target: ImportTarget<'_>,
        plan: &ImportPlan,
    ) -> Result<(), CliError> {
        let Some(path) = &self.workspace.tables else { return Ok(()) };
        let text = loki::read(path).await?;
        let database = loki::parse(&text, path)?;
        let copies = database.collections.iter().filter_map(|collection| {
            let name = collection.name.strip_prefix(&self.account)?.strip_prefix('$')?;
            plan.tables.iter().find(|planned| planned.name == name)?;
            // Without progress the target rejected the whole table.
            let after = target.tracker.read(|progress| {
                let table = progress.tables.get(&tables::folded(name))?;
                match table.position {
                    _ if table.complete => None,
                    Some(SourcePosition::Documents(count)) => Some(count),
                    _ => Some(0),
                }
            });
            let copied = collection.bytes(after.unwrap_or(u64::MAX));
            if copied > 0 {
                skip_ahead(&target.tracker.bar, copied);
            }
            Some((name, collection, after?))
        });
        let copies = futures::stream::iter(copies).map(Ok);
        let copy = |(name, collection, after)| copy_table(target, name, collection, after);
        copies.try_for_each_concurrent(self.parallel, copy).await
    }
}

/// Copies the entities of a table after the first `after`.
async fn copy_table(
    target: ImportTarget<'_>,
    name: &str,
    collection: &Collection<'_>,
    after: u64,
) -> Result<(), CliError> {
    let read = async |chunks: ChunkSender| {
        let mut batch = TableBatch::default();
        for (number, json) in collection.documents(after) {
            target.tracker.bar.inc(u64::try_from(json.len()).unwrap_or_default());
            let before = SourcePosition::Documents(number - 1);
            if let Some(chunk) = batch.add(documents::entity(json, number), Some(before)) {
                chunks.send(chunk).await?;
            }
        }
        chunks.send(batch.finish(SourcePosition::End)).await
    };
    target.fill(name, None, read).await
}
