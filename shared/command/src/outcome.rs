//! The end of a command: its error, explained and reported, and the exit code of the process.

use std::process::ExitCode;

use crate::{
    context::{self, ContextCommand},
    diagnosis, endpoint,
    errors::{CallSite, CliError},
    flags::{ClientArgs, ClientFlags},
    output,
    trust::TlsArgs,
};

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

/// An error of a connection or a call; where it has no error of the server, explained by a probe of the address.
pub async fn explained(error: CliError, endpoint: &str, tls: &TlsArgs) -> CliError {
    if !error.is_unexplained() {
        return error;
    }
    let endpoint = &endpoint::called_address(endpoint, tls);
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

/// The same, of a command that changes nothing where `reads_only`: the hints then do not mention writes.
pub async fn end_call(
    result: Result<(), CliError>,
    client: &ClientArgs,
    reads_only: bool,
) -> ExitCode {
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

/// Reports the error of a command on standard error; the exit code of the process.
#[must_use]
pub fn finish(result: Result<(), CliError>, json: bool, site: Option<CallSite<'_>>) -> ExitCode {
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

#[cfg(test)]
mod tests;
