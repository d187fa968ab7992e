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
mod credentials;
mod diagnosis;
mod endpoint;
pub mod entity_json;
pub mod errors;
mod field_error;
pub mod files;
pub mod interrupt;
mod lines;
mod log;
pub mod output;
mod queue;
pub mod retry;
mod rows;
mod sas;
pub mod scan;
mod table;
mod trust;
pub mod upload;

use std::process::ExitCode;

use tonic::transport::Channel;
use trestle_service::edm::{self, datetime};

pub use args::{
    ClientArgs, DeleteArgs, EntityArgs, ExportArgs, ImportArgs, ImportMode, QueryArgs,
    TableCommand, UpsertMode,
};
pub use bench::{BenchCommand, BenchOp, TableBenchArgs};
pub use blob::{BlobAddress, BlobCommand, ContainerCommand, CopyBlobArgs, CopySide, LeaseCommand};
pub use credentials::{CredentialArgs, SecretText};
pub use log::{
    AppendLogArgs, CreateStreamArgs, LineFormat, LogCommand, ReadLogArgs, SegmentsArgs,
    TailLogArgs, UpdateStreamArgs,
};
pub use queue::{
    DrainArgs, LoadArgs, MessageArgs, PropertiesCommand, QueueCommand, proto_duration,
    send_messages,
};
pub use rows::Format;
pub use sas::{ExplainArgs, GrantArgs, RangeArgs, SasArgs, SasCommand, ServiceGrantArgs};
pub use trust::{TlsArgs, public_tls_config};

use crate::errors::CliError;

/// Runs a command on tables and prints its answer; errors go to standard error.
///
/// Must be called on a Tokio runtime. The exit codes are those in the command's help.
pub async fn run_table(command: TableCommand, client: ClientArgs) -> ExitCode {
    finish_call(Box::pin(table::run(command, &client)).await, &client).await
}

/// Runs a command on queues and prints its answer; errors go to standard error.
///
/// Must be called on a Tokio runtime. The exit codes are those in the command's help.
pub async fn run_queue(command: QueueCommand, client: ClientArgs) -> ExitCode {
    finish_call(Box::pin(queue::run(command, &client)).await, &client).await
}

/// Runs a command on containers and blobs and prints its answer; errors go to standard error.
///
/// Must be called on a Tokio runtime. The exit codes are those in the command's help.
pub async fn run_blob(command: BlobCommand, client: ClientArgs) -> ExitCode {
    finish_call(Box::pin(blob::run(command, &client)).await, &client).await
}

/// Runs a command on streams of log records and prints its answer; errors go to standard error.
///
/// Must be called on a Tokio runtime. The exit codes are those in the command's help.
pub async fn run_log(command: LogCommand, client: ClientArgs) -> ExitCode {
    finish_call(Box::pin(log::run(command, &client)).await, &client).await
}

/// Creates or explains a shared access signature; errors go to standard error. Nothing is sent.
#[must_use]
pub fn run_sas(args: SasArgs) -> ExitCode {
    let json = args.json;
    finish(sas::run(args), json, None)
}

/// Load-tests a server and prints its measurements; errors go to standard error.
///
/// Must be called on a Tokio runtime. The exit codes are those in the command's help.
pub async fn run_bench(command: BenchCommand, client: ClientArgs) -> ExitCode {
    finish_call(Box::pin(bench::run(command, &client)).await, &client).await
}

/// Opens a connection to `endpoint`, encrypted where it begins with `https://`.
///
/// # Errors
/// The error of the connection, as a text.
pub async fn connect(endpoint: &str, tls: &TlsArgs) -> Result<Channel, String> {
    client::connect(endpoint, tls).await.map_err(|error| error.to_string())
}

/// Reports the error of a command on standard error, after a probe of the server where a connection broke; the exit
/// code of the process.
pub async fn finish_call(result: Result<(), CliError>, client: &ClientArgs) -> ExitCode {
    let diagnosis = match &result {
        Err(error) if error.is_unexplained() => diagnosis::look(client).await,
        _ => None,
    };
    finish(result, client.json, diagnosis)
}

fn finish(result: Result<(), CliError>, json: bool, diagnosis: Option<&str>) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) if error.is_broken_pipe() => ExitCode::SUCCESS,
        // Already reported, on standard output.
        Err(CliError::Rejected) => ExitCode::FAILURE,
        Err(error) => {
            output::report_line(&error.render(json, diagnosis));
            error.exit_code()
        }
    }
}
