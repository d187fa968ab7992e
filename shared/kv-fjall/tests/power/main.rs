//! Power cuts: the store under load is recorded, and the disk of a cut at any instant is made from the record.
//!
//! What was synced is there; what was not is kept, lost, torn or reordered page by page, by a seed. Every such disk
//! must open, hold every acknowledged change, and every change whole or not at all.
//!
//! `POWER_LOSS=1000` sets the number of cuts, `POWER_LOSS_SEED` the seed; `just power-loss` does both.
//! `POWER_LOSS_ONLY` takes one scenario. A disk with a defect is kept; `POWER_LOSS_DISK` names one to check again.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stdout,
    clippy::cast_possible_truncation,
    clippy::disallowed_methods,
    reason = "tests"
)]

mod check;
mod child;
mod disk;
mod load;
mod loss;
mod machine;
mod pages;
mod rounds;
mod trace;

use std::{
    collections::BTreeMap,
    env, fs,
    num::NonZero,
    path::{Path, PathBuf},
    process::Command,
    sync::{
        Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
    time::Instant,
};

use crate::{
    check::StoreDefect,
    rounds::{Round, SCENARIOS, Scenario, StorePhase, Tally},
};

/// Cuts of a test run that does not set another number.
const CUTS: usize = 30;
const AGAIN: &str = "cargo test -p trestle-kv-fjall --test power checks_a_disk -- --nocapture";
/// Cuts of one recording.
const CUTS_OF_ROUND: usize = 25;

/// A program or a library of this directory, compiled; none where there is no C compiler.
fn compiled(source: &'static str, is_library: bool) -> Option<PathBuf> {
    static COMPILED: Mutex<BTreeMap<&str, Option<PathBuf>>> = Mutex::new(BTreeMap::new());
    let compile = || {
        let directory = Path::new(env!("CARGO_TARGET_TMPDIR"));
        // Another run may be using the old one: replace it as a whole.
        let draft = directory.join(format!("power-{}-{source}", std::process::id()));
        let target = directory.join(format!("power-{source}").replace(".c", ".built"));
        let mut compiler = Command::new("cc");
        compiler.args(if is_library { &["-shared", "-fPIC"][..] } else { &[] });
        compiler.args(["-O1", "-Wall", "-o"]).arg(&draft);
        compiler.arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/power").join(source));
        let status = compiler.status().ok()?;
        assert!(status.success(), "does not compile: {source}");
        fs::rename(draft, &target).unwrap();
        Some(target)
    };
    COMPILED.lock().unwrap().entry(source).or_insert_with(compile).clone()
}

fn number(name: &str) -> Option<u64> {
    let text = env::var(name).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{name} is a number: {text}")))
}

fn play(rounds: &[Round]) -> Tally {
    let (next, all) = (AtomicUsize::new(0), Mutex::new(Tally::default()));
    let threads = thread::available_parallelism().map_or(1, NonZero::get);
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while let Some(round) = rounds.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let tally = round.play();
                    all.lock().unwrap().add(tally);
                }
            });
        }
    });
    all.into_inner().unwrap()
}

fn report(tally: &Tally, seed: u64, began: Instant) {
    let (images, took) = (tally.images(), began.elapsed());
    println!("{images} disks in {took:.1?}, {} acknowledged changes, seed {seed}", tally.changes);
    println!(
        "{:<14} {:<18} {:>6} {:>6} {:>6} {:>6}",
        "scenario", "at", "disks", "closed", "lost", "wrong"
    );
    for ((scenario, phase), images) in &tally.images {
        let of = |selected: fn(&StoreDefect) -> bool| {
            let here = tally
                .defects
                .iter()
                .filter(|(cut, _)| (cut.scenario, cut.phase) == (*scenario, *phase));
            here.filter(|(_, defect)| selected(defect)).count()
        };
        println!(
            "{:<14} {:<18} {images:>6} {:>6} {:>6} {:>6}",
            format!("{scenario:?}"),
            format!("{phase:?}"),
            of(|defect| matches!(defect, StoreDefect::Closed(_))),
            of(|defect| matches!(defect, StoreDefect::Lost { .. })),
            of(|defect| matches!(defect, StoreDefect::Wrong { .. })),
        );
    }
    for (cut, defect) in &tally.defects {
        println!("{defect}\n    {:?}, {:?}, {:?}", cut.scenario, cut.phase, cut.loss);
        let kept = cut.kept.as_deref().unwrap_or(Path::new(""));
        println!("    again: POWER_LOSS_DISK={} {AGAIN}", kept.display());
    }
}

#[test]
fn every_disk_that_a_power_cut_leaves_opens_with_all_acknowledged_changes() {
    if compiled("record.c", true).is_none() {
        println!("SKIPPED: no C compiler `cc`, so no power cuts are tested");
        return;
    }
    let cuts = number("POWER_LOSS").map_or(CUTS, |cuts| cuts as usize);
    let seed = number("POWER_LOSS_SEED").unwrap_or(1);
    let began = Instant::now();
    let of_round = CUTS_OF_ROUND.min(cuts.div_ceil(SCENARIOS.len()));
    let only = env::var("POWER_LOSS_ONLY").ok();
    let is_selected =
        |scenario: &&Scenario| only.as_ref().is_none_or(|only| format!("{scenario:?}") == *only);
    let scenarios: Vec<Scenario> = SCENARIOS.iter().filter(is_selected).copied().collect();
    let round = |number: usize| Round {
        scenario: scenarios[number % scenarios.len()],
        seed: seed.wrapping_mul(1_000_003).wrapping_add(number as u64),
        cuts: of_round,
    };
    let rounds: Vec<Round> = (0..cuts.div_ceil(of_round)).map(round).collect();
    let tally = play(&rounds);
    report(&tally, seed, began);

    assert!(tally.defects.is_empty(), "{} of {} disks", tally.defects.len(), tally.images());
    let busy =
        tally.in_phase(StorePhase::JournalRotation) + tally.in_phase(StorePhase::FlushOrCompaction);
    assert!(busy * 3 >= tally.images(), "only {busy} cuts while tables or journals change");
}

/// A disk that a run kept; in other runs there is none.
#[test]
fn checks_a_disk_that_was_kept() {
    let Some(kept) = env::var_os("POWER_LOSS_DISK") else {
        return;
    };
    let outcome = rounds::check_kept(Path::new(&kept));
    println!("{outcome:?}");
    if let Err(defect) = outcome {
        panic!("{defect}");
    }
}
