//! `import azurite`: a workspace that Azurite left on disk.
//!
//! Two threads read the two databases from front to back. Entities go to their table chunk by chunk
//! and messages to their queue, each at its own pace, within bounds of memory.

use std::{path::PathBuf, sync::Arc};

use tokio::{
    sync::mpsc,
    task::{JoinError, JoinSet},
};

use super::{
    Source,
    args::AzuriteArgs,
    notes::{Ledger, Place},
    plan::Plan,
    queues::Queues,
    tables::{self, Batch, Chunk, Chunks},
};
use crate::{client::Session, errors::CliError};

mod documents;
mod loki;
mod messages;
#[cfg(feature = "testing")]
pub(super) mod sifted;
mod survey;
mod texts;

use loki::Interest;
use survey::Workspace;

/// A workspace.
pub(super) struct Azurite {
    workspace: Workspace,
    account: String,
    parallel: usize,
}

impl Azurite {
    /// Finds a workspace and what it holds.
    pub(super) async fn open(args: &AzuriteArgs) -> Result<(Self, Plan), CliError> {
        let workspace = Workspace::find(&args.directory)?;
        let (found, account) = (workspace.clone(), args.from_account.clone());
        let survey = move || survey::survey(&found, account.as_deref(), Box::new(|_| {}));
        let (account, plan) =
            tokio::task::spawn_blocking(survey).await.map_err(|error| ended(&error))??;
        Ok((Self { workspace, account, parallel: args.copy.parallel.into() }, plan))
    }
}

impl Source for Azurite {
    fn name(&self) -> String {
        self.workspace.directory.display().to_string()
    }

    fn account(&self) -> &str {
        &self.account
    }

    fn terms(&self) -> Result<Vec<String>, CliError> {
        self.workspace.terms()
    }

    fn notes(&self) -> PathBuf {
        crate::files::beside(&self.workspace.directory, ".trestle-import")
    }

    fn bytes(&self) -> Option<u64> {
        self.workspace.files().map(|path| path.metadata().ok().map(|found| found.len())).sum()
    }

    async fn copy(
        &self,
        session: &Session,
        ledger: &Arc<Ledger>,
        plan: &Plan,
    ) -> Result<(), CliError> {
        tokio::try_join!(
            self.copy_tables(session, ledger, plan),
            messages::copy(&self.workspace, &self.account, Queues::new(session), ledger),
        )?;
        // Read to the end, every message answered.
        ledger.change(|notes| {
            notes.queues.values_mut().for_each(|queue| queue.complete = true);
        });
        Ok(())
    }
}

impl Azurite {
    async fn copy_tables(
        &self,
        session: &Session,
        ledger: &Arc<Ledger>,
        plan: &Plan,
    ) -> Result<(), CliError> {
        let Some(path) = self.workspace.tables.clone() else { return Ok(()) };
        let (opened, mut tables) = mpsc::channel(1);
        let mut reader = TableReader {
            prefix: format!("{}$", self.account),
            names: plan.tables.iter().map(|table| table.name.clone()).collect(),
            ledger: Arc::clone(ledger),
            opened,
            batch: Batch::default(),
            chunks: None,
        };
        let reading = tokio::task::spawn_blocking(move || loki::read(&path, &mut reader));
        let mut filling = JoinSet::new();
        loop {
            tokio::select! {
                table = tables.recv(), if filling.len() < self.parallel => {
                    let Some((name, chunks)): Option<(String, Chunks)> = table else { break };
                    let (session, ledger) = (session.clone(), Arc::clone(ledger));
                    filling.spawn(async move {
                        tables::fill(&session, &ledger, name, None, chunks).await
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

/// A part of the import that came to no end.
fn ended(error: &JoinError) -> CliError {
    CliError::Protocol(format!("a part of the import ended: {error}"))
}

/// Nobody takes what is read: whoever did has failed, and says why itself.
fn nobody() -> CliError {
    CliError::Protocol("the import ended".to_owned())
}

/// Hands the entities of each table to who writes them.
struct TableReader {
    /// What the names of collections of entities begin with.
    prefix: String,
    names: Vec<String>,
    ledger: Arc<Ledger>,
    opened: mpsc::Sender<(String, Chunks)>,
    batch: Batch,
    chunks: Option<mpsc::Sender<Result<Chunk, CliError>>>,
}

impl TableReader {
    fn hand(&mut self, chunk: Option<Chunk>) -> Result<(), CliError> {
        match (chunk, &self.chunks) {
            (Some(chunk), Some(chunks)) => chunks.blocking_send(Ok(chunk)).map_err(|_| nobody()),
            _ => Ok(()),
        }
    }
}

impl loki::Reader for TableReader {
    fn interest(&mut self, collection: &str) -> Interest {
        let Some(name) = collection.strip_prefix(&self.prefix) else { return Interest::Skip };
        if !self.names.iter().any(|planned| planned == name) {
            return Interest::Skip;
        }
        let notes = self.ledger.read(|notes| notes.tables.get(&tables::folded(name)).cloned());
        let after = match notes {
            Some(notes) if notes.complete => return Interest::Skip,
            Some(notes) => match notes.place {
                Some(Place::Documents(count)) => count,
                _ => 0,
            },
            // Refused as a whole.
            None => return Interest::Skip,
        };
        let (sender, chunks) = mpsc::channel(tables::AHEAD_MAX);
        self.chunks = Some(sender);
        // Where nobody receives, the first chunk finds out.
        let _ = self.opened.blocking_send((name.to_owned(), chunks));
        Interest::After(after)
    }

    fn document(&mut self, _: &str, number: u64, json: &str) -> Result<(), CliError> {
        let before = Some(Place::Documents(number.saturating_sub(1)));
        let chunk = match documents::entity(json, number) {
            Ok(entity) => self.batch.add(entity, before),
            Err((which, why)) => self.batch.refuse(which, why, before),
        };
        self.hand(chunk)
    }

    fn end(&mut self, _: &str) -> Result<(), CliError> {
        let last = self.batch.finish(Some(Place::End));
        self.hand(Some(last))?;
        self.chunks = None;
        Ok(())
    }

    fn bytes(&mut self, more: u64) {
        self.ledger.progress().inc(more);
    }
}
