//! Commands, run as a person would.

use std::{
    fs,
    path::Path,
    process::{Child, Command, Stdio},
};

use rustix::process::{Pid, Signal, kill_process};
use trestle_tests::Server;
pub(crate) use trestle_tests::{Ended, bare_command as bare, becomes, command as trestle};

/// A server without stable storage.
pub(crate) fn server() -> Server {
    Server::start(&["--ephemeral"], &[])
}

/// Runs a command against a server to its end.
pub(crate) fn run(server: &Server, args: &[&str]) -> Ended {
    Ended::of(trestle(server, args))
}

/// Runs a command that must succeed; its result.
pub(crate) fn succeeds(server: &Server, args: &[&str]) -> Ended {
    let ended = run(server, args);
    assert_eq!(ended.code, Some(0), "{args:?}: {ended:?}");
    ended
}

/// Starts a command whose standard error is read later.
pub(crate) fn spawned(server: &Server, args: &[&str]) -> Child {
    let mut command = trestle(server, args);
    command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("the client runs")
}

/// The result of a started command, which is killed if it does not end.
pub(crate) fn wait(mut child: Child) -> Ended {
    if !becomes(|| child.try_wait().expect("the client is ours").is_some()) {
        child.kill().expect("the client is killed");
    }
    child.wait_with_output().expect("the client is ours").into()
}

/// Sends Ctrl-C.
pub(crate) fn interrupt(child: &Child) {
    send(child, Signal::INT);
}

/// Sends a signal.
pub(crate) fn send(child: &Child, signal: Signal) {
    kill_process(Pid::from_child(child), signal).expect("signal is sent");
}

/// Makes a named pipe.
pub(crate) fn pipe(path: &Path) {
    let made = Command::new("mkfifo").arg(path).status().expect("mkfifo exists");
    assert!(made.success(), "{made}");
}

/// Whether a path is a named pipe.
pub(crate) fn is_pipe(path: &Path) -> bool {
    use std::os::unix::fs::FileTypeExt as _;
    fs::symlink_metadata(path).is_ok_and(|metadata| metadata.file_type().is_fifo())
}

/// How many messages a queue has, invisible ones included.
pub(crate) fn messages(server: &Server, queue: &str) -> u64 {
    let stats = succeeds(server, &["queue", "stats", queue, "--json"]).output;
    let stats: serde_json::Value = serde_json::from_str(&stats).unwrap();
    stats["messages"].as_u64().unwrap()
}
