//! What every command needs of its process: a runtime, its outputs, the flags of a client.

use std::{
    io::{self, Write as _},
    pin::Pin,
    process::ExitCode,
    time::Duration,
};

use trestle::process_error::ProcessError;
use trestle_command::{
    flags::{ClientArgs, ClientFlags},
    output::report_line,
};

/// Runs a client command against the server of its arguments.
pub(crate) fn call(
    flags: ClientFlags,
    command: impl for<'a> FnOnce(&'a ClientArgs) -> Pin<Box<dyn Future<Output = ExitCode> + 'a>>,
) -> Result<ExitCode, ProcessError> {
    match trestle_command::outcome::resolve(flags) {
        Ok(client) => run(None, command(&client)),
        Err(code) => Ok(code),
    }
}

/// Runs work to its end on this many threads; without a number, one for each core.
pub(crate) fn run<T>(
    threads: Option<usize>,
    work: Pin<Box<dyn Future<Output = T> + '_>>,
) -> Result<T, ProcessError> {
    run_and_end(threads, Duration::ZERO, work)
}

/// The same; tasks that are still running then have this long to end.
pub(crate) fn run_and_end<T>(
    threads: Option<usize>,
    ends_within: Duration,
    work: Pin<Box<dyn Future<Output = T> + '_>>,
) -> Result<T, ProcessError> {
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    if let Some(threads) = threads {
        runtime.worker_threads(threads);
    }
    let runtime = runtime.enable_all().build()?;
    let outcome = runtime.block_on(work);
    // A blocking step that hangs must not keep the process.
    runtime.shutdown_timeout(ends_within);
    Ok(outcome)
}

/// Data is for the user of the server alone: directories 0700, files 0600.
pub(crate) fn write_for_owner() {
    rustix::process::umask(rustix::fs::Mode::RWXG | rustix::fs::Mode::RWXO);
}

/// Standard output has results only.
pub(crate) fn print(text: &str) -> Result<(), ProcessError> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        // The reader has closed the pipe, such as `head`.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        written => written.map_err(ProcessError::Output),
    }
}

/// Reports a failure in one line on standard error, unless that is closed.
pub(crate) fn report(text: &str) {
    report_line(&format!("error: {text}"));
}
