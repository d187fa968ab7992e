//! Rounds: a store is recorded, and its disk is cut off at many instants.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

use rand::{RngExt as _, SeedableRng as _, rngs::StdRng};
use tempfile::TempDir;

use crate::{
    check::{CheckedStore, StoreDefect, check},
    child::{ProcessEnd, ProcessRun, acknowledged, record},
    disk::Disk,
    load::WriterLoad,
    loss::{EntryLoss, Loss, PageLoss, write_image},
    trace::{FileEvent, read},
};

/// What happens before the power is cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Scenario {
    /// A new store is written.
    Writes,
    /// Its process is killed and started again, twice; the machine stays on.
    Restarts,
    /// A sync fails, and the process is started again.
    FailedSync,
    /// The power was cut before; the store recovers and goes on.
    SecondCut,
    /// A journal is full all the time, and the next one is begun.
    FullJournals,
}

pub(crate) const SCENARIOS: [Scenario; 5] = [
    Scenario::Writes,
    Scenario::Restarts,
    Scenario::FailedSync,
    Scenario::SecondCut,
    Scenario::FullJournals,
];

/// What the store did at the instant of a cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum StorePhase {
    /// Writes and syncs of the journal.
    Commit,
    /// A journal begins or is removed.
    JournalRotation,
    /// Tables are written, and replace others.
    FlushOrCompaction,
    /// The directory is made, opened or closed.
    OpenOrClose,
}

/// A round of cuts.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Round {
    pub(crate) scenario: Scenario,
    pub(crate) seed: u64,
    pub(crate) cuts: usize,
}

/// What the rounds found.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    pub(crate) images: BTreeMap<(Scenario, StorePhase), u64>,
    pub(crate) changes: u64,
    pub(crate) opening: Duration,
    pub(crate) defects: Vec<(PowerCut, StoreDefect)>,
}

/// A cut, and where its image is kept if it shows a defect.
#[derive(Debug, Clone)]
pub(crate) struct PowerCut {
    pub(crate) scenario: Scenario,
    pub(crate) phase: StorePhase,
    pub(crate) loss: Loss,
    pub(crate) kept: Option<PathBuf>,
}

impl Tally {
    pub(crate) fn add(&mut self, other: Self) {
        for (key, count) in other.images {
            *self.images.entry(key).or_default() += count;
        }
        self.changes += other.changes;
        self.opening += other.opening;
        self.defects.extend(other.defects);
    }

    pub(crate) fn images(&self) -> u64 {
        self.images.values().sum()
    }

    pub(crate) fn in_phase(&self, phase: StorePhase) -> u64 {
        self.images.iter().filter(|((_, of), _)| *of == phase).map(|(_, count)| count).sum()
    }
}

/// In memory where there is room: what is tested is what a disk may lose, not a disk.
pub(crate) fn scratch() -> TempDir {
    let memory = Path::new("/dev/shm");
    let made = tempfile::Builder::new().prefix("trestle-power-").tempdir_in(memory);
    made.or_else(|_| tempfile::tempdir()).unwrap()
}

fn runs(scenario: Scenario, seed: u64) -> Vec<ProcessRun> {
    let mut random = StdRng::seed_from_u64(seed);
    let killed = ProcessRun {
        load: WriterLoad { seed },
        changes: 150,
        end: ProcessEnd::Killed,
        failing_sync: None,
        journal_bytes: 1024 * 1024,
    };
    match scenario {
        Scenario::Writes => vec![ProcessRun { changes: 300, ..killed }],
        Scenario::Restarts => {
            vec![killed, ProcessRun { end: ProcessEnd::Closed, ..killed }, killed]
        }
        Scenario::FailedSync => {
            vec![ProcessRun { failing_sync: Some(random.random_range(3..30)), ..killed }, killed]
        }
        Scenario::SecondCut => vec![killed],
        Scenario::FullJournals => {
            vec![ProcessRun { changes: 250, journal_bytes: 100_000, ..killed }]
        }
    }
}

impl Round {
    /// Records, cuts, and checks every image.
    pub(crate) fn play(&self) -> Tally {
        let directory = scratch();
        let root = directory.path().join("disk");
        fs::create_dir(&root).unwrap();
        let mut random = StdRng::seed_from_u64(self.seed);
        let mut base = vec![0; crate::load::WRITERS as usize];
        if self.scenario == Scenario::SecondCut {
            base = self.first_cut(directory.path(), &root, &mut random);
        }
        let mut disk = Disk::of(&root, self.seed).unwrap();
        let runs = runs(self.scenario, self.seed);
        let mut events = Vec::new();
        for (number, run) in runs.iter().enumerate() {
            let trace = directory.path().join(format!("trace-{number}"));
            record(run, &root, &trace);
            events.extend(read(&trace).unwrap());
            events.push(FileEvent::Restarted);
        }
        let phases = phases(&disk, &events);
        let mut tally = Tally::default();
        let mut cuts = cuts(&events, &phases, self.cuts, &mut random).into_iter().peekable();
        for (at, event) in events.iter().enumerate() {
            disk.apply(event);
            while cuts.next_if_eq(&at).is_some() {
                let cut = PowerCut {
                    scenario: self.scenario,
                    phase: phases[at],
                    loss: Loss::of(random.random()),
                    kept: None,
                };
                let printed = acknowledged(&disk.printed);
                let due: Vec<u64> =
                    printed.iter().zip(&base).map(|(printed, base)| *printed.max(base)).collect();
                examine(&disk, cut, runs[0].load, &due, &mut tally);
            }
        }
        disk.compare(&root).expect("the recorder saw everything");
        tally.changes += acknowledged(&disk.printed).iter().sum::<u64>();
        tally
    }

    /// Leaves in `root` what a cut left of a store; what was acknowledged before it.
    fn first_cut(&self, directory: &Path, root: &Path, random: &mut StdRng) -> Vec<u64> {
        let first = directory.join("first");
        fs::create_dir(&first).unwrap();
        let mut disk = Disk::of(&first, self.seed).unwrap();
        let trace = directory.join("trace-first");
        record(&runs(Scenario::Writes, self.seed)[0], &first, &trace);
        let events = read(&trace).unwrap();
        let until = random.random_range(events.len() / 2..events.len());
        events[..until].iter().for_each(|event| disk.apply(event));
        write_image(&disk, Loss::of(random.random()), root).unwrap();
        fs::remove_dir_all(first).unwrap();
        acknowledged(&disk.printed)
    }
}

/// What the store does at each record.
fn phases(disk: &Disk, events: &[FileEvent]) -> Vec<StorePhase> {
    let mut paths = disk.paths_by_inode();
    let of_path = |path: &str, is_written: bool| {
        if path.contains("keyspaces/") {
            StorePhase::FlushOrCompaction
        } else if path.ends_with(".jnl") {
            if is_written { StorePhase::Commit } else { StorePhase::JournalRotation }
        } else if path.ends_with("/db") {
            StorePhase::JournalRotation
        } else {
            StorePhase::OpenOrClose
        }
    };
    let mut newest = StorePhase::OpenOrClose;
    let mut has_committed = false;
    let mut phases = Vec::with_capacity(events.len());
    for event in events {
        let phase = match event {
            FileEvent::Created { path, inode } | FileEvent::DirectoryMade { path, inode } => {
                paths.insert(*inode, path.clone());
                of_path(path, false)
            }
            FileEvent::Written { inode, .. }
            | FileEvent::SyncBegun { inode }
            | FileEvent::SyncEnded { inode, .. } => of_path(&paths[inode], true),
            FileEvent::Truncated { inode, .. } => of_path(&paths[inode], false),
            FileEvent::Renamed { from, to } => {
                let inode = paths.iter().find(|(_, path)| *path == from).map(|(inode, _)| *inode);
                paths.extend(inode.map(|inode| (inode, to.clone())));
                of_path(to, false)
            }
            FileEvent::Removed { path } => of_path(path, false),
            FileEvent::Printed(text) => {
                has_committed |= text.contains("ack");
                newest
            }
            FileEvent::Restarted => {
                has_committed = false;
                StorePhase::OpenOrClose
            }
        };
        newest = phase;
        // Until it is open, all of it is opening.
        phases.push(if has_committed { phase } else { StorePhase::OpenOrClose });
    }
    phases
}

/// Where to cut: half of the cuts where tables or journals change, a quarter while a sync is on its way.
fn cuts(
    events: &[FileEvent],
    phases: &[StorePhase],
    count: usize,
    random: &mut StdRng,
) -> Vec<usize> {
    let indices = |is_selected: &dyn Fn(usize) -> bool| {
        let indices: Vec<usize> = (0..events.len()).filter(|at| is_selected(*at)).collect();
        if indices.is_empty() { (0..events.len()).collect() } else { indices }
    };
    let is_rotation = |at: usize| phases[at] == StorePhase::JournalRotation;
    let is_busy = |at: usize| is_rotation(at) || phases[at] == StorePhase::FlushOrCompaction;
    let is_sync = |at: usize| matches!(events[at], FileEvent::SyncBegun { .. });
    let kinds = [
        indices(&is_busy),
        // There are few of them.
        if phases.contains(&StorePhase::JournalRotation) {
            indices(&is_rotation)
        } else {
            indices(&is_busy)
        },
        indices(&is_sync),
        indices(&|at| !is_busy(at)),
    ];
    let first: usize = random.random_range(0..8);
    let kind_of = |number: usize| [0, 2, 0, 3, 0, 2, 1, 3][number % 8];
    let index = |number: usize| {
        let indices = &kinds[kind_of(number)];
        indices[random.random_range(0..indices.len())]
    };
    let mut cuts: Vec<usize> = (first..first + count).map(index).collect();
    cuts.sort_unstable();
    cuts
}

/// Names the load and what was acknowledged, beside a disk that is kept.
const EXPECTED: &str = "EXPECTED";

/// Makes the image of a cut and checks it.
fn examine(disk: &Disk, mut cut: PowerCut, load: WriterLoad, due: &[u64], tally: &mut Tally) {
    let image = scratch();
    write_image(disk, cut.loss, image.path()).unwrap();
    *tally.images.entry((cut.scenario, cut.phase)).or_default() += 1;
    match check(image.path(), load, due, due) {
        Ok(checked) => tally.opening += checked.opening,
        Err(defect) => {
            // As it was: the check has changed it.
            let target = Path::new(env!("CARGO_TARGET_TMPDIR"));
            let kept = tempfile::Builder::new().prefix("power-loss-").tempdir_in(target);
            let kept = kept.unwrap().keep();
            write_image(disk, cut.loss, &kept).unwrap();
            let due: Vec<String> = due.iter().map(u64::to_string).collect();
            fs::write(kept.join(EXPECTED), format!("{} {}", load.seed, due.join(" "))).unwrap();
            cut.kept = Some(kept);
            tally.defects.push((cut, defect));
        }
    }
}

/// Checks a disk that [`examine`] kept, which stays as it is.
pub(crate) fn check_kept(kept: &Path) -> Result<CheckedStore, StoreDefect> {
    let image = scratch();
    let disk = Disk::of(kept, 0).unwrap();
    write_image(
        &disk,
        Loss { pages: PageLoss::None, entries: EntryLoss::Any, seed: 0 },
        image.path(),
    )
    .unwrap();
    let expected = fs::read_to_string(kept.join(EXPECTED)).unwrap();
    let numbers: Vec<u64> = expected.split(' ').map(|number| number.parse().unwrap()).collect();
    check(image.path(), WriterLoad { seed: numbers[0] }, &numbers[1..], &numbers[1..])
}
