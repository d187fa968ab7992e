//! The client commands of the `trestle` binary: tables, entities, queues, blobs, logs, files of them, load.
//!
//! Each command is one call, or one stream, against the gRPC contract; the crate does not depend on
//! the server. Standard output contains only the result; progress, costs and errors go to standard
//! error.

#![warn(clippy::print_stderr)]

mod bench;
mod blob;
mod export;
mod log;
mod queue;
mod reads_only;
mod sas;
mod service;
pub mod status;
mod table;
mod token;
mod verify;

use std::process::ExitCode;

use futures::future::LocalBoxFuture;
use trestle_command::{
    flags::ClientArgs,
    outcome::{end_call, finish},
};
use trestle_model::edm::{self, datetime};

pub use bench::{
    BenchCommand, BenchLoadArgs, BenchOp, QueueBenchArgs, QueueBenchOp, TableBenchArgs,
};
pub use blob::{BlobAddress, BlobCommand, ContainerCommand, CopyBlobArgs, CopySide, LeaseCommand};
pub use export::ExportFormat;
#[cfg(feature = "testing")]
pub use log::records_of_line;
pub use log::{
    AppendLogArgs, CreateStreamArgs, ExportLogArgs, LineFormat, LogCommand, LogStatsArgs,
    ReadLogArgs, SegmentsArgs, TailLogArgs, UpdateStreamArgs,
};
pub use queue::{
    DrainArgs, LoadArgs, MessageArgs, MessageCommand, PeekArgs, QueueCommand, QueueSettingsArgs,
    ReceiptArgs, ReceiveArgs, WorkArgs,
};
pub use sas::{ExplainArgs, GrantArgs, RangeArgs, SasArgs, SasCommand, ServiceGrantArgs};
pub use service::{PolicyCommand, PropertiesCommand};
pub use table::args::{
    CountArgs, DeleteEntityArgs, EntityArgs, EntityCommand, EntityKeyArgs, ExplainQueryArgs,
    ExportArgs, GetEntityArgs, ImportArgs, ImportMode, InsertEntityArgs, QueryArgs, TableCommand,
    UpsertMode, WriteEntityArgs,
};
pub use table::diff_table;

pub use verify::{VerifiedKind, VerifyAccountArgs};

pub use token::{CreateTokenArgs, TokenArgs, TokenCommand};

/// A command for which a server is called.
#[derive(Debug)]
pub enum ClientCommand {
    /// On tables.
    Table(TableCommand),
    /// On entities.
    Entity(EntityCommand),
    /// On queues.
    Queue(QueueCommand),
    /// On messages.
    Message(MessageCommand),
    /// On containers and blobs.
    Blob(BlobCommand),
    /// On streams of log records.
    Log(LogCommand),
    /// Load.
    Bench(BenchCommand),
    /// The state of the server.
    Status,
    /// Everything that an account has.
    Verify(VerifyAccountArgs),
}

/// Runs a command and prints its answer; errors go to standard error.
///
/// Must be called on a Tokio runtime. The exit codes are those in the command's help.
pub fn run(command: ClientCommand, client: &ClientArgs) -> LocalBoxFuture<'_, ExitCode> {
    let reads_only = command.reads_only();
    let result: LocalBoxFuture<'_, _> = match command {
        ClientCommand::Table(command) => Box::pin(table::run(command, client)),
        ClientCommand::Entity(command) => Box::pin(table::run_entity(command, client)),
        ClientCommand::Queue(command) => Box::pin(queue::run(command, client)),
        ClientCommand::Message(command) => Box::pin(queue::run_message(command, client)),
        ClientCommand::Blob(command) => Box::pin(blob::run(command, client)),
        ClientCommand::Log(command) => Box::pin(log::run(command, client)),
        ClientCommand::Bench(command) => Box::pin(bench::run(command, client)),
        ClientCommand::Status => Box::pin(status::run(client)),
        ClientCommand::Verify(args) => Box::pin(verify::run(args, client)),
    };
    Box::pin(async move { end_call(result.await, client, reads_only).await })
}

/// Creates or explains a shared access signature; errors go to standard error. Nothing is sent.
#[must_use]
pub fn run_sas(args: SasArgs, client: &ClientArgs) -> ExitCode {
    finish(sas::run(args, client), client.output.is_json(), None)
}

/// Makes keys and tokens of an issuer of bearer tokens; errors go to standard error. Nothing is sent.
#[must_use]
pub fn run_token(args: TokenArgs, is_quiet: bool) -> ExitCode {
    finish(token::run(args.command, is_quiet), false, None)
}
