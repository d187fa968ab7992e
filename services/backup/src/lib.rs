//! `trestle backup`: copies one instant of a data directory to a directory or an object store, and back.
//!
//! A backup is a manifest, which names lists, which name chunks of rows and objects. Chunks are named by what they
//! contain and objects by their names in the data directory, where they never change; so what an earlier backup has
//! sent is not sent again, and nothing that was written is ever written again. Names are keyed hashes, and parts can be
//! encrypted. The manifest comes last: a backup exists once it does.
//!
//! The server gives the instant and nothing else: at a request in the data directory (`spool`) it makes a checkpoint
//! of the rows and holds the deletes of objects. Reading, compressing and sending are in the process of the command,
//! so that they cost the server neither memory nor credentials.

mod args;
mod changes;
mod coverage;
mod create;
mod failure;
mod follow;
#[cfg(feature = "testing")]
pub mod fuzzing;
mod instants;
mod keygen;
mod known_targets;
mod lists;
mod manifest;
mod mount;
mod names;
mod objects;
mod packed;
mod pieces;
mod prune;
mod replay;
mod repository;
mod restore;
mod restore_instant;
mod rows;
mod rules;
mod sealed;
mod show;
mod spool;
#[cfg(test)]
mod tests;
mod throttle;
mod verify;
mod window;
mod writer;

use std::process::ExitCode;

use futures::future::LocalBoxFuture;
use trestle_command::{
    errors::CliError,
    interrupt::Interrupts,
    outcome::finish,
    output::{Output, OutputArgs},
};

pub use self::{
    args::{BackupCommand, CreateArgs, DiffArgs, NamedRestoreArgs, RestoreArgs, SourceArgs},
    changes::{CHANGES, ChangesEnd, ShippedChanges, based_line, note_based_line},
    mount::{MountArgs, MountedBackup},
    rules::{NamedObject, ObjectAreaName, ObjectName, RESTORING, StoreRules},
    sealed::keys_problem,
    spool::{CHECKPOINT, CheckpointAnswer, FAILED, LOCK, READY, REQUEST, SPOOL},
};

/// Runs a command; errors go to standard error. The data directory of [`SourceArgs`] must be set.
pub fn run_backup(
    command: BackupCommand,
    rules: StoreRules,
    output: &OutputArgs,
) -> LocalBoxFuture<'_, ExitCode> {
    Box::pin(async move { finish(run(command, rules, output).await, output.is_json(), None) })
}

async fn run(
    command: BackupCommand,
    rules: StoreRules,
    output: &OutputArgs,
) -> Result<(), CliError> {
    let mut out = Output::standard(output);
    let mut interrupts = Interrupts::listen()?;
    let printed = &mut out;
    let work = async move {
        match command {
            BackupCommand::Create(args) => create::run(&args, rules, printed).await,
            BackupCommand::Follow(args) => follow::run(&args, rules, printed).await,
            BackupCommand::List(args) => show::list(&args, printed).await,
            BackupCommand::Show(args) => show::show(&args, printed).await,
            BackupCommand::Verify(args) => verify::run(&args, printed).await,
            BackupCommand::Restore(args) => restore::run(&args, rules, printed).await,
            BackupCommand::Prune(args) => prune::run(&args, printed).await,
            BackupCommand::Keygen(args) => keygen::run(&args, printed),
        }
    };
    let done = interrupts.unless_pressed(work).await;
    // What was found so far is printed also where it is the reason of the error.
    let printed = out.finish();
    done.and(printed)
}
