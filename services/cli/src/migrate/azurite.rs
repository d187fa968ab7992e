//! `import azurite`: an Azurite workspace on disk.
//!
//! Two threads read the two databases sequentially. Entities are sent to their table in chunks and messages to
//! their queue, each independently, within bounds of memory.

use std::{path::PathBuf, sync::Arc};

use serde_json::{Value, json};
use tokio::{
    sync::mpsc,
    task::{JoinError, JoinSet},
};

use super::{
    Source,
    args::AzuriteArgs,
    plan::ImportPlan,
    progress::{SourcePosition, Tracker},
    queues::TargetQueues,
    tables::{self, Chunk, Chunks, TableBatch},
};
use crate::{client::Session, errors::CliError, upload::AHEAD_MAX};

mod documents;
#[cfg(feature = "testing")]
pub(super) mod filtered;
mod loki;
mod messages;
mod texts;
mod workspace;

use workspace::Workspace;

/// A workspace.
pub(super) struct Azurite {
    workspace: Workspace,
    account: String,
    parallel: usize,
}

impl Azurite {
    /// Finds a workspace and lists what it holds.
    pub(super) async fn open(args: &AzuriteArgs) -> Result<(Self, ImportPlan), CliError> {
        let workspace = Workspace::find(&args.directory)?;
        let (found, account) = (workspace.clone(), args.from_account.clone());
        let scan = move || workspace::scan(&found, account.as_deref());
        let (account, plan) =
            tokio::task::spawn_blocking(scan).await.map_err(|error| ended(&error))??;
        Ok((Self { workspace, account, parallel: args.copy.parallel.into() }, plan))
    }
}

impl Source for Azurite {
    fn identity(&self) -> Result<Value, CliError> {
        let Self { workspace, account, .. } = self;
        let (directory, files) = (&workspace.directory, workspace.versions()?);
        Ok(json!({ "directory": directory.to_string_lossy(), "account": account, "files": files }))
    }

    fn checkpoint(&self) -> PathBuf {
        crate::files::with_suffix(&self.workspace.directory, ".trestle-import")
    }

    fn bytes(&self) -> Option<u64> {
        self.workspace.files().map(|path| path.metadata().ok().map(|found| found.len())).sum()
    }

    async fn copy(
        &self,
        session: &Session,
        tracker: &Arc<Tracker>,
        plan: &ImportPlan,
    ) -> Result<(), CliError> {
        tokio::try_join!(
            self.copy_tables(session, tracker, plan),
            messages::copy(&self.workspace, &self.account, TargetQueues::new(session), tracker),
        )?;
        // Everything is read, and every message answered.
        tracker.change(|progress| {
            progress.queues.values_mut().for_each(|queue| queue.complete = true);
        });
        Ok(())
    }
}

impl Azurite {
    async fn copy_tables(
        &self,
        session: &Session,
        tracker: &Arc<Tracker>,
        plan: &ImportPlan,
    ) -> Result<(), CliError> {
        let Some(path) = self.workspace.tables.clone() else { return Ok(()) };
        let (opened, mut tables) = mpsc::channel(1);
        let mut reader = TableReader {
            prefix: format!("{}$", self.account),
            names: plan.tables.iter().map(|table| table.name.clone()).collect(),
            tracker: Arc::clone(tracker),
            opened,
            batch: TableBatch::default(),
            chunks: None,
        };
        let reading = tokio::task::spawn_blocking(move || loki::read(&path, &mut reader));
        let mut filling = JoinSet::new();
        loop {
            tokio::select! {
                table = tables.recv(), if filling.len() < self.parallel => {
                    let Some((name, chunks)): Option<(String, Chunks)> = table else { break };
                    let (session, tracker) = (session.clone(), Arc::clone(tracker));
                    filling.spawn(async move {
                        tables::fill(&session, &tracker, name, None, chunks).await
                    });
                }
                Some(filled) = filling.join_next() => filled.map_err(|error| ended(&error))??,
            }
        }
        while let Some(filled) = filling.join_next().await {
            filled.map_err(|error| ended(&error))??;
        }
        reading.await.map_err(|error| ended(&error))?
    }
}

/// A task of the import that did not finish.
fn ended(error: &JoinError) -> CliError {
    CliError::Protocol(format!("a part of the import ended: {error}"))
}

/// The receiver failed, and reports its own error.
fn closed() -> CliError {
    CliError::Protocol("the import ended".to_owned())
}

/// Passes the entities of each table to the task that writes them.
struct TableReader {
    /// The prefix of collections of entities.
    prefix: String,
    names: Vec<String>,
    tracker: Arc<Tracker>,
    opened: mpsc::Sender<(String, Chunks)>,
    batch: TableBatch,
    chunks: Option<mpsc::Sender<Result<Chunk, CliError>>>,
}

impl TableReader {
    fn hand(&mut self, chunk: Option<Chunk>) -> Result<(), CliError> {
        match (chunk, &self.chunks) {
            (Some(chunk), Some(chunks)) => chunks.blocking_send(Ok(chunk)).map_err(|_| closed()),
            _ => Ok(()),
        }
    }
}

impl loki::DatabaseReader for TableReader {
    fn select(&mut self, collection: &str) -> Option<u64> {
        let name = collection.strip_prefix(&self.prefix)?;
        self.names.iter().find(|planned| *planned == name)?;
        // Without progress the target rejected the whole table.
        let table =
            self.tracker.read(|progress| progress.tables.get(&tables::folded(name)).cloned())?;
        let after = match table.position {
            _ if table.complete => return None,
            Some(SourcePosition::Documents(count)) => count,
            _ => 0,
        };
        let (sender, chunks) = mpsc::channel(AHEAD_MAX);
        self.chunks = Some(sender);
        // A closed receiver is reported for the first chunk.
        let _ = self.opened.blocking_send((name.to_owned(), chunks));
        Some(after)
    }

    fn document(&mut self, _: &str, number: u64, json: &str) -> Result<(), CliError> {
        let before = Some(SourcePosition::Documents(number.saturating_sub(1)));
        let chunk = self.batch.add(documents::entity(json, number), before);
        self.hand(chunk)
    }

    fn end(&mut self, _: &str) -> Result<(), CliError> {
        let last = self.batch.finish(SourcePosition::End);
        self.hand(Some(last))?;
        self.chunks = None;
        Ok(())
    }

    fn bytes(&mut self, more: u64) {
        self.tracker.bar.inc(more);
    }
}
