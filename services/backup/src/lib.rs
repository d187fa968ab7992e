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
mod follow;
#[cfg(feature = "testing")]
pub mod fuzzing;
mod instants;
mod known_targets;
mod lists;
mod manifest;
mod mount;
mod names;
mod objects;
mod packed;
mod prune;
mod replay;
mod repository;
mod restore;
mod rows;
mod sealed;
mod show;
mod spool;
#[cfg(test)]
mod tests;
mod throttle;
mod verify;
mod window;

use std::{
    io,
    path::{Path, PathBuf},
    process::ExitCode,
};

use futures::future::LocalBoxFuture;
use trestle_command::{
    errors::CliError,
    interrupt::Interrupts,
    outcome::finish,
    output::{Output, OutputArgs},
};
use trestle_kv::{Entry, Keyspace};

pub use self::{
    args::{BackupCommand, CreateArgs, DiffArgs, NamedRestoreArgs, RestoreArgs, SourceArgs},
    changes::{CHANGES, ChangesEnd, ShippedChanges, based_line, note_based_line},
    mount::{MountArgs, MountedBackup},
    sealed::keys_problem,
    spool::{CHECKPOINT, CheckpointAnswer, FAILED, LOCK, READY, REQUEST, SPOOL},
};

/// The file of a data directory whose restore did not finish. No version opens one that has it.
pub const RESTORING: &str = "RESTORING";

/// What a backup needs of the services of a store.
#[derive(Clone)]
pub struct StoreRules {
    /// The keyspaces of every service.
    pub keyspaces: Vec<Keyspace>,
    /// The objects that a row names.
    pub objects_of: fn(&Entry) -> Result<Vec<NamedObject>, String>,
    /// The row as a restored store has it; none if it has not.
    pub restored: fn(Entry) -> Result<Option<Entry>, String>,
    /// The random id of a data directory, which is made where there is none.
    pub store_id: fn(&Path) -> io::Result<String>,
    /// The directory of the rows in a data directory.
    pub engine_dir: &'static str,
}

/// The area of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ObjectAreaName {
    /// The contents of blobs.
    Blobs,
    /// The segments of logs.
    Logs,
}

/// An object that a row names.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct NamedObject {
    /// Its name.
    pub name: ObjectName,
    /// The bytes that it has where it is whole, as the row tells.
    pub bytes: u64,
}

impl NamedObject {
    /// Why an object of this name is not this one, for people; none where it has these bytes.
    #[must_use]
    pub fn difference(&self, found_bytes: u64) -> Option<String> {
        let expected = self.bytes;
        (found_bytes != expected).then(|| {
            format!("it has not the length that its row tells: bytes=`{found_bytes}`, expected=`{expected}`")
        })
    }
}

/// The name of an object.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectName {
    /// Its area.
    pub area: ObjectAreaName,
    /// Its path there.
    pub path: String,
}

/// A data directory and the rules of its store.
#[derive(Clone)]
pub(crate) struct DataDirectory {
    /// The directory.
    pub(crate) path: PathBuf,
    /// The rules.
    pub(crate) rules: StoreRules,
}

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
            BackupCommand::Keygen(args) => sealed::keygen(&args, printed),
        }
    };
    let done = interrupts.unless_pressed(work).await;
    // What was found so far is printed also where it is the reason of the error.
    let printed = out.finish();
    done.and(printed)
}
