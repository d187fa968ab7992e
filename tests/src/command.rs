//! The client commands, run as a person would.

use std::process::{Command, Output, Stdio};

use crate::process::{Server, server_binary};

/// A command without a server.
#[must_use]
pub fn bare_command(args: &[&str]) -> Command {
    let mut command = Command::new(server_binary());
    command.args(args).stdin(Stdio::null());
    command
}

/// A command against a server.
#[must_use]
pub fn command(server: &Server, args: &[&str]) -> Command {
    let mut command = bare_command(args);
    command.args(["--endpoint", &server.endpoint()]);
    command
}

/// The result of a command.
#[derive(Debug)]
pub struct Ended {
    /// The code with which it ended; none where a signal ended it.
    pub code: Option<i32>,
    /// Its standard output.
    pub output: String,
    /// Its standard error.
    pub errors: String,
}

impl Ended {
    /// Runs a command to its end.
    #[must_use]
    pub fn of(mut command: Command) -> Self {
        command.output().expect("the client runs").into()
    }
}

impl From<Output> for Ended {
    fn from(output: Output) -> Self {
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("text");
        Self {
            code: output.status.code(),
            output: text(output.stdout),
            errors: text(output.stderr),
        }
    }
}
