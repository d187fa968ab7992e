//! The client commands, run as a person would.

use std::process::{Command, Stdio};

use trestle_tests::{Server, server_binary};

/// A command against a server.
pub(crate) fn trestle(server: &Server, args: &[&str]) -> Command {
    let mut command = Command::new(server_binary());
    command.args(args).args(["--endpoint", &server.endpoint()]).stdin(Stdio::null());
    command
}

/// What a command left.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) code: Option<i32>,
    pub(crate) output: String,
    pub(crate) errors: String,
}

/// Runs a command to its end.
pub(crate) fn run(server: &Server, args: &[&str]) -> Ended {
    let output = trestle(server, args).output().expect("the client runs");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("text");
    Ended { code: output.status.code(), output: text(output.stdout), errors: text(output.stderr) }
}

/// Runs a command that must succeed; what it printed.
pub(crate) fn succeeds(server: &Server, args: &[&str]) -> String {
    let ended = run(server, args);
    assert_eq!(ended.code, Some(0), "{args:?}: {ended:?}");
    ended.output
}

/// A server on a directory that lasts as long as the test.
pub(crate) fn start(data: &tempfile::TempDir) -> Server {
    Server::start(&["--data-dir", data.path().to_str().expect("a path in UTF-8")], &[])
}
