//! `import azure`: a live account, or an emulator, over its REST protocol.

use std::path::PathBuf;

use clap::ValueEnum as _;
use futures::{StreamExt as _, TryStreamExt as _};
use serde_json::{Value, json};
use trestle_command::{errors::CliError, files};

use super::{
    ImportTarget, Source,
    args::{CopyArgs, ImportAzureArgs, QueueMode},
    plan::ImportPlan,
};

mod blob_pages;
mod blobs;
mod connection;
mod http;
mod policies;
mod queues;
mod ranges;
mod tables;
mod xml;

use blobs::AccountBlobs;
use connection::AzureConnection;
use http::Http;

/// Largest file with a connection string, in bytes.
const CONNECTION_BYTES_MAX: u64 = 64 * 1024;

/// An account.
pub(super) struct Azure {
    http: Http,
    messages: QueueMode,
    parallel: usize,
    skip_blobs: bool,
    snapshots: bool,
}

impl Azure {
    /// Lists what an account holds.
    pub(super) async fn open(args: &ImportAzureArgs) -> Result<(Self, ImportPlan), CliError> {
        let usage = |rule: String| CliError::Usage(format!("connection string: {rule}"));
        let text = match (&args.source, &args.source_file) {
            (Some(text), None) => text.reveal().to_owned(),
            (None, Some(file)) => files::read_small(file, CONNECTION_BYTES_MAX)?,
            _ => {
                let rule = "give it as an argument, in AZURE_STORAGE_CONNECTION_STRING, or in a \
                            file with --source-file";
                return Err(usage(rule.to_owned()));
            }
        };
        let connection = AzureConnection::parse(text.trim()).map_err(usage)?;
        let http = Http::new(connection, args.source_ca_file.as_deref())?;
        let why_remaining = "in the source; --queues receive moves those that are visible there";
        let mut plan = ImportPlan { why_remaining, ..ImportPlan::default() };
        if http.connection.tables.is_some() {
            tables::list(&http, &mut plan).await?;
        }
        if http.connection.queues.is_some() && args.queues != QueueMode::Skip {
            queues::list(&http, &mut plan).await?;
        }
        let CopyArgs { skip_blobs, snapshots, .. } = args.copy;
        if http.connection.blobs.is_some() && !skip_blobs {
            blobs::list(&http, &mut plan).await?;
        }
        let (messages, parallel) = (args.queues, args.copy.parallel.into());
        Ok((Self { http, messages, parallel, skip_blobs, snapshots }, plan))
    }
}

impl Source for Azure {
    fn identity(&self) -> Result<Value, CliError> {
        let AzureConnection { account, tables, queues, blobs, .. } = &*self.http.connection;
        let messages = self.messages.to_possible_value().map(|mode| mode.get_name().to_owned());
        Ok(json!({
            "account": account, "tables": tables, "queues": queues, "blobs": blobs,
            "--queues": messages, "--skip-blobs": self.skip_blobs, "--snapshots": self.snapshots,
        }))
    }

    fn checkpoint(&self) -> PathBuf {
        PathBuf::from(format!("{}.trestle-import", self.http.connection.account))
    }

    fn bytes(&self) -> Option<u64> {
        None
    }

    async fn copy(&self, target: ImportTarget<'_>, plan: &ImportPlan) -> Result<(), CliError> {
        let (http, messages) = (&self.http, self.messages);
        let parts =
            plan.tables.iter().map(|table| tables::parts(http, target.tracker, &table.name));
        let parts = futures::stream::iter(parts).buffered(self.parallel);
        let copies = parts
            .map_ok(|parts| futures::stream::iter(parts).map(Ok))
            .try_flatten()
            .map_ok(|part| tables::copy(http, target, part))
            .try_buffer_unordered(self.parallel);
        let moves = plan.queues.iter();
        let moves = moves.map(|queue| queues::copy(http, target, queue.name.clone(), messages));
        let moves = futures::stream::iter(moves).buffer_unordered(self.parallel);
        let blobs =
            AccountBlobs { http, target, snapshots: self.snapshots, parallel: self.parallel };
        tokio::try_join!(copies.try_collect::<()>(), moves.try_collect::<()>(), blobs.copy(plan),)?;
        Ok(())
    }
}
