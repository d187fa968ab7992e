//! The client commands, run as a person would.

use std::{process::Stdio, sync::mpsc, thread};

use rustix::process::{Pid, Signal, kill_process};
pub(crate) use trestle_tests::{Ended, bare_command as bare, command as trestle};
use trestle_tests::{HANG, Server};

/// Runs a command to its end.
pub(crate) fn run(server: &Server, args: &[&str]) -> Ended {
    Ended::of(trestle(server, args))
}

/// Runs a command that might hang; it is killed then, and has no code.
pub(crate) fn run_within_limit(server: &Server, args: &[&str]) -> Ended {
    let mut command = trestle(server, args);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = command.spawn().expect("the client runs");
    let pid = Pid::from_child(&child);
    let (sender, ended) = mpsc::channel();
    thread::spawn(move || sender.send(child.wait_with_output().expect("the client is ours")));
    let output = ended.recv_timeout(HANG).or_else(|_| {
        kill_process(pid, Signal::KILL).expect("the client is killed");
        ended.recv()
    });
    output.expect("the client ends").into()
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
