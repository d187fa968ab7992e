//! The test binary as its own child process, for what would take the test process down.
//!
//! A test calls [`command`] with the name of a role; the child runs the one test below, which
//! plays that role. Roles report on standard output, one line for each event.

use std::env;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::{crash, damaged_tables, faults, opening, pressure};

const ROLE: &str = "KV_CHILD_ROLE";
const DIRECTORY: &str = "KV_CHILD_DIRECTORY";

pub(crate) fn command(role: &str, directory: &Path) -> Command {
    let mut command = Command::new(env::current_exe().unwrap());
    command
        .args(["--exact", "child::plays_its_role", "--nocapture", "--test-threads=1"])
        .env(ROLE, role)
        .env(DIRECTORY, directory)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::inherit());
    command
}

/// Reports an event to the parent. The test harness may have begun a line, hence the break before.
pub(crate) fn report(event: &str) {
    println!("\n{event}");
}

/// In the test run itself there is no role, and nothing to do.
#[test]
fn plays_its_role() {
    let (Ok(role), Ok(directory)) = (env::var(ROLE), env::var(DIRECTORY)) else {
        return;
    };
    let directory = PathBuf::from(directory);
    match role.as_str() {
        "commit-until-killed" => crash::commit_until_killed(&directory),
        "meet-a-failing-sync" => faults::meet_a_failing_sync(&directory),
        "meet-a-full-disk" => faults::meet_a_full_disk(&directory),
        "meet-a-failing-interval-sync" => faults::meet_a_failing_interval_sync(&directory),
        "meet-a-failing-flush" => faults::meet_a_failing_flush(&directory),
        "fail-a-sync-under-load" => faults::fail_a_sync_under_load(&directory),
        "repair-on-a-full-disk" => damaged_tables::repair_on_a_full_disk(&directory),
        "open" => opening::try_to_open(&directory),
        other => match other.strip_prefix("abort-at-") {
            Some(point) => pressure::abort_at(point, &directory),
            None => panic!("unknown role: {other}"),
        },
    }
}
