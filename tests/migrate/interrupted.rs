//! Killed imports resume without loss or duplicates.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Stdio,
};

use tempfile::{TempDir, tempdir};
use trestle_tests::{Server, becomes};

use crate::{
    command::{run, start, succeeds, trestle},
    workspace::Workspace,
};

const DEV: &str = "devstoreaccount1";
/// Enough for many chunks, so that a kill falls between two of them.
const ENTITIES: usize = 30_000;
const MESSAGES: usize = 4_000;

fn large() -> Workspace {
    let mut workspace = Workspace::default();
    for table in ["First", "Second"] {
        let keys: Vec<_> = (0..ENTITIES).map(|row| format!("{row:06}")).collect();
        let entities: Vec<_> = keys.iter().map(|key| ("p", key.as_str(), r#""n":7"#)).collect();
        workspace.table(DEV, table, &entities);
    }
    for queue in ["one", "two"] {
        workspace.queue(DEV, queue, "");
    }
    for message in 0..MESSAGES {
        let queue = if message % 3 == 0 { "one" } else { "two" };
        workspace.message(DEV, queue, &format!("id-{message}"), &format!("text {message}"));
    }
    workspace
}

/// A workspace, and the target server.
struct Move {
    /// Held, because dropping them deletes them.
    data: TempDir,
    _directory: TempDir,
    /// The paths of the workspace and of the checkpoint.
    ws: PathBuf,
    checkpoint: PathBuf,
    server: Server,
}

impl Move {
    fn of(workspace: &Workspace) -> Self {
        let (data, directory) = (tempdir().unwrap(), tempdir().unwrap());
        let (ws, checkpoint) =
            (directory.path().join("ws"), directory.path().join("ws.trestle-import"));
        fs::create_dir(&ws).unwrap();
        workspace.write(&ws);
        let server = start(&data);
        Self { data, _directory: directory, ws, checkpoint, server }
    }

    /// The arguments of the import.
    fn import(&self) -> [&str; 3] {
        ["import", "azurite", self.ws.to_str().unwrap()]
    }
}

/// Whether the checkpoint of an import records that something was copied.
fn has_progress(checkpoint: &Path) -> bool {
    let text = fs::read_to_string(checkpoint).unwrap_or_default();
    text.contains("Documents") || text.contains("\"End\"")
}

/// Kills the import once its checkpoint records that something was copied; false if it ended before.
fn kill_after_progress(server: &Server, args: &[&str], checkpoint: &Path) -> bool {
    let mut import = trestle(server, args);
    let mut import =
        import.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("the client runs");
    let mut has_ended = false;
    becomes(|| {
        has_ended = import.try_wait().expect("the client is ours").is_some();
        has_ended || has_progress(checkpoint)
    });
    if has_ended {
        return false;
    }
    import.kill().expect("the client is killed");
    import.wait().expect("the client is ours").code().is_none()
}

#[test]
fn a_killed_import_resumes_without_loss_or_duplicates() {
    let prepared = Move::of(&large());
    let (server, checkpoint, import) = (&prepared.server, &prepared.checkpoint, prepared.import());

    assert!(
        kill_after_progress(server, &import, checkpoint),
        "the import was killed before its end"
    );

    let again = run(server, &import);
    assert_eq!(again.code, Some(2), "{again:?}");
    assert!(again.errors.contains("continue with --resume"), "{again:?}");
    let output = succeeds(server, &[&import[..], &["--resume", "--json"]].concat());

    assert!(output.ends_with("\"not_copied\":0,\"match\":true}\n"), "{output}");
    for table in ["First", "Second"] {
        let read = format!("\"table\":\"{table}\",\"read\":{ENTITIES},\"written\":{ENTITIES}");
        assert!(output.contains(&read), "{output}");
    }
    let sent = |queue: &str| {
        let stats = succeeds(server, &["queue", "stats", queue, "--json"]);
        stats.split("\"messages\":").nth(1).and_then(|rest| rest.split(',').next()?.parse().ok())
    };
    let total = Some(MESSAGES);
    assert_eq!(sent("one").zip(sent("two")).map(|(one, two): (usize, usize)| one + two), total);
    assert!(!checkpoint.exists(), "the checkpoint is removed once the import is complete");
}

#[test]
fn an_interrupted_import_reports_its_progress_and_resumes() {
    let prepared = Move::of(&large());
    let (server, checkpoint, import) = (&prepared.server, &prepared.checkpoint, prepared.import());
    let mut command = trestle(server, &import);
    let child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    becomes(|| has_progress(checkpoint));

    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    let ended = child.wait_with_output().unwrap();

    let errors = String::from_utf8(ended.stderr).unwrap();
    assert_eq!(ended.status.code(), Some(130), "{errors}");
    let hint = format!("continue with --resume: checkpoint=`{}`", checkpoint.display());
    for text in ["error: interrupted", &server.endpoint(), " copied", &hint] {
        assert!(errors.contains(text), "{text}: {errors}");
    }
    let output = succeeds(server, &[&import[..], &["--resume", "--json"]].concat());
    assert!(output.ends_with("\"not_copied\":0,\"match\":true}\n"), "{output}");
}

#[test]
fn rejects_the_checkpoint_of_a_changed_workspace() {
    let prepared = Move::of(&large());
    let (server, checkpoint, import) = (&prepared.server, &prepared.checkpoint, prepared.import());
    assert!(
        kill_after_progress(server, &import, checkpoint),
        "the import was killed before its end"
    );

    let database = prepared.ws.join("__azurite_db_queue__.json");
    fs::write(&database, format!("{} ", fs::read_to_string(&database).unwrap())).unwrap();
    let ended = run(server, &[&import[..], &["--resume"]].concat());

    assert_eq!(ended.code, Some(2), "{ended:?}");
    assert!(ended.errors.contains("was another one"), "{ended:?}");
    fs::write(checkpoint, "{").unwrap();
    let ended = run(server, &[&import[..], &["--resume"]].concat());
    assert!(ended.code == Some(2) && ended.errors.contains("damaged"), "{ended:?}");
}

#[test]
fn an_import_survives_a_server_restart_during_the_copy() {
    let prepared = Move::of(&large());
    let mut import = trestle(&prepared.server, &[&prepared.import()[..], &["--json"]].concat());
    let Move { data, checkpoint, server, .. } = prepared;
    let address = server.address("grpc");
    let import = import.stdout(Stdio::piped()).spawn().expect("the client runs");
    becomes(|| has_progress(&checkpoint));

    server.kill();
    let path = data.path().to_str().unwrap();
    let server = Server::start_at(&address, &["--data-dir", path], &[]);
    let ended = import.wait_with_output().expect("the client is ours");

    let output = String::from_utf8(ended.stdout).unwrap();
    assert!(ended.status.success(), "{output}");
    assert!(output.ends_with("\"not_copied\":0,\"match\":true}\n"), "{output}");
    drop(server);
}

#[test]
fn an_import_survives_a_server_restart_during_creation() {
    let mut workspace = Workspace::default();
    for number in 0..500 {
        workspace.table(DEV, &format!("Table{number}"), &[("p", "r", "")]);
        workspace.queue(DEV, &format!("queue-{number}"), "");
    }
    let prepared = Move::of(&workspace);
    let mut import = trestle(&prepared.server, &[&prepared.import()[..], &["--json"]].concat());
    let Move { data, checkpoint, server, .. } = prepared;
    let address = server.address("grpc");
    let import = import.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let import = import.expect("the client runs");
    // The checkpoint is written before the first table is created.
    becomes(|| checkpoint.exists());

    server.kill();
    assert!(!has_progress(&checkpoint), "nothing was copied yet");
    let server = Server::start_at(&address, &["--data-dir", data.path().to_str().unwrap()], &[]);
    let ended = import.wait_with_output().expect("the client is ours");

    let output = String::from_utf8(ended.stdout).unwrap();
    assert!(ended.status.success(), "{output} {}", String::from_utf8_lossy(&ended.stderr));
    let summary = "{\"tables\":500,\"queues\":500,\"containers\":0,\"blobs\":0,\"bytes\":0,\
        \"not_copied\":0,\"match\":true}\n";
    assert!(output.ends_with(summary), "{output}");
    drop(server);
}
