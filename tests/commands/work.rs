//! Commands that run for messages.

use std::{
    fs::{self, File},
    io::{BufRead as _, BufReader, Read as _},
    path::PathBuf,
    process::{Child, Command, Stdio},
};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use rustix::process::Signal;
use serde_json::Value;
use tempfile::{TempDir, tempdir};
use trestle_tests::Server;

use crate::client::{
    Ended, bare, becomes, interrupt, messages, pipe, send, server, succeeds, wait,
};

/// A server with a queue `jobs`, and a folder for what commands write.
struct Queue {
    server: Server,
    folder: TempDir,
}

impl Queue {
    fn new(texts: &[&str]) -> Self {
        let (server, folder) = (server(), tempdir().unwrap());
        succeeds(&server, &["queue", "create", "jobs"]);
        for text in texts {
            succeeds(&server, &["message", "send", "jobs", text]);
        }
        Self { server, folder }
    }

    /// A worker that runs a script in the folder.
    fn worker(&self, options: &[&str], script: &str) -> Command {
        let work = ["message", "work", "jobs", "--endpoint", &self.server.endpoint()];
        let mut worker = bare(&[&work[..], options, &["--", "sh", "-c", script]].concat());
        worker.current_dir(self.folder.path());
        worker
    }

    fn work(&self, options: &[&str], script: &str) -> Ended {
        Ended::of(self.worker(options, script))
    }

    /// A worker in the middle of a command, which ends when the pipe `gate` is opened for writing and closed.
    fn blocked(&self, options: &[&str], script: &str) -> Child {
        pipe(&self.path("gate"));
        let script = format!("touch started; cat gate >/dev/null; {script}");
        let mut worker = self.worker(options, &script);
        let worker = worker.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        assert!(becomes(|| self.path("started").exists()), "the command starts");
        worker
    }

    fn open_gate(&self) {
        File::options().write(true).open(self.path("gate")).unwrap();
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn lines(&self, name: &str) -> Vec<String> {
        let text = fs::read_to_string(self.path(name)).unwrap();
        text.lines().map(str::to_owned).collect()
    }

    /// The number of messages that are visible.
    fn visible(&self) -> usize {
        let peek = ["message", "peek", "jobs", "--json", "-n", "32"];
        succeeds(&self.server, &peek).output.lines().count()
    }
}

#[test]
fn a_command_has_the_body_as_input_and_its_message_is_deleted() {
    let queue = Queue::new(&["one", "two é"]);
    let sent = succeeds(&queue.server, &["message", "peek", "jobs", "--json", "-n", "2"]).output;
    let script = "printf '%s %s %s %s\\n' $TRESTLE_QUEUE $TRESTLE_MESSAGE_ID $TRESTLE_DEQUEUE_COUNT \
                  \"$(cat)\" >>ran; echo out";

    let ended = queue.work(&["--until-empty"], script);

    let expected = sent.lines().map(|line| {
        let message: Value = serde_json::from_str(line).unwrap();
        let text = |name: &str| message[name].as_str().unwrap().to_owned();
        format!("jobs {} 1 {}", text("message_id"), text("text"))
    });
    assert_eq!(queue.lines("ran"), expected.collect::<Vec<_>>());
    assert_eq!((ended.code, ended.output.as_str()), (Some(0), "out\nout\n"), "{ended:?}");
    assert_eq!(ended.errors, "ran the command for 2 messages: 2 deleted, 0 not\n");
    assert_eq!(messages(&queue.server, "jobs"), 0);
    let empty = queue.work(&["--until-empty", "--json"], script);
    let object: Value = serde_json::from_str(&empty.errors).unwrap();
    assert_eq!(object, serde_json::json!({ "queue": "jobs", "deleted": 0, "not_deleted": 0 }));
}

#[test]
fn a_body_is_passed_byte_by_byte_and_need_not_be_read() {
    let queue = Queue::new(&[]);
    let bytes: Vec<u8> = (0..=255).cycle().take(48 * 1024).collect();
    let line = serde_json::json!({ "data_base64": STANDARD.encode(&bytes) });
    let file = queue.path("load.jsonl");
    fs::write(&file, format!("{line}\n")).unwrap();
    let load = ["queue", "load", "jobs", file.to_str().unwrap()];
    succeeds(&queue.server, &load);
    let read = queue.work(&["--limit", "1"], "cat >body");
    succeeds(&queue.server, &load);
    let unread = queue.work(&["-n", "1"], "exit 0");

    assert_eq!(read.code, Some(0), "{read:?}");
    assert_eq!(fs::read(queue.path("body")).unwrap(), bytes);
    assert_eq!(unread.code, Some(0), "{unread:?}");
    assert_eq!(messages(&queue.server, "jobs"), 0);
}

#[test]
fn a_message_whose_command_fails_remains_and_is_retried() {
    let queue = Queue::new(&["bad"]);
    let script = "echo $TRESTLE_DEQUEUE_COUNT >>ran; exit 3";

    let invisible = queue.work(&["--until-empty", "--visibility-timeout", "1h"], script);
    assert_eq!(invisible.code, Some(1), "{invisible:?}");
    assert!(invisible.errors.contains("the command failed: exit status: 3: message_id=`"));
    assert!(invisible.errors.contains("error: 1 message not deleted"), "{invisible:?}");
    assert_eq!((queue.visible(), messages(&queue.server, "jobs")), (0, 1));

    succeeds(&queue.server, &["message", "send", "jobs", "worse"]);
    fs::remove_file(queue.path("ran")).unwrap();
    let retried = queue.work(&["--limit", "3", "--retry-after", "0s"], script);
    assert_eq!(retried.code, Some(1), "{retried:?}");
    assert_eq!(queue.lines("ran"), ["1", "2", "3"]);
    assert_eq!(queue.visible(), 1);
    let fixed = queue.work(&["--until-empty"], "cat >fixed");
    assert_eq!((fixed.code, queue.lines("fixed")), (Some(0), vec!["worse".to_owned()]));
}

#[test]
fn a_message_remains_invisible_as_long_as_its_command_runs() {
    let queue = Queue::new(&["long"]);
    let worker = queue.blocked(&["--limit", "1", "--visibility-timeout", "1s"], "cat >ran");

    // Longer than the visibility timeout.
    let receive = ["message", "receive", "jobs", "--wait", "3s", "--json"];
    let received = succeeds(&queue.server, &receive).output;
    queue.open_gate();
    let ended = wait(worker);

    assert_eq!(received, "");
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert_eq!(queue.lines("ran"), ["long"]);
    assert_eq!(messages(&queue.server, "jobs"), 0);
}

#[test]
fn a_message_that_is_gone_is_not_reported_as_deleted() {
    let queue = Queue::new(&["a job"]);
    let worker = queue.blocked(&["--limit", "1"], "true");

    succeeds(&queue.server, &["queue", "clear", "jobs", "--yes"]);
    queue.open_gate();
    let ended = wait(worker);

    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert!(ended.errors.contains("not deleted: its receipt is invalid"), "{ended:?}");
}

#[test]
fn a_signal_ends_the_worker_after_its_command() {
    for (signal, code) in [(Signal::INT, 130), (Signal::TERM, 143)] {
        let queue = Queue::new(&["first", "second"]);
        let mut worker = queue.blocked(&[], "cat >ran");

        send(&worker, signal);
        let mut errors = BufReader::new(worker.stderr.take().unwrap());
        let mut note = String::new();
        errors.read_line(&mut note).unwrap();
        queue.open_gate();
        let ended = wait(worker);
        let mut rest = String::new();
        errors.read_to_string(&mut rest).unwrap();

        assert!(note.starts_with("ending after the running command"), "{note}");
        assert_eq!(ended.code, Some(code), "{rest}");
        assert!(rest.contains("ran the command for 1 message: 1 deleted, 0 not"), "{rest}");
        assert_eq!(queue.lines("ran"), ["first"]);
        assert_eq!((queue.visible(), messages(&queue.server, "jobs")), (1, 1));
    }
}

#[test]
fn a_second_signal_terminates_the_command_and_its_message_is_visible_at_once() {
    let queue = Queue::new(&["a job"]);
    let mut worker = queue.blocked(&["--visibility-timeout", "1h"], "touch ended");

    interrupt(&worker);
    let mut errors = BufReader::new(worker.stderr.take().unwrap());
    errors.read_line(&mut String::new()).unwrap();
    interrupt(&worker);
    let ended = wait(worker);

    assert_eq!(ended.code, Some(130));
    assert!(!queue.path("ended").exists(), "the command was ended too");
    assert_eq!(queue.visible(), 1);
}

#[test]
fn a_worker_that_waits_for_a_message_ends_at_once_and_takes_none() {
    let queue = Queue::new(&[]);
    let mut worker = queue.worker(&[], "cat >>ran");
    let worker = worker.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    succeeds(&queue.server, &["message", "send", "jobs", "first"]);
    assert!(becomes(|| messages(&queue.server, "jobs") == 0), "it works");

    interrupt(&worker);
    let ended = wait(worker);
    succeeds(&queue.server, &["message", "send", "jobs", "second"]);

    assert_eq!(ended.code, Some(130), "{ended:?}");
    assert_eq!((queue.lines("ran"), queue.visible()), (vec!["first".to_owned()], 1));
}

#[test]
fn a_command_that_cannot_run_leaves_its_message_visible() {
    let queue = Queue::new(&["a job"]);
    let work = |more: &[&str]| {
        let work = ["message", "work", "jobs", "--endpoint", &queue.server.endpoint()];
        Ended::of(bare(&[&work[..], more].concat()))
    };

    let absent = work(&["--", "/nosuch/command"]);
    assert_eq!(absent.code, Some(2), "{absent:?}");
    assert!(absent.errors.contains("cannot run `/nosuch/command`: No such file"), "{absent:?}");
    assert_eq!(queue.visible(), 1);
    assert_eq!(work(&[]).code, Some(2), "a command is required");
    assert_eq!(work(&["--limit", "0", "--", "true"]).code, Some(2));
    succeeds(&queue.server, &["queue", "delete", "jobs", "--yes"]);
    assert_eq!(work(&["--", "true"]).code, Some(3));
    let work = ["message", "work", "jobs", "--endpoint", "http://127.0.0.1:1", "--", "true"];
    assert_eq!(Ended::of(bare(&work)).code, Some(5));
}

#[test]
fn a_failure_is_an_object_of_json_and_the_help_has_variables_and_exit_codes() {
    let queue = Queue::new(&["bad"]);
    let peek = ["message", "peek", "jobs", "--json"];
    let sent: Value = serde_json::from_str(&succeeds(&queue.server, &peek).output).unwrap();

    let failed = queue.work(&["--limit", "1", "-o", "json"], "kill -9 $$");

    let lines: Vec<Value> =
        failed.errors.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let failure = serde_json::json!({
        "message_id": sent["message_id"], "dequeue_count": 1,
        "error": "the command failed: signal: 9 (SIGKILL)",
    });
    assert_eq!(lines[0], failure);
    assert_eq!((&lines[1]["deleted"], &lines[1]["not_deleted"]), (&0.into(), &1.into()));
    assert_eq!((failed.code, &lines[2]["error"]["exit_code"]), (Some(1), &1.into()));
    let help = Ended::of(bare(&["message", "work", "--help"])).output;
    for text in ["TRESTLE_MESSAGE_ID", "TRESTLE_DEQUEUE_COUNT", "Exit codes", "130  interrupted"] {
        assert!(help.contains(text), "{text}: {help}");
    }
}

#[test]
fn a_worker_continues_after_a_restart_of_its_server() {
    let folder = tempdir().unwrap();
    let data = folder.path().join("data");
    let data = ["--data-dir", data.to_str().unwrap()];
    let first = Server::start(&data, &[]);
    let address = first.address("grpc");
    succeeds(&first, &["queue", "create", "jobs"]);
    succeeds(&first, &["message", "send", "jobs", "before"]);
    let endpoint = first.endpoint();
    let work = ["message", "work", "jobs", "--endpoint", &endpoint, "--limit", "2"];
    let mut worker = bare(&[&work[..], &["--", "sh", "-c", "cat >>ran; echo >>ran"]].concat());
    worker.current_dir(folder.path()).stdout(Stdio::null()).stderr(Stdio::piped());
    let worker = worker.spawn().unwrap();

    assert!(becomes(|| messages(&first, "jobs") == 0), "it works");
    drop(first);
    let second = Server::start_at(&address, &data, &[]);
    succeeds(&second, &["message", "send", "jobs", "after"]);
    let ended = wait(worker);

    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert_eq!(fs::read_to_string(folder.path().join("ran")).unwrap(), "before\nafter\n");
    assert_eq!(messages(&second, "jobs"), 0);
}

#[test]
fn a_message_that_fails_too_often_is_dead_lettered_and_the_others_are_done() {
    let queue = Queue::new(&[]);
    let server = &queue.server;
    succeeds(server, &["queue", "create", "failed"]);
    let dead = ["--dead-letter", "failed", "--max-dequeue-count", "2"];
    succeeds(server, &[&["queue", "update", "jobs"][..], &dead].concat());
    succeeds(server, &["message", "send", "jobs", "good", "bad", "better"]);

    let script = "body=$(cat); echo $body >>ran; [ $body != bad ]";
    let ended = queue.work(&["--until-empty", "--retry-after", "0s"], script);

    assert_eq!(ended.code, Some(1), "{ended:?}");
    let mut ran = queue.lines("ran");
    ran.sort();
    assert_eq!(ran, ["bad", "bad", "better", "good"]);
    assert_eq!((messages(server, "jobs"), messages(server, "failed")), (0, 1));
}
