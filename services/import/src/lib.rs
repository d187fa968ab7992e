//! `trestle import`: copies tables, queues and blobs from a source, resumably, and compares source and target at the
//! end.
//!
//! The content of the source is listed first. Then tables, queues and containers are created, and the source copies
//! into them, recording its progress. Entities and blobs replace existing ones and messages carry the ids they had, so
//! a repeated step changes nothing.

mod args;
mod azure;
mod azurite;
mod blobs;
mod compare;
mod containers;
mod digest;
mod plan;
mod prepare;
mod progress;
mod queues;
mod tables;
mod trestle;

#[cfg(feature = "testing")]
pub use self::azurite::fuzzed::{Documents, azurite_documents};
pub use args::{CopyArgs, ImportAzureArgs, ImportAzuriteArgs, ImportCommand, ImportTrestleArgs};
pub use trestle::{TrestleSource, import_from};

use std::{path::PathBuf, process::ExitCode};

use azure::Azure;
use azurite::Azurite;
use futures::future::LocalBoxFuture;
use plan::ImportPlan;
use progress::{MigrationProgress, Tracker};
use serde_json::{Value, json};
use trestle_command::{
    client::Session,
    errors::{CliError, Halt},
    flags::ClientArgs,
    interrupt::Interrupts,
    outcome::finish_call,
    output::Output,
};

/// A source of tables, queues and blobs.
trait Source {
    /// The source and the options of the result, without secrets.
    fn identity(&self) -> Result<Value, CliError>;
    /// The default path of the checkpoint.
    fn checkpoint(&self) -> PathBuf;
    /// How many bytes to read, if that is known.
    fn bytes(&self) -> Option<u64>;
    /// Copies everything that is in the progress and not complete.
    async fn copy(&self, target: ImportTarget<'_>, plan: &ImportPlan) -> Result<(), CliError>;
}

/// The server to copy into, and the progress of the import.
#[derive(Clone, Copy)]
struct ImportTarget<'a> {
    session: &'a Session,
    tracker: &'a Tracker,
}

/// Copies tables, queues and blobs from another service and prints the comparison of both sides; errors go
/// to standard error.
///
/// Must be called on a Tokio runtime. The exit codes are those in the command's help.
pub fn run_import(command: ImportCommand, client: &ClientArgs) -> LocalBoxFuture<'_, ExitCode> {
    Box::pin(async move { finish_call(run(command, client).await, client).await })
}

async fn run(command: ImportCommand, client: &ClientArgs) -> Result<(), CliError> {
    match command {
        ImportCommand::Azurite(args) => {
            let (source, plan) = Azurite::open(&args).await?;
            let session = Session::connect(client).await?;
            import(&source, plan, &args.copy, client, &session).await
        }
        ImportCommand::Azure(args) => {
            let (source, plan) = Azure::open(&args).await?;
            let session = Session::connect(client).await?;
            import(&source, plan, &args.copy, client, &session).await
        }
        ImportCommand::Trestle(args) => trestle::run(args, client).await,
    }
}

async fn import(
    source: &impl Source,
    plan: ImportPlan,
    args: &CopyArgs,
    client: &ClientArgs,
    session: &Session,
) -> Result<(), CliError> {
    let mut output = Output::standard(&client.output);
    let path = args.checkpoint.clone().unwrap_or_else(|| source.checkpoint());
    let job = json!({ "endpoint": client.endpoint, "source": source.identity()? });
    let bar = output.progress(source.bytes(), 0);
    let tracker = Tracker::open(path.clone(), job, args.resume, bar)?;
    let target = ImportTarget { session, tracker: &tracker };
    prepare::prepare(target, &plan, args).await?;
    let copy = Box::pin(source.copy(target, &plan));
    let mut interrupts = Interrupts::listen()?;
    let copied = interrupts.unless_pressed(copy).await;
    tracker.bar.finish_and_clear();
    tracker.save()?;
    let halted = |error: CliError| {
        error.halted(true, || Halt {
            endpoint: client.endpoint.clone(),
            progress: format!("{} copied", tracker.read(MigrationProgress::copied)),
            next: format!("continue with --resume: checkpoint=`{}`", path.display()),
        })
    };
    copied.map_err(halted)?;
    let compared = Box::pin(async {
        let report = compare::compare(target, &plan, args).await?;
        prepare::restore(target).await?;
        Ok(report)
    });
    let report = interrupts.unless_pressed(compared).await.map_err(halted)?;
    report.print(&mut output)?;
    output.finish()?;
    tracker.close()?;
    report.verdict()
}
