//! The client commands of the `trestle` binary: tables, entities, queues, blobs, logs, files of them, load.
//!
//! Each command is one call, or one stream, against the gRPC contract; the crate does not depend on
//! the server. Standard output contains only the result; progress, costs and errors go to standard
//! error. The public modules are for commands in crates of their own.

#![warn(clippy::print_stderr)]

mod args;
mod bench;
mod blob;
pub mod checkpoint;
pub mod client;
mod confirm;
mod context;
mod credentials;
mod diagnosis;
mod endpoint;
pub mod entity_json;
pub mod errors;
mod field_error;
pub mod files;
mod flags;
pub mod interrupt;
mod json_error;
mod lines;
mod log;
pub mod output;
mod queue;
mod reads_only;
pub mod retry;
mod rows;
mod sas;
pub mod scan;
mod service;
pub mod status;
mod table;
mod trust;
mod type_names;
pub mod upload;

use std::process::ExitCode;

use tonic::transport::Channel;
use trestle_service::edm::{self, datetime};

pub use args::{
    DeleteEntityArgs, EntityArgs, EntityCommand, EntityKeyArgs, ExplainQueryArgs, ExportArgs,
    GetEntityArgs, ImportArgs, ImportMode, InsertEntityArgs, QueryArgs, TableCommand, UpsertMode,
    WriteEntityArgs, whole_number,
};
pub use bench::{
    BenchCommand, BenchLoadArgs, BenchOp, QueueBenchArgs, QueueBenchOp, TableBenchArgs,
};
pub use blob::{BlobAddress, BlobCommand, ContainerCommand, CopyBlobArgs, CopySide, LeaseCommand};
pub use context::ContextCommand;
pub use credentials::{CredentialArgs, SecretText};
pub use flags::{ClientArgs, ClientFlags, VariableArgs};
pub use json_error::json_problem;
#[cfg(feature = "testing")]
pub use log::records_of_line;
pub use log::{
    AppendLogArgs, CreateStreamArgs, LineFormat, LogCommand, ReadLogArgs, SegmentsArgs,
    TailLogArgs, UpdateStreamArgs,
};
pub use queue::{
    DrainArgs, LoadArgs, MessageArgs, MessageCommand, PeekArgs, QueueCommand, QueueSettingsArgs,
    ReceiptArgs, ReceiveArgs, proto_duration, send_messages,
};
pub use rows::Format;
pub use sas::{ExplainArgs, GrantArgs, RangeArgs, SasArgs, SasCommand, ServiceGrantArgs};
pub use service::{PolicyCommand, PropertiesCommand};
pub use trust::{TlsArgs, public_tls_config};

use crate::errors::{CallSite, CliError};

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
}

/// Runs a command and prints its answer; errors go to standard error.
///
/// Must be called on a Tokio runtime. The exit codes are those in the command's help.
pub async fn run(command: ClientCommand, client: &ClientArgs) -> ExitCode {
    let reads_only = command.reads_only();
    let result = match command {
        ClientCommand::Table(command) => Box::pin(table::run(command, client)).await,
        ClientCommand::Entity(command) => Box::pin(table::run_entity(command, client)).await,
        ClientCommand::Queue(command) => Box::pin(queue::run(command, client)).await,
        ClientCommand::Message(command) => Box::pin(queue::run_message(command, client)).await,
        ClientCommand::Blob(command) => Box::pin(blob::run(command, client)).await,
        ClientCommand::Log(command) => Box::pin(log::run(command, client)).await,
        ClientCommand::Bench(command) => Box::pin(bench::run(command, client)).await,
        ClientCommand::Status => Box::pin(status::run(client)).await,
    };
    end_call(result, client, reads_only).await
}

/// Creates or explains a shared access signature; errors go to standard error. Nothing is sent.
#[must_use]
pub fn run_sas(args: SasArgs, client: &ClientArgs) -> ExitCode {
    finish(sas::run(args, client), client.output.is_json(), None)
}

/// Stores or shows contexts; errors go to standard error. Nothing is sent.
#[must_use]
pub fn run_context(command: ContextCommand, flags: ClientFlags) -> ExitCode {
    let json = flags.output().is_json();
    finish(context::run(command, flags), json, None)
}

/// The server and the form of output of a command; else the error is reported on standard error.
///
/// # Errors
/// The exit code of the process.
pub fn resolve(flags: ClientFlags) -> Result<ClientArgs, ExitCode> {
    let json = flags.output().is_json();
    flags.resolve().map_err(|error| finish(Err(error), json, None))
}

/// Opens a connection to `endpoint`, encrypted where it begins with `https://`.
///
/// # Errors
/// The error of the connection.
pub async fn connect(endpoint: &str, tls: &TlsArgs) -> Result<Channel, CliError> {
    client::connect(endpoint, tls).await
}

/// The address that is called, as errors show it: with its scheme and its port.
#[must_use]
pub fn called_address(endpoint: &str, tls: &TlsArgs) -> String {
    endpoint::with_port(&endpoint::complete(endpoint, tls.is_given()))
}

/// An error of a connection or a call; where it has no error of the server, explained by a probe of the address.
pub async fn explained(error: CliError, endpoint: &str, tls: &TlsArgs) -> CliError {
    if !error.is_unexplained() {
        return error;
    }
    let endpoint = &called_address(endpoint, tls);
    let found = diagnosis::look(endpoint, tls, error.is_foreign()).await;
    // A probe that ends too late does not decide what the error itself shows.
    let plain = || {
        let (_, authority) = endpoint.split_once("://")?;
        error.is_of_plain_server().then(|| diagnosis::plain_problem(authority))
    };
    // What answers is an HTTP server, which may understand HTTP/2 only.
    let other = || error.is_foreign().then(|| diagnosis::another_server(endpoint));
    match found.or_else(plain).or_else(other) {
        Some(problem) => error.misdirected(endpoint, problem),
        None => error,
    }
}

/// Reports the error of a command, which may have written data, on standard error, after a probe of the server where a
/// connection broke; the exit code of the process.
pub async fn finish_call(result: Result<(), CliError>, client: &ClientArgs) -> ExitCode {
    end_call(result, client, false).await
}

async fn end_call(result: Result<(), CliError>, client: &ClientArgs, reads_only: bool) -> ExitCode {
    let result = match result {
        Err(error) => Err(explained(error, &client.endpoint, &client.tls).await),
        Ok(()) => Ok(()),
    };
    let site = CallSite { endpoint: &client.endpoint, reads_only };
    finish(result, client.output.is_json(), Some(site))
}

/// Reports an error of the command line on standard error, as a JSON object.
pub fn report_usage_json(message: String) {
    output::report_line(&CliError::Usage(message).render(true));
}

fn finish(result: Result<(), CliError>, json: bool, site: Option<CallSite<'_>>) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) if error.is_broken_pipe() => ExitCode::SUCCESS,
        // Already reported, on standard output.
        Err(CliError::Rejected) => ExitCode::FAILURE,
        Err(error) => {
            output::report_lines(&error.render_at(json, site));
            error.exit_code()
        }
    }
}
