//! The command line of `trestle backup`.

mod shown;

use std::path::PathBuf;

use clap::{Args, Subcommand};
use trestle_command::{
    errors::CliError,
    values::{duration, whole_number},
};

pub use self::shown::{DiffArgs, NamedRestoreArgs};
use crate::{
    restore_instant::{RestoreInstant, restore_instant},
    sealed::Identities,
};

/// How fast a backup reads where nothing else is given, in bytes a second.
const RATE: &str = "32MiB";

/// Backups of a data directory.
#[derive(Debug, Subcommand)]
pub enum BackupCommand {
    /// Back up one instant of a data directory, beside the server that uses it or without one
    #[command(after_long_help = CREATE_HELP)]
    Create(CreateArgs),
    /// Send the changes of a data directory to a target as its server makes them, until it is stopped
    #[command(after_long_help = FOLLOW_HELP)]
    Follow(SourceArgs),
    /// List the backups at a target
    List(ListArgs),
    /// Show a backup
    Show(DetailArgs),
    /// Read a backup to its end, and name every part that is missing or damaged
    Verify(VerifyArgs),
    /// Restore a backup into a new data directory
    #[command(after_long_help = RESTORE_HELP)]
    Restore(RestoreArgs),
    /// Delete old backups, and what only they have
    #[command(after_long_help = PRUNE_HELP)]
    Prune(PruneArgs),
    /// Make a key for encrypted backups: a new file, whose public key is printed
    Keygen(KeygenArgs),
}

/// Where backups are.
#[derive(Debug, Clone, Args)]
pub(crate) struct TargetArgs {
    /// Where the backups are: a directory, s3://BUCKET/PATH, gs://BUCKET/PATH or az://CONTAINER/PATH
    #[arg(value_name = "TARGET", env = "TRESTLE_BACKUP_TARGET")]
    target: Option<String>,
}

impl TargetArgs {
    /// The target.
    ///
    /// # Errors
    /// None was given.
    pub(crate) fn text(&self) -> Result<&str, CliError> {
        let target = self.target.as_deref().filter(|target| !target.is_empty());
        target.ok_or_else(|| {
            CliError::Usage("no target: name one, or set TRESTLE_BACKUP_TARGET".to_owned())
        })
    }
}

/// What a command sends, and where to.
#[derive(Debug, Args)]
pub struct SourceArgs {
    /// Where it goes
    #[command(flatten)]
    pub(crate) target: TargetArgs,
    /// Data directory [default: that of the configuration]
    #[arg(long, value_name = "DIR")]
    pub data_dir: Option<PathBuf>,
    /// Configuration file of the server [default: ./trestle.toml, if it exists]
    #[arg(long, env = "TRESTLE_CONFIG", value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Encrypt what is sent, for the public keys of age in this file (`age1…`, a line each)
    #[arg(long, value_name = "FILE", env = "TRESTLE_BACKUP_ENCRYPT")]
    pub(crate) encrypt: Option<PathBuf>,
    /// The server that runs it
    #[command(flatten)]
    pub(crate) server: ServerArgs,
}

/// Arguments of `backup create`.
#[derive(Debug, Args)]
pub struct CreateArgs {
    /// What is backed up
    #[command(flatten)]
    pub source: SourceArgs,
    /// Most bytes that are read in a second, such as 64MiB; 0: no bound
    #[arg(long, value_name = "BYTES", default_value = RATE, value_parser = byte_size)]
    pub(crate) max_rate: Option<u64>,
}

/// The server that runs a command, if one does.
#[derive(Debug, Clone, Copy, Default, Args)]
pub(crate) struct ServerArgs {
    /// The server that runs this command, which ends with it
    #[arg(long, value_name = "PID", hide = true)]
    server_pid: Option<i32>,
}

impl ServerArgs {
    /// Whether a server runs the command.
    pub(crate) fn is_given(self) -> bool {
        self.server_pid.is_some()
    }

    /// Whether the server that ran it has ended: one that was killed ends no other process.
    pub(crate) fn has_ended(self) -> bool {
        let parent = rustix::process::getppid().map(|pid| pid.as_raw_nonzero().get());
        self.server_pid.is_some_and(|server| parent != Some(server))
    }
}

/// The key of encrypted backups.
#[derive(Debug, Clone, Args)]
pub(crate) struct KeyArgs {
    /// Read encrypted backups by the secret keys of age in this file (`AGE-SECRET-KEY-1…`, a line each)
    #[arg(long, value_name = "FILE", env = "TRESTLE_BACKUP_DECRYPT")]
    decrypt: Option<PathBuf>,
}

impl KeyArgs {
    /// Its keys.
    ///
    /// # Errors
    /// A file that has none.
    pub(crate) async fn read(&self) -> Result<Option<Identities>, CliError> {
        Identities::read_if_named(self.decrypt.clone()).await
    }

    /// Whether there is a file.
    pub(crate) fn is_given(&self) -> bool {
        self.decrypt.is_some()
    }
}

/// Arguments of `backup keygen`.
#[derive(Debug, Args)]
pub struct KeygenArgs {
    /// The file of the secret key, which is made: keep it where no server is
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
}

/// Arguments of `backup list`.
#[derive(Debug, Args)]
pub struct ListArgs {
    /// Where the backups are
    #[command(flatten)]
    pub(crate) target: TargetArgs,
}

/// Which backup.
#[derive(Debug, Args)]
pub(crate) struct ShowArgs {
    /// Where the backups are
    #[command(flatten)]
    pub(crate) target: TargetArgs,
    /// The backup [default: the newest one]
    #[arg(long, value_name = "ID")]
    pub(crate) id: Option<String>,
}

/// Arguments of `backup show`.
#[derive(Debug, Args)]
pub struct DetailArgs {
    /// Which backup
    #[command(flatten)]
    pub(crate) backup: ShowArgs,
    /// Its key
    #[command(flatten)]
    pub(crate) key: KeyArgs,
}

/// Arguments of `backup verify`.
#[derive(Debug, Args)]
pub struct VerifyArgs {
    /// Which backup
    #[command(flatten)]
    pub(crate) backup: ShowArgs,
    /// Verify every backup at the target
    #[arg(long, conflicts_with = "id")]
    pub(crate) all: bool,
    /// Its key
    #[command(flatten)]
    pub(crate) key: KeyArgs,
}

/// Arguments of `backup restore`.
#[derive(Debug, Args)]
pub struct RestoreArgs {
    /// Which backup
    #[command(flatten)]
    pub(crate) backup: ShowArgs,
    /// Restore this instant, such as 2026-01-31T08:00:00.5Z, or the last one that can be: latest
    #[arg(long, value_name = "TIME", value_parser = restore_instant)]
    pub(crate) to: Option<RestoreInstant>,
    /// The data directory, which is made, or empty
    #[arg(
        long,
        value_name = "DIR",
        required_unless_present_any = SELECTED,
        conflicts_with_all = SELECTED
    )]
    pub data_dir: Option<PathBuf>,
    /// What of it is copied into a running server
    #[command(flatten)]
    pub named: NamedRestoreArgs,
    /// Where its blobs and logs go [default: files in the data directory]
    #[arg(long, value_name = "URL", conflicts_with_all = SELECTED)]
    pub blob_url: Option<String>,
    /// Its key
    #[command(flatten)]
    pub(crate) key: KeyArgs,
}

/// The arguments that name what is copied.
const SELECTED: [&str; 3] = ["tables", "queues", "containers"];

/// Arguments of `backup prune`.
#[derive(Debug, Args)]
pub struct PruneArgs {
    /// Where the backups are
    #[command(flatten)]
    pub(crate) target: TargetArgs,
    /// Keep this number of the newest backups without damage
    #[arg(long, value_name = "N", value_parser = whole_number::<u64>(1..=1_000_000))]
    pub(crate) keep_last: Option<u64>,
    /// Keep the backups that are not older than this, such as 30d
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub(crate) keep_for: Option<std::time::Duration>,
    /// Show what would be deleted
    #[arg(long)]
    pub(crate) dry_run: bool,
}

/// A number of bytes with a binary unit.
fn byte_size(text: &str) -> Result<u64, String> {
    const RULE: &str = "must be a whole number of bytes, KiB, MiB or GiB, such as 64MiB";
    let digits = text.trim_end_matches(|it: char| it.is_ascii_alphabetic());
    let unit: u64 = match text.get(digits.len()..).unwrap_or_default() {
        "" | "B" => 1,
        "KiB" => 1024,
        "MiB" => 1024 * 1024,
        "GiB" => 1024 * 1024 * 1024,
        _ => return Err(RULE.to_owned()),
    };
    digits.parse::<u64>().ok().and_then(|number| number.checked_mul(unit)).ok_or(RULE.to_owned())
}

const CREATE_HELP: &str = "\
Run it on the host of the server, as its user: it requests a checkpoint from the server through the
data directory, and reads that at a low priority. Writes go on. Without a server it uses the store itself.

The backup has all tables, queues, blobs and logs of one instant. It has no settings, no account keys
and no certificates: keep the configuration beside it. With --encrypt, only who has a secret key that
belongs to one of the file can read it; the server needs none. What an earlier backup at the target has is not
sent again. A backup that was interrupted continues at the same instant when the command is repeated
within an hour.

Exit code 1 means that something of the data directory could not be read: the rest is backed up.";

const FOLLOW_HELP: &str = "\
A server with `backup.continuous = true` runs it by itself. With the backups at the target, what it sends
restores any instant: `trestle backup restore --to TIME`. It goes on where an earlier one ended.";

const RESTORE_HELP: &str = "\
Every part is verified while it is read. A data directory whose restore was interrupted cannot be
opened; repeat the command, which then starts again. With --to it is the newest backup before that
instant, or the one of --id, and the changes after it, up to what was acknowledged by then; `list` shows how far
each backup can be restored. Start the server on the new directory with the
configuration of the old one. With --table, --queue or --container these are copied into the running
server of --endpoint, under another name as in --table orders=ordersBefore, and compared at the end; what is
there already stays as it is. What has expired since the backup, such as messages past their time to
live, expires when the server starts.";

const PRUNE_HELP: &str = "\
A backup is kept if one of the rules keeps it; the newest one without damage always is. No backup can
be made at the same time: whichever begins later ends with exit code 5.";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_binary_units() {
        assert_eq!(byte_size("0"), Ok(0));
        assert_eq!(byte_size("3KiB"), Ok(3072));
        assert_eq!(byte_size("2GiB"), Ok(1 << 31));
        for wrong in ["", "MiB", "1MB", "-1", "1.5MiB", "99999999999999999999", "9999999999999GiB"]
        {
            assert!(byte_size(wrong).unwrap_err().contains("such as 64MiB"), "{wrong}");
        }
    }

    #[derive(Debug, clap::Parser)]
    struct BackupLine {
        #[command(subcommand)]
        command: BackupCommand,
    }

    fn parsed(args: &[&str]) -> Result<BackupCommand, String> {
        let line = [&["backup"], args].concat();
        let parsed = <BackupLine as clap::Parser>::try_parse_from(line);
        parsed.map(|line| line.command).map_err(|error| error.to_string())
    }

    #[test]
    fn create_has_a_rate_that_can_be_replaced() {
        let rate = |args: &[&str]| match parsed(args).unwrap() {
            BackupCommand::Create(create) => create.max_rate,
            other => panic!("{other:?}"),
        };
        assert_eq!(rate(&["create", "to"]), Some(32 * 1024 * 1024));
        assert_eq!(rate(&["create", "to", "--max-rate", "0"]), Some(0));
        assert_eq!(rate(&["create", "to", "--max-rate", "3KiB"]), Some(3072));
        let error = parsed(&["create", "to", "--max-rate", "3KB"]).unwrap_err();
        assert!(error.contains("--max-rate") && error.contains("such as 64MiB"), "{error}");
    }

    #[test]
    fn one_backup_and_all_exclude_each_other() {
        let error = parsed(&["verify", "to", "--all", "--id", "a"]).unwrap_err();
        assert!(error.contains("cannot be used with") && error.contains("--id"), "{error}");
        let of_one = ["restore", "to", "--data-dir", "d", "--to", "latest", "--id", "a"];
        assert!(parsed(&of_one).is_ok());
        assert!(parsed(&["verify", "to", "--all"]).is_ok());
        assert!(parsed(&["verify", "to", "--id", "a"]).is_ok());
    }

    #[test]
    fn a_restore_has_a_data_directory_and_an_instant_if_one_is_given() {
        let error = parsed(&["restore", "to"]).unwrap_err();
        assert!(error.contains("--data-dir"), "{error}");
        let instant = |args: &[&str]| {
            let line = [&["restore", "to", "--data-dir", "d"], args].concat();
            match parsed(&line).unwrap() {
                BackupCommand::Restore(restore) => restore.to,
                other => panic!("{other:?}"),
            }
        };
        assert_eq!(instant(&[]), None);
        assert_eq!(instant(&["--to", "latest"]), Some(RestoreInstant::Latest));
    }

    #[test]
    fn prune_keeps_a_number_of_backups_within_bounds() {
        let kept = |number| match parsed(&["prune", "to", "--keep-last", number]) {
            Ok(BackupCommand::Prune(prune)) => prune.keep_last,
            _ => None,
        };
        assert_eq!(kept("1"), Some(1));
        assert_eq!(kept("1000000"), Some(1_000_000));
        for wrong in ["0", "1000001", "one"] {
            let error = parsed(&["prune", "to", "--keep-last", wrong]).unwrap_err();
            assert!(error.contains("--keep-last"), "{error}");
        }
    }

    #[test]
    fn an_absent_or_empty_target_is_rejected_with_its_variable() {
        for target in [None, Some(String::new())] {
            let error = TargetArgs { target }.text().unwrap_err().to_string();
            assert!(error.contains("TRESTLE_BACKUP_TARGET"), "{error}");
        }
        let given = TargetArgs { target: Some("to".to_owned()) };
        assert_eq!(given.text().unwrap(), "to");
    }

    #[test]
    fn only_a_server_that_is_named_can_have_ended() {
        let absent = ServerArgs::default();
        assert!(!absent.is_given() && !absent.has_ended());
        let own = i32::try_from(std::process::id()).ok();
        let other = ServerArgs { server_pid: own };
        assert!(other.is_given() && other.has_ended(), "no process is its own parent");
    }
}
