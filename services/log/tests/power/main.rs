//! Power cuts while a stream is appended to, sealed, merged and cut by its retention: the disk of a cut at each sync is
//! made from a record of what the process did, as in the tests of the storage engine.
//!
//! Every such disk must open, have every acknowledged record once, and work on. `LOG_POWER_SEED` sets what is lost,
//! `LOG_POWER_CUTS` at how many of the syncs, if not at all of them.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stdout,
    clippy::cast_possible_truncation,
    clippy::disallowed_methods,
    dead_code,
    reason = "tests, which use a part of those of the engine"
)]

#[path = "../../../../shared/kv-fjall/tests/power/disk.rs"]
mod disk;
#[path = "../../../../shared/kv-fjall/tests/power/loss.rs"]
mod loss;
#[path = "../../../../shared/kv-fjall/tests/power/pages.rs"]
mod pages;
#[path = "../../../../shared/kv-fjall/tests/power/trace.rs"]
mod trace;

mod node;
mod progress;

use std::{
    collections::BTreeMap,
    env, fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::Instant,
};

use tempfile::TempDir;

use crate::{
    disk::Disk,
    loss::{Loss, write_image},
    progress::LogProgress,
    trace::FileEvent,
};

/// Names the role of the child.
const ROLE: &str = "LOG_POWER_ROLE";

/// The library that records; none where there is no C compiler.
fn recorder() -> Option<PathBuf> {
    let source =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/kv-fjall/tests/power/record.c");
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR"));
    // Another run may be using the old one: replace it as a whole.
    let draft = directory.join(format!("log-power-{}.so", std::process::id()));
    let library = directory.join("log-power.so");
    let mut compiler = Command::new("cc");
    compiler.args(["-shared", "-fPIC", "-O1", "-o"]).arg(&draft).arg(source);
    assert!(compiler.status().ok()?.success(), "the recorder does not compile");
    fs::rename(draft, &library).unwrap();
    Some(library)
}

/// In memory where there is room: what is tested is what a disk may lose, not a disk.
fn scratch() -> TempDir {
    let made = tempfile::Builder::new().prefix("trestle-log-power-").tempdir_in("/dev/shm");
    made.or_else(|_| tempfile::tempdir()).unwrap()
}

fn number(name: &str) -> Option<usize> {
    env::var(name).ok().map(|text| text.parse().unwrap())
}

/// Runs the child on `root`; what it did there.
fn recorded(recorder: &Path, root: &Path, trace: &Path) -> Vec<FileEvent> {
    let output = Command::new(env::current_exe().unwrap())
        .args(["--exact", "plays_its_role", "--nocapture", "--test-threads=1"])
        .env(ROLE, "1")
        .env("POWER_ROOT", root.canonicalize().unwrap())
        .env("POWER_TRACE", trace)
        .env("POWER_JOURNAL", (1024 * 1024).to_string())
        .env("LD_PRELOAD", recorder)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (out, error) = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success(), "{}: {error} {out}", output.status);
    trace::read(trace).unwrap()
}

/// In the test run itself there is no role, and nothing to do.
#[test]
fn plays_its_role() {
    if env::var_os(ROLE).is_none() {
        return;
    }
    let root = PathBuf::from(env::var_os("POWER_ROOT").unwrap());
    runtime().block_on(node::live(&root));
    // As if it was killed.
    std::process::exit(0);
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap()
}

#[test]
fn a_stream_is_whole_after_a_power_cut_at_each_sync() {
    let Some(recorder) = recorder() else {
        println!("SKIPPED: no C compiler `cc`, so no power cuts are tested");
        return;
    };
    let (directory, began) = (scratch(), Instant::now());
    let root = directory.path().join("disk");
    fs::create_dir(&root).unwrap();
    let seed = number("LOG_POWER_SEED").unwrap_or(1) as u64;
    let mut disk = Disk::of(&root, seed).unwrap();
    let events = recorded(&recorder, &root, &directory.path().join("trace"));
    let is_sync = |event: &FileEvent| {
        matches!(event, FileEvent::SyncBegun { .. } | FileEvent::SyncEnded { .. })
    };
    let syncs = events.iter().filter(|event| is_sync(event)).count();
    let cuts = number("LOG_POWER_CUTS").unwrap_or(syncs).max(1);
    let every = syncs.div_ceil(cuts);
    let (mut images, mut next, mut steps) = (0, seed as usize % every, BTreeMap::new());
    for (at, event) in events.iter().enumerate() {
        disk.apply(event);
        if !is_sync(event) {
            continue;
        }
        next += 1;
        if next % every > 0 {
            continue;
        }
        let image = scratch();
        let loss = Loss::of(seed.wrapping_mul(1_000_003).wrapping_add(at as u64));
        write_image(&disk, loss, image.path()).unwrap();
        let progress = LogProgress::of(&disk.printed);
        if let Err(defect) = runtime().block_on(node::check(image.path(), &progress)) {
            let kept = image.keep();
            panic!("event {at}, {loss:?}, {progress:?}, disk {}: {defect}", kept.display());
        }
        images += 1;
        *steps.entry(progress.step).or_insert(0) += 1;
    }
    disk.compare(&root).expect("the recorder saw everything");
    println!("{images} disks of {syncs} syncs in {:.1?}, seed {seed}: {steps:?}", began.elapsed());
    assert!(steps.len() >= 5, "cuts in each step: {steps:?}");
}
