use super::*;
use crate::{
    manifest::tests::manifest,
    window::tests::{name, ticks},
};

/// A backup in line `a` of an instant, with a newest version.
fn base(id: &str, newest: u64, at: u64) -> BackupManifest {
    base_of("a", id, newest, at)
}

fn base_of(line: &str, id: &str, newest: u64, at: u64) -> BackupManifest {
    BackupManifest { at, newest: Some(newest), line: Some(line.to_owned()), ..manifest(id) }
}

/// Windows of a line from a number on; each begins where the one before ends.
fn line(line: &str, seq: u64, from: u64, ends: &[[u64; 2]]) -> Vec<WindowName> {
    let mut from = from;
    let window = |(seq, [to, at]): (u64, &[u64; 2])| {
        let begin = std::mem::replace(&mut from, *to);
        name(line, seq, [begin, *to, *at])
    };
    std::iter::zip(seq.., ends).map(window).collect()
}

fn seqs(windows: &[WindowName]) -> Vec<u64> {
    windows.iter().map(|window| window.seq).collect()
}

/// The numbers of the windows after a backup, and the last instant.
fn after(coverage: &Coverage, newest: u64, at: u64) -> Option<(Vec<u64>, u64)> {
    let run = coverage.run_after(&base("a", newest, at));
    run.map(|run| (seqs(run.windows), run.until.get()))
}

#[test]
fn windows_lead_from_a_backup_up_to_the_first_that_is_missing() {
    let mut windows = line("a", 0, 5, &[[10, 11], [20, 21], [30, 31], [40, 41]]);
    let whole = Coverage::new(windows.clone());
    assert_eq!(after(&whole, 4, 4), None, "it has no changes from 4 to 5");
    assert_eq!(after(&whole, 5, 6), Some((vec![0, 1, 2, 3], 41)));
    assert_eq!(after(&whole, 10, 12), Some((vec![0, 1, 2, 3], 41)));
    assert_eq!(after(&whole, 25, 26), Some((vec![1, 2, 3], 41)));
    assert_eq!(after(&whole, 40, 41), Some((vec![3], 41)));
    assert_eq!(after(&whole, 40, 42), None, "the windows end before the backup");
    let earlier = BackupManifest { newest: None, ..base("a", 5, 6) };
    assert_eq!(whole.run_after(&earlier), None);
    assert_eq!(after(&whole, 20, 19), None, "a version after the instant is none of a backup");

    windows.remove(2);
    windows.reverse();
    let gap = Coverage::new(windows);
    assert_eq!(after(&gap, 5, 6), Some((vec![0, 1], 21)));
    assert_eq!(after(&gap, 25, 26), None);
    assert_eq!(after(&gap, 40, 40), Some((vec![3], 41)));
}

#[test]
fn windows_follow_only_those_of_their_line_number_and_version() {
    let first = line("a", 0, 5, &[[10, 11]]);
    let others = [
        line("b", 1, 10, &[[20, 21]]),
        line("a", 2, 10, &[[20, 21]]),
        line("a", 1, 11, &[[20, 21]]),
    ];
    for other in others {
        let found = Coverage::new([first.clone(), other].concat());
        assert_eq!(after(&found, 6, 7), Some((vec![0], 11)));
    }
    let next = line("a", 1, 10, &[[20, 21]]);
    assert_eq!(after(&Coverage::new([first, next].concat()), 6, 7), Some((vec![0, 1], 21)));
    let last = [name("a", u64::MAX, [1, 2, 3]), name("a", 0, [2, 3, 4])];
    assert_eq!(after(&Coverage::new(last.into()), 1, 1), None, "no number follows the last");
}

#[test]
fn two_windows_of_one_number_are_not_used_and_end_the_run() {
    let mut windows = line("a", 0, 5, &[[10, 11], [20, 21], [30, 31], [40, 41]]);
    windows.push(name("a", 1, [10, 20, 22]));
    let fork = Coverage::new(windows);
    assert_eq!(after(&fork, 5, 6), Some((vec![0], 11)));
    assert_eq!(after(&fork, 15, 16), None);
    assert_eq!(after(&fork, 30, 31), Some((vec![2, 3], 41)));
}

#[test]
fn only_windows_of_the_line_of_a_backup_lead_on_from_it() {
    let lines = [
        line("a", 0, 5, &[[10, 11]]),
        line("b", 0, 6, &[[9, 10], [20, 21]]),
        line("c", 0, 7, &[[8, 9]]),
    ];
    let found = Coverage::new(lines.concat());
    let run = found.run_after(&base_of("b", "x", 8, 9)).unwrap();
    assert!(run.until == ticks(21) && run.windows.iter().all(|window| window.line == "b"));
    assert_eq!(found.until_text(&base("x", 8, 9)).unwrap(), time_text(ticks(11)));
    let without = BackupManifest { line: None, ..base("x", 8, 9) };
    assert_eq!(found.run_after(&without), None);
    let needed = |base| found.needed(&[base]).map(|it| it.line.clone()).collect::<Vec<_>>();
    assert_eq!(needed(base_of("c", "x", 7, 8)), ["c"]);
    assert_eq!(needed(without), Vec::<String>::new());
}

/// Group 18 is larger than a window: its parts are in the windows 1, 2 and 3.
fn with_a_large_group() -> Vec<WindowName> {
    line("a", 0, 5, &[[10, 11], [17, 17], [17, 17], [18, 19], [30, 31]])
}

#[test]
fn a_group_that_is_larger_than_a_window_is_read_from_its_beginning() {
    let whole = Coverage::new(with_a_large_group());
    for newest in [17, 18] {
        assert_eq!(after(&whole, newest, 18).unwrap().0[0], [1, 3][usize::from(newest == 18)]);
    }
    for missing in [1, 2] {
        let mut windows = with_a_large_group();
        windows.drain(..=missing);
        let part = Coverage::new(windows);
        assert_eq!(after(&part, 17, 17), None, "the first part of the group is missing: {missing}");
        assert_eq!(after(&part, 18, 18).unwrap().0.last(), Some(&4));
    }
}

/// The backup, the windows that are needed, and those after them that may have something.
fn plan(coverage: &Coverage, bases: &[BackupManifest], to: u64) -> (String, Vec<u64>, Vec<u64>) {
    let plan = coverage.plan(bases, ticks(to)).unwrap();
    assert_eq!(plan.to, ticks(to));
    (plan.base.id.clone(), seqs(plan.windows), seqs(plan.later))
}

#[test]
fn an_instant_is_restored_from_the_newest_backup_that_leads_to_it() {
    let found = Coverage::new(line("a", 0, 5, &[[10, 11], [20, 21], [20, 26], [30, 31], [40, 41]]));
    let bases = [base("first", 6, 7), base("second", 20, 22), base("late", 40, 42)];
    let expected = |id: &str, windows: &[u64], later: &[u64]| {
        (id.to_owned(), windows.to_vec(), later.to_vec())
    };
    assert_eq!(plan(&found, &bases, 7), expected("first", &[0], &[]));
    assert_eq!(plan(&found, &bases, 11), expected("first", &[0], &[1]));
    assert_eq!(plan(&found, &bases, 21), expected("first", &[0, 1], &[2, 3]));
    assert_eq!(plan(&found, &bases, 22), expected("second", &[1, 2], &[3]));
    assert_eq!(plan(&found, &bases, 41), expected("second", &[1, 2, 3, 4], &[]));
    // In the order of their instants, whatever their ids are.
    let reversed: Vec<_> = bases.iter().rev().cloned().collect();
    assert_eq!(plan(&found, &reversed, 41).0, "second");
    for to in [6, 42, 43] {
        assert!(found.plan(&bases, ticks(to)).is_err(), "{to}");
    }
}

#[test]
fn windows_long_after_an_instant_are_not_read_for_it() {
    let minute = u64::try_from(COMMITTED_WITHIN.as_nanos() / 100).unwrap();
    let idle = [[10, 11], [10, 12], [10, 11 + minute], [10, 12 + minute], [20, 13 + minute]];
    let found = Coverage::new(line("a", 0, 5, &idle));
    assert_eq!(plan(&found, &[base("a", 6, 7)], 11), ("a".to_owned(), vec![0], vec![1, 2]));
}

#[test]
fn an_instant_that_cannot_be_restored_is_named_with_the_ranges_around_it() {
    let error = |coverage: &Coverage, bases: &[BackupManifest], to| {
        coverage.plan(bases, ticks(to)).unwrap_err().to_string()
    };
    let none = error(&Coverage::default(), &[base("a", 5, 6)], 7);
    assert!(none.contains("no backup at the target has changes after it"), "{none}");

    // Five lines with a gap after each, and two backups of the first.
    let starts = [10, 30, 50, 70, 90];
    let lines = starts.map(|start| line(&format!("l{start}"), 0, start, &[[start + 4, start + 5]]));
    let found = Coverage::new(lines.concat());
    let mut bases: Vec<_> =
        starts.iter().map(|start| base_of(&format!("l{start}"), "a", *start, start + 1)).collect();
    bases.push(base_of("l10", "b", 12, 13));
    let ranges = found.ranges(&bases);
    let expected =
        starts.map(|start| RestorableRange { from: ticks(start + 1), until: ticks(start + 5) });
    assert_eq!(ranges, expected);

    let shown = |numbers: &[u64]| {
        let range = |from: &u64| {
            format!("{} to {}", time_text(ticks(from + 1)), time_text(ticks(from + 5)))
        };
        numbers.iter().map(range).collect::<Vec<_>>().join(", ")
    };
    for (to, numbers) in [(1, &[10, 30][..]), (40, &[10, 30, 50, 70]), (99, &[70, 90])] {
        let error = error(&found, &bases, to);
        let end =
            format!("to=`{}`; those that can be are {}", time_text(ticks(to)), shown(numbers));
        assert!(error.ends_with(&end), "{error}");
    }
}

#[test]
fn ranges_that_touch_are_one() {
    let found =
        Coverage::new([line("a", 0, 5, &[[10, 20]]), line("b", 0, 8, &[[12, 30]])].concat());
    let bases = [base_of("b", "b", 9, 20), base("a", 6, 7)];
    assert_eq!(found.ranges(&bases), [RestorableRange { from: ticks(7), until: ticks(30) }]);
}

#[test]
fn a_gap_after_a_backup_is_known_by_the_window_behind_it() {
    let windows = line("a", 0, 5, &[[10, 11], [20, 21], [30, 31], [40, 41]]);
    let base = base("x", 8, 9);
    let behind = |windows| Coverage::new(windows).behind_gap(&base).map(|window| window.seq);
    let gap_after = |missing: usize| {
        let mut windows = windows.clone();
        windows.remove(missing);
        windows.extend(line("b", 7, 5, &[[50, 51]]));
        behind(windows)
    };
    assert_eq!([0, 1, 2].map(gap_after), [Some(1), Some(2), Some(3)]);
    assert_eq!(gap_after(3), None, "nothing shows that there was another one");
    assert_eq!(behind(windows.clone()), None);
    for seq in [2, 3] {
        let twice = [windows.clone(), line("a", seq, 20, &[[43, 44]])].concat();
        assert_eq!(behind(twice), Some(seq), "two windows have the number");
    }
}

#[test]
fn windows_lead_to_the_last_from_the_backup_or_from_their_beginning() {
    let windows = line("a", 0, 5, &[[10, 11], [20, 21], [30, 31], [40, 41]]);
    let leads = |missing: Option<usize>, base: Option<&BackupManifest>, last| {
        let mut windows = windows.clone();
        missing.map(|index| windows.remove(index));
        Coverage::new(windows).first_to(base, last).is_some()
    };
    let last = ("a", 3);
    assert!(leads(None, None, last));
    assert!(!leads(None, None, ("a", 2)), "a window that was not noted");
    assert!(!leads(None, None, ("a", 4)) && !leads(None, None, ("b", 3)));
    assert!(!leads(Some(0), None, last) && !leads(Some(2), None, last));
    let base = base("x", 25, 99);
    assert!(leads(None, Some(&base), last) && leads(Some(0), Some(&base), last));
    assert!(!leads(Some(2), Some(&base), last));
    let whole = Coverage::new(windows.clone());
    assert_eq!(whole.first_to(None, last), Some(0));
    assert_eq!(whole.first_to(Some(&base), last), Some(1));
    // From the one before it on nothing else is needed.
    let later = Coverage::new(windows[1..].to_vec());
    assert_eq!(later.first_to(Some(&base), last), Some(1));
    let of_none = BackupManifest { newest: None, ..base };
    assert!(!leads(None, Some(&of_none), last));
}

mod random {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    /// The history of a data directory: what is committed, sent and backed up, and where it goes back to a copy.
    #[derive(Debug, Clone, Copy)]
    enum HistoryStep {
        Commit,
        Window,
        Backup,
        /// A copy of the directory is put back, and so a line begins.
        Return(usize),
    }

    fn steps() -> impl Strategy<Value = Vec<HistoryStep>> {
        let step = prop_oneof![
            5 => Just(HistoryStep::Commit),
            5 => Just(HistoryStep::Window),
            2 => Just(HistoryStep::Backup),
            1 => (0_usize..20).prop_map(HistoryStep::Return),
        ];
        prop::collection::vec(step, 0..60)
    }

    /// What is at a target, and which changes each part of it has.
    #[derive(Default)]
    struct Target {
        windows: Vec<(WindowName, BTreeSet<u64>)>,
        bases: Vec<(BackupManifest, BTreeSet<u64>)>,
        /// The changes that there were at each window's end, by its line and instant.
        ends: Vec<(String, u64, BTreeSet<u64>)>,
    }

    fn target(steps: &[HistoryStep]) -> Target {
        let mut target = Target::default();
        let (mut changes, mut copies) = (BTreeSet::new(), vec![BTreeSet::new()]);
        let (mut unsent, mut now, mut from, mut number, mut name) = (Vec::new(), 1, 1, 0, 0);
        for step in steps {
            now += 2;
            match step {
                HistoryStep::Commit => {
                    changes.insert(now);
                    unsent.push(now);
                    copies.push(changes.clone());
                }
                HistoryStep::Window => {
                    let to = unsent.last().copied().unwrap_or(from);
                    let line = format!("l{name}");
                    let window = super::name(&line, number, [from, to, now]);
                    target.windows.push((window, unsent.drain(..).collect()));
                    target.ends.push((line, now, changes.clone()));
                    (from, number) = (to, number + 1);
                }
                HistoryStep::Backup => {
                    let newest = changes.last().copied().unwrap_or(1);
                    let base = base_of(&format!("l{name}"), &now.to_string(), newest, now);
                    target.bases.push((base, changes.clone()));
                }
                HistoryStep::Return(index) => {
                    changes = copies[index % copies.len()].clone();
                    (name, number) = (name + 1, 0);
                    from = changes.last().copied().unwrap_or(1);
                    unsent.clear();
                }
            }
        }
        target
    }

    proptest! {
        #[test]
        fn what_is_restored_is_what_there_was(steps in steps(), lost in prop::collection::vec(0_usize..40, 0..3)) {
            let mut target = target(&steps);
            for index in lost {
                if index < target.windows.len() {
                    target.windows.remove(index);
                }
            }
            let coverage = Coverage::new(target.windows.iter().map(|(name, _)| name.clone()).collect());
            let bases: Vec<_> = target.bases.iter().map(|(base, _)| base.clone()).collect();
            for (line, at, expected) in &target.ends {
                let Ok(plan) = coverage.plan(&bases, ticks(*at)) else { continue };
                if plan.base.line.as_ref() != Some(line) {
                    continue;
                }
                let (_, base) = target.bases.iter().find(|(base, _)| base == plan.base).unwrap();
                let mut restored = base.clone();
                for window in plan.windows.iter().chain(plan.later) {
                    let (_, changes) = target.windows.iter().find(|(name, _)| name == window).unwrap();
                    restored.extend(changes.iter().filter(|change| **change <= *at));
                }
                prop_assert_eq!(&restored, expected, "{} {}", line, at);
            }
        }

        #[test]
        fn a_lost_window_is_a_gap_of_the_backup_before_it_or_the_end(
            steps in steps(),
            lost in 0_usize..40,
        ) {
            let mut target = target(&steps);
            prop_assume!(lost < target.windows.len());
            let (lost, _) = target.windows.remove(lost);
            let coverage = Coverage::new(target.windows.iter().map(|(name, _)| name.clone()).collect());
            for (base, _) in &target.bases {
                let is_after = |name: &WindowName| {
                    name.line == lost.line && name.seq > lost.seq && name.at.get() > base.at
                };
                let is_needed = base.line.as_ref() == Some(&lost.line) && lost.to.get() > base.newest.unwrap();
                if is_needed && target.windows.iter().any(|(name, _)| is_after(name)) {
                    prop_assert!(coverage.behind_gap(base).is_some(), "{:?}", base.id);
                }
            }
        }
    }
}
