//! The queue beside other queues, the protocol of Azure Storage beside its emulator, and blobs beside other stores.
//! They, and the load over their protocols, are in a workspace of their own, whose dependencies nothing else uses.

use std::process::Command;

use crate::{Plan, server};

/// The queue.
pub(crate) async fn queues(_: Plan) {
    run("queue");
}

/// The protocol of Azure Storage.
pub(crate) async fn rest(_: Plan) {
    run("rest");
}

/// Blobs.
pub(crate) async fn blobs(_: Plan) {
    run("blob");
}

/// Blobs over REST.
pub(crate) async fn blobs_over_rest(_: Plan) {
    run("blob-rest");
}

/// Runs the program that installs the peers, starts them, and prints its own tables.
fn run(what: &str) {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/peers/run.sh");
    let status = Command::new(script).arg(server::binary()).arg(what).status().unwrap();
    assert!(status.success(), "the peers are measured");
}
