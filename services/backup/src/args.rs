//! The command line of `trestle backup`.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use trestle_command::{
    errors::CliError,
    values::{duration, whole_number},
};

use crate::sealed::Identities;

/// How fast a backup reads where nothing else is given, in bytes a second.
const RATE: &str = "32MiB";

/// Backups of a data directory.
#[derive(Debug, Subcommand)]
pub enum BackupCommand {
    /// Back up one instant of a data directory, beside the server that uses it or without one
    #[command(after_long_help = CREATE_HELP)]
    Create(CreateArgs),
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

/// Arguments of `backup create`.
#[derive(Debug, Args)]
pub struct CreateArgs {
    /// Where the backup goes
    #[command(flatten)]
    pub(crate) target: TargetArgs,
    /// Data directory [default: that of the configuration]
    #[arg(long, value_name = "DIR")]
    pub data_dir: Option<PathBuf>,
    /// Configuration file of the server [default: ./trestle.toml, if it exists]
    #[arg(long, env = "TRESTLE_CONFIG", value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Most bytes that are read in a second, such as 64MiB; 0: no bound
    #[arg(long, value_name = "BYTES", default_value = RATE, value_parser = byte_size)]
    pub(crate) max_rate: Option<u64>,
    /// Encrypt what is backed up, for the public keys of age in this file (`age1…`, a line each)
    #[arg(long, value_name = "FILE", env = "TRESTLE_BACKUP_ENCRYPT")]
    pub(crate) encrypt: Option<PathBuf>,
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
    /// The data directory, which is made, or empty
    #[arg(long, value_name = "DIR")]
    pub data_dir: PathBuf,
    /// Where its blobs and logs go [default: files in the data directory]
    #[arg(long, value_name = "URL")]
    pub blob_url: Option<String>,
    /// Its key
    #[command(flatten)]
    pub(crate) key: KeyArgs,
}

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

const RESTORE_HELP: &str = "\
Every part is verified while it is read. A data directory whose restore was interrupted cannot be
opened; repeat the command, which then starts again. Start the server on the new directory with the
configuration of the old one. What has expired since the backup, such as messages past their time to
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
}
