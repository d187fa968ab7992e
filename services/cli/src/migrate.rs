//! `trestle import`: tables and queues from elsewhere, copied so that a killed import goes on where
//! it was, and compared at the end.
//!
//! A source is first asked what it holds. Then tables and queues are made ready here, and the source
//! copies into them, writing down how far it is. Entities replace what is there and messages carry
//! the ids they had, so doing something twice changes nothing.

mod args;
mod azure;
mod azurite;
mod compare;
mod digest;
mod notes;
mod plan;
mod prepare;
mod queues;
mod tables;

#[cfg(feature = "testing")]
pub use self::azurite::sifted::{Documents, azurite_documents};
pub use args::{AzureArgs, AzuriteArgs, CopyArgs, ImportCommand, Messages};

use std::{path::PathBuf, sync::Arc, time::Duration};

use azure::Azure;
use azurite::Azurite;
use notes::{Job, Ledger, Notes};
use plan::Plan;

use crate::{
    args::ClientArgs,
    client::Session,
    errors::{CliError, Halt},
    interrupt::Interrupts,
    output::{Output, counted},
};

/// Where tables and queues come from.
trait Source {
    /// Where it is, without secrets.
    fn name(&self) -> String;
    /// Its account.
    fn account(&self) -> &str;
    /// What the outcome depends on besides.
    fn terms(&self) -> Result<Vec<String>, CliError>;
    /// Where the notes are kept unless something else is said.
    fn notes(&self) -> PathBuf;
    /// How many bytes there are to read, where that is known.
    fn bytes(&self) -> Option<u64>;
    /// Copies everything that is in the notes and not complete.
    async fn copy(
        &self,
        session: &Session,
        ledger: &Arc<Ledger>,
        plan: &Plan,
    ) -> Result<(), CliError>;
}

/// Runs a command.
pub(crate) async fn run(command: ImportCommand, client: &ClientArgs) -> Result<(), CliError> {
    match command {
        ImportCommand::Azurite(args) => {
            let (source, plan) = Azurite::open(&args).await?;
            import(&source, plan, &args.copy, client).await
        }
        ImportCommand::Azure(args) => {
            let (source, plan) = Azure::open(&args).await?;
            import(&source, plan, &args.copy, client).await
        }
    }
}

async fn import(
    source: &impl Source,
    plan: Plan,
    args: &CopyArgs,
    client: &ClientArgs,
) -> Result<(), CliError> {
    let session = Session::connect(client).await?;
    let mut output = Output::standard(client.json);
    let path = args.notes.clone().unwrap_or_else(|| source.notes());
    let job = Job {
        endpoint: client.endpoint.clone(),
        source: source.name(),
        account: source.account().to_owned(),
        terms: source.terms()?,
    };
    let progress = output.progress(source.bytes());
    let ledger = Arc::new(Ledger::open(&path, job, args.resume, progress)?);
    prepare::prepare(&session, &ledger, &plan, args).await?;
    let copy = Box::pin(source.copy(&session, &ledger, &plan));
    let mut interrupts = Interrupts::listen()?;
    let copied = interrupts.unless_pressed(copy).await;
    ledger.progress().finish_and_clear();
    ledger.save()?;
    let halted = |error: CliError| {
        let (entities, messages) = ledger.read(Notes::done);
        error.halted(true, || Halt {
            endpoint: client.endpoint.clone(),
            done: format!(
                "{} and {} are copied",
                counted(entities, "entity"),
                counted(messages, "message")
            ),
            next: format!("go on with --resume: notes=`{}`", path.display()),
        })
    };
    copied.map_err(halted)?;
    let compared = Box::pin(async {
        let report = compare::compare(&session, &ledger, &plan, args.parallel.into()).await?;
        prepare::settle(&session, &ledger).await?;
        Ok(report)
    });
    let report = interrupts.unless_pressed(compared).await.map_err(halted)?;
    report.print(&mut output)?;
    output.flush()?;
    ledger.close()?;
    report.verdict()
}

/// A duration as it travels.
fn span(duration: Duration) -> prost_types::Duration {
    prost_types::Duration {
        seconds: i64::try_from(duration.as_secs()).unwrap_or(i64::MAX),
        nanos: i32::try_from(duration.subsec_nanos()).unwrap_or(0),
    }
}
