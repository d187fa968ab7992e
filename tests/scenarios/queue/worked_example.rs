//! The worker of docs/queue-worker.md, run as it is in the document.

use std::{path::Path, process::Command};

use trestle_tests::{Server, World, server_binary};

/// The shell blocks of a page, one after the other.
fn script(page: &str) -> String {
    let mut blocks = page.split("```sh\n").skip(1);
    let block = |rest: &str| rest.split_once("```").expect("the block ends").0.to_owned();
    let script: String = blocks.by_ref().map(block).collect();
    format!("set -euo pipefail\n{script}")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn documented_worker_processes_messages_and_dead_letters_failures() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/queue-worker.md");
    let script = script(&std::fs::read_to_string(page).unwrap());
    let work = tempfile::tempdir().unwrap();
    let server = Server::start(&["--ephemeral"], &[]);
    let endpoint = server.endpoint();
    let world = World::of(server).await;
    let binaries = server_binary().parent().unwrap().display();

    let mut shell = Command::new("bash");
    shell.args(["-c", &format!("PATH={binaries}:$PATH\n{script}")]).current_dir(work.path());
    let ran = shell.env("TRESTLE_ENDPOINT", &endpoint).output().unwrap();

    let (output, errors) = (ran.stdout, String::from_utf8_lossy(&ran.stderr));
    let output = String::from_utf8_lossy(&output);
    assert!(ran.status.success(), "{output}\n{errors}");
    for image in ["cat.png", "dog.png", "broken.png", "owl.png"] {
        let made = std::fs::read_to_string(work.path().join(format!("small-{image}"))).unwrap();
        assert_eq!(made, format!("a small {image}\n"));
    }
    let failed = std::fs::read_to_string(work.path().join("failed.jsonl")).unwrap();
    assert!(failed.contains("broken.png"), "{failed}");
    assert!(
        failed.contains(r#""dead_letter_origin":{"queue":"resize","dequeue_count":3}"#),
        "{failed}"
    );
    assert_eq!(world.existing_queue("resize").count().await, 0);
    assert_eq!(world.existing_queue("resize-failed").count().await, 0);
}
