//! The queue beside other queues. They, and the load that speaks their protocols, are in a workspace
//! of their own, whose dependencies nothing else wants.

use std::process::Command;

use crate::{Plan, server};

/// Runs the program that installs the peers, starts them, and prints its own table.
pub(crate) async fn beside(_: Plan) {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/peers/run.sh");
    let status = Command::new(script).arg(server::binary()).status().unwrap();
    assert!(status.success(), "the peers are measured");
}
