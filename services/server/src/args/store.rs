//! The command line of `trestle store`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::help::STORE_COPY_HELP;

/// Stores that no server has open.
#[derive(Debug, Subcommand)]
pub enum StoreCommand {
    /// Copy a store from a data directory to a database, or back; the servers of both must not run
    #[command(after_help = STORE_COPY_HELP)]
    Copy(StoreCopyArgs),
}

/// Arguments of `store copy`.
#[derive(Debug, Args)]
pub struct StoreCopyArgs {
    /// The store to copy: a data directory, or postgres://USER@HOST/DATABASE
    #[arg(long, value_name = "DIR|URL")]
    pub from: String,
    /// Where the copy goes: a new data directory, or an empty database
    #[arg(long, value_name = "DIR|URL")]
    pub to: String,
    /// A file with the password of the user of --from
    #[arg(long, value_name = "FILE")]
    pub from_password_file: Option<PathBuf>,
    /// A file with the password of the user of --to
    #[arg(long, value_name = "FILE")]
    pub to_password_file: Option<PathBuf>,
    /// Where the copy has its objects: s3://BUCKET/PATH, gs://BUCKET/PATH or az://CONTAINER/PATH [default: in files of
    /// the data directory]
    #[arg(long, value_name = "URL")]
    pub to_blob_url: Option<String>,
    /// Copy the rest where the source lacks objects that its rows name, or has rows that cannot be read
    #[arg(long)]
    pub accept_loss: bool,
}
