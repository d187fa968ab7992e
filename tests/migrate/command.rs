//! The client commands, run as a person would.

use trestle_tests::Server;
pub(crate) use trestle_tests::{Ended, command as trestle};

/// Runs a command to its end.
pub(crate) fn run(server: &Server, args: &[&str]) -> Ended {
    Ended::of(trestle(server, args))
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
