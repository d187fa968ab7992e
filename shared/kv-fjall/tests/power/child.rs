//! The test binary as its own child: a store under load, of which the recorder sees every system call.

use std::{
    env,
    path::Path,
    process::{Command, Stdio},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use trestle_kv_fjall::FjallEngine;

use crate::compiled;
use crate::load::{WRITERS, WriterLoad, head, options};

const RUN: &str = "POWER_RUN";

/// How a process ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ProcessEnd {
    /// As if it was killed.
    Killed,
    /// With a clean shutdown.
    Closed,
}

/// One process of a scenario.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ProcessRun {
    pub(crate) load: WriterLoad,
    /// It ends after so many changes, together.
    pub(crate) changes: u64,
    pub(crate) end: ProcessEnd,
    /// The sync of a commit that fails.
    pub(crate) failing_sync: Option<u64>,
    /// A journal with so many bytes is full.
    pub(crate) journal_bytes: u64,
}

/// Runs a process to its end on `root`; what it does there is added to `trace`.
pub(crate) fn record(run: &ProcessRun, root: &Path, trace: &Path) {
    let output = command(run, root, Some(trace)).output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (out, error) = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success(), "{}: {error} {out}", output.status);
}

/// A process that writes to `root`, recorded if there is a trace.
pub(crate) fn command(run: &ProcessRun, root: &Path, trace: Option<&Path>) -> Command {
    let end = if run.end == ProcessEnd::Closed { "closed" } else { "killed" };
    let mut command = Command::new(env::current_exe().unwrap());
    command
        .args(["--exact", "child::plays_its_role", "--nocapture", "--test-threads=1"])
        .env(RUN, format!("{} {} {end}", run.load.seed, run.changes))
        .env("POWER_ROOT", root.canonicalize().unwrap())
        .env("POWER_FAIL", run.failing_sync.unwrap_or_default().to_string())
        .env("POWER_SYNC_US", "150")
        .env("POWER_JOURNAL", run.journal_bytes.to_string())
        .env("LD_PRELOAD", compiled("record.c", true).expect("it was compiled before"))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    if let Some(trace) = trace {
        command.env("POWER_TRACE", trace);
    }
    command
}

/// In the test run itself there is no role, and nothing to do.
#[test]
fn plays_its_role() {
    let (Ok(run), Ok(root)) = (env::var(RUN), env::var("POWER_ROOT")) else {
        return;
    };
    let words: Vec<&str> = run.split(' ').collect();
    let [seed, changes, end] = words[..] else { panic!("a wrong run: {run}") };
    let load = WriterLoad { seed: seed.parse().unwrap() };
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    let runtime = builder.worker_threads(2).build().unwrap();
    let engine = Arc::new(FjallEngine::open(options(&Path::new(&root).join("kv"))).unwrap());
    runtime.block_on(write(Arc::clone(&engine), load, changes.parse().unwrap()));
    drop(runtime);
    if end == "killed" {
        std::process::exit(0);
    }
    drop(engine);
}

/// Lets all writers write until there were so many changes, or one failed.
async fn write(engine: Arc<FjallEngine>, load: WriterLoad, changes: u64) {
    let begun = Arc::new(AtomicU64::new(0));
    let mut writers = tokio::task::JoinSet::new();
    for writer in 0..WRITERS {
        let (engine, begun) = (Arc::clone(&engine), Arc::clone(&begun));
        writers.spawn(async move {
            let mut number = head(&*engine, writer).await.unwrap();
            // What a reader was shown must stay.
            println!("\nack {writer} {number}");
            while begun.fetch_add(1, Ordering::Relaxed) < changes {
                number += 1;
                if load.commit(&*engine, writer, number).await.is_err() {
                    break;
                }
                println!("\nack {writer} {number}");
            }
        });
    }
    while writers.join_next().await.is_some() {}
}

/// The changes of each writer that were acknowledged in what a process printed.
pub(crate) fn acknowledged(printed: &str) -> Vec<u64> {
    let mut newest = vec![0; WRITERS as usize];
    // A line that is not whole was not printed.
    let whole = printed.rfind('\n').map_or("", |end| &printed[..end]);
    for line in whole.lines().filter_map(|line| line.strip_prefix("ack ")) {
        let (writer, number) = line.split_once(' ').expect("a writer and a number");
        newest[writer.parse::<usize>().unwrap()] = number.parse().unwrap();
    }
    newest
}
