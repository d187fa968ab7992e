//! Windows at the target that are missing, changed, or in the place of others.

use super::*;

const DAY: Duration = Duration::from_secs(86_400);

/// A store with changes in windows of their own, and the instants after each.
struct Followed {
    backups: Backups,
    instants: Vec<String>,
    exported: Vec<String>,
}

/// The windows at the target, in their order.
pub(super) fn windows(backups: &Backups) -> Vec<PathBuf> {
    let name = |path: &PathBuf| path.file_name().unwrap().to_str().unwrap().to_owned();
    let mut windows = backups.parts();
    windows.retain(|path| path.to_str().unwrap().contains("/changes/"));
    windows.retain(|path| !name(path).starts_with("run-"));
    windows
}

impl Followed {
    /// With a row, and one more after each pause.
    fn new(rows: usize, settings: &[(&str, &str)]) -> Self {
        let backups = Backups::new();
        let server = continuous(&backups, "log", settings);
        logged(&backups, "log", &["a backup was made"]);
        succeeds(&server, &["table", "create", "orders"]);
        let (mut instants, mut exported) = (Vec::new(), Vec::new());
        for row in 0..rows {
            insert(&server, &row.to_string());
            exported.push(succeeds(&server, &["table", "export", "orders", "-"]).output);
            let instant = now();
            covered(&backups, &instant);
            instants.push(instant);
        }
        assert_eq!(server.terminate(), Some(0));
        Self { backups, instants, exported }
    }

    /// The windows that have changes, in their order.
    fn windows(&self) -> Vec<PathBuf> {
        let mut windows = windows(&self.backups);
        // The others have no changes.
        windows.retain(|path| {
            let name = path.file_name().unwrap().to_str().unwrap();
            let numbers: Vec<_> = name.split('-').collect();
            numbers[1] != numbers[2]
        });
        windows
    }

    fn refused(&self, instant: &str) -> Ended {
        let restored = self.backups.restore("refused", &["--to", instant]);
        assert_ne!(restored.code, Some(0), "{restored:?}");
        restored
    }
}

#[test]
fn a_window_that_is_missing_is_a_gap_that_every_command_shows() {
    let followed = Followed::new(4, &[]);
    let (backups, instants) = (&followed.backups, &followed.instants);
    let windows = followed.windows();
    assert!(windows.len() >= 4, "{windows:?}");
    fs::remove_file(&windows[2]).unwrap();

    let listed = backups.backup("list", &["-o", "jsonl"]).output;
    let record: Value = serde_json::from_str(listed.lines().last().unwrap()).unwrap();
    let until = record["restorable_until"].as_str().unwrap();
    assert!(*until < *instants[3] && *until > *instants[0], "{until}: {instants:?}");
    let shown = backups.backup("show", &["-o", "json"]).output;
    let shown: Value = serde_json::from_str(&shown).unwrap();
    assert_eq!(shown["restorable_until"].as_str(), Some(until));

    let refused = followed.refused(&instants[3]);
    assert_eq!(refused.code, Some(2), "{refused:?}");
    assert!(refused.errors.contains("cannot be restored: to=`"), "{refused:?}");
    assert!(refused.errors.contains(until), "the range before it: {refused:?}");
    assert!(!backups.path("refused").exists(), "nothing was begun");
    let verified = backups.backup("verify", &[]);
    assert_eq!(verified.code, Some(1), "{verified:?}");
    assert!(verified.output.contains("changes/"), "{verified:?}");

    assert_eq!(orders_at(backups, &instants[0]).output, followed.exported[0]);
    assert_eq!(orders_at(backups, "latest").output, orders_at(backups, until).output);
}

#[test]
fn a_window_that_was_changed_is_named_and_no_store_is_left() {
    let followed = Followed::new(3, &[]);
    let (backups, instants) = (&followed.backups, &followed.instants);
    let windows = followed.windows();
    let changed = &windows[1];
    let mut bytes = fs::read(changed).unwrap();
    let last = bytes.len() - 1;
    bytes[last] ^= 1;
    fs::write(changed, bytes).unwrap();

    let name = changed.file_name().unwrap().to_str().unwrap();
    let verified = backups.backup("verify", &["-o", "jsonl"]);
    assert_eq!(verified.code, Some(1), "{verified:?}");
    assert_eq!(verified.output.matches(name).count(), 1, "{verified:?}");
    let refused = followed.refused(&instants[2]);
    assert!(refused.errors.contains(name), "{refused:?}");
    assert!(backups.path("refused/RESTORING").exists());
    let data_dir = backups.text("refused");
    let served = Ended::of(bare(&["serve", "--data-dir", &data_dir]));
    assert!(served.code != Some(0) && served.errors.contains("restore"), "{served:?}");
    // The same command with an instant before the damage makes it whole.
    let repeated = backups.restore("refused", &["--to", &instants[0]]);
    assert_eq!(repeated.code, Some(0), "{repeated:?}");
    let found = run(&backups.serve("refused"), &["table", "export", "orders", "-"]);
    assert_eq!(found.output, followed.exported[0]);
}

#[test]
fn a_window_in_the_place_of_another_one_is_damage() {
    let followed = Followed::new(3, &[]);
    let windows = followed.windows();
    let foreign = fs::read(&windows[0]).unwrap();
    fs::write(&windows[1], foreign).unwrap();
    let verified = followed.backups.backup("verify", &["--all"]);
    assert_eq!(verified.code, Some(1), "{verified:?}");
    assert!(verified.output.contains("changed since it was written"), "{verified:?}");
    followed.refused(&followed.instants[2]);
    assert_eq!(orders_at(&followed.backups, &followed.instants[0]).output, followed.exported[0]);
}

#[test]
fn empty_and_foreign_files_beside_windows_change_nothing() {
    let followed = Followed::new(2, &[]);
    let line = followed.windows()[0].parent().unwrap().to_owned();
    fs::write(line.join("notes.txt"), "mine").unwrap();
    fs::create_dir(line.join("folder")).unwrap();
    fs::write(line.parent().unwrap().join("README"), "mine").unwrap();
    assert_eq!(followed.backups.backup("verify", &["--all"]).code, Some(0));
    assert_eq!(orders_at(&followed.backups, "latest").output, followed.exported[1]);
    let pruned = followed.backups.backup("prune", &["--keep-last", "1"]);
    assert_eq!(pruned.code, Some(0), "{pruned:?}");
    assert_eq!(fs::read(line.join("notes.txt")).unwrap(), b"mine");
}

#[test]
fn encrypted_changes_show_nothing_and_are_restored_with_the_key_alone() {
    let keys = tempdir().unwrap();
    let path = |name: &str| keys.path().join(name).to_str().unwrap().to_owned();
    let (secret, public) = (path("secret"), path("public"));
    let made = Ended::of(bare(&["backup", "keygen", &secret]));
    assert_eq!(made.code, Some(0), "{made:?}");
    fs::write(&public, &made.output).unwrap();
    let followed = Followed::new(2, &[("TRESTLE__BACKUP__ENCRYPT", &public)]);
    let backups = &followed.backups;
    for file in backups.parts() {
        let bytes = fs::read(&file).unwrap();
        assert!(!bytes.windows(6).any(|text| text == b"orders"), "{}", file.display());
    }
    assert_eq!(backups.backup("list", &[]).code, Some(0), "names and times need no key");
    let refused = followed.refused("latest");
    assert!(refused.errors.contains("--decrypt"), "{refused:?}");
    let args = ["--to", &followed.instants[0], "--decrypt", &secret];
    let restored = backups.restore("opened", &args);
    assert_eq!(restored.code, Some(0), "{restored:?}");
    let found = run(&backups.serve("opened"), &["table", "export", "orders", "-"]);
    assert_eq!(found.output, followed.exported[0]);
    assert_eq!(backups.backup("verify", &["--decrypt", &secret]).code, Some(0));
}

#[test]
fn instants_that_are_none_or_out_of_range_are_errors_with_the_rule() {
    let followed = Followed::new(1, &[]);
    let backups = &followed.backups;
    for wrong in ["noon", "", "2026-13-01T00:00:00Z", "Latest", "12:00"] {
        let refused = followed.refused(wrong);
        assert_eq!(refused.code, Some(2), "{wrong}: {refused:?}");
        assert!(refused.errors.contains("RFC 3339"), "{wrong}: {refused:?}");
    }
    for outside in ["2001-01-01T00:00:00Z", "2999-01-01T00:00:00Z"] {
        let refused = followed.refused(outside);
        assert_eq!(refused.code, Some(2), "{outside}: {refused:?}");
        assert!(refused.errors.contains("those that can be are"), "{outside}: {refused:?}");
    }
    let both = backups.restore("refused", &["--to", "latest", "--id", "a"]);
    assert_eq!(both.code, Some(2), "{both:?}");
    assert!(!backups.path("refused").exists());
    // An offset is another way to write the same instant.
    let instant = &followed.instants[0];
    let shifted = instant.replace('Z', "+00:00");
    assert_eq!(orders_at(backups, &shifted).output, followed.exported[0]);
}

#[test]
fn a_prune_keeps_what_leads_to_every_instant_after_the_oldest_backup_that_is_kept() {
    let followed = Followed::new(2, &[]);
    let backups = &followed.backups;
    let before = backups.parts().len();
    backups.create();
    let kept = backups.backup("prune", &["--keep-last", "1"]);
    assert_eq!(kept.code, Some(0), "{kept:?}");
    let windows = followed.windows().len();
    assert!(windows >= 2, "what is younger than a day stays");
    assert_eq!(backups.backup("verify", &["--all"]).code, Some(0));

    let old = followed.windows();
    // As if all of it were older than that, but what comes from now on.
    for file in backups.parts() {
        let file = fs::File::options().append(true).open(&file).unwrap();
        let days_ago = file.metadata().unwrap().modified().unwrap() - 3 * DAY;
        file.set_modified(days_ago).unwrap();
    }
    let server = continuous(backups, "again", &[]);
    insert(&server, "new");
    covered(backups, &now());
    let exported = succeeds(&server, &["table", "export", "orders", "-"]).output;
    assert_eq!(server.terminate(), Some(0));
    let dry = backups.backup("prune", &["--keep-last", "1", "--dry-run", "-o", "json"]);
    let dry: Value = serde_json::from_str(&dry.output).unwrap();
    let pruned = backups.backup("prune", &["--keep-last", "1", "-o", "json"]);
    let record: Value = serde_json::from_str(&pruned.output).unwrap();
    assert_eq!((&dry["windows"], &dry["parts"]), (&record["windows"], &record["parts"]));
    assert!(record["windows"].as_u64().unwrap() > 0, "{record}");
    let left = followed.windows();
    assert!(old.iter().any(|window| !left.contains(window)), "{left:?}");
    assert!(backups.parts().len() < before + 8, "{record}");
    assert_eq!(orders_at(backups, "latest").output, exported);
    assert_eq!(backups.backup("verify", &["--all"]).code, Some(0));
}

#[test]
fn what_is_shown_of_an_instant_and_what_is_not_there_for_it() {
    let followed = Followed::new(3, &[]);
    let (backups, instants) = (&followed.backups, &followed.instants);
    let (target, scratch) = (backups.text("target"), backups.text("scratch"));
    let shows = |instant: &str| {
        let args = ["--backup", &target, "--backup-to", instant];
        let server = Server::start(&args, &[]);
        succeeds(&server, &["table", "export", "orders", "-"]).output
    };
    for (instant, exported) in std::iter::zip(instants, &followed.exported) {
        assert_eq!(&shows(instant), exported, "{instant}");
    }

    // No directory for temporary files.
    let mut command = bare(&["backup", "restore", &target, "--to", &instants[0]]);
    command.args(["--table", "orders=x"]).env("TMPDIR", &scratch);
    let refused = Ended::of(command);
    assert_ne!(refused.code, Some(0), "{refused:?}");
    assert!(refused.errors.contains("see TMPDIR"), "{refused:?}");

    let windows = followed.windows();
    let last = windows.last().unwrap();
    let whole = fs::read(last).unwrap();
    fs::write(last, &whole[..whole.len() / 2]).unwrap();
    assert_eq!(shows(&instants[1]), followed.exported[1], "it is not needed for that");
    let args = ["serve", "--backup", &target, "--backup-to", &instants[2]];
    let refused = Ended::of(bare(&args));
    assert!(refused.errors.contains("a window of changes cannot be restored"), "{refused:?}");
    fs::write(last, whole).unwrap();

    // A gap in front of the last one.
    fs::remove_file(&windows[windows.len() - 2]).unwrap();
    let latest = backups.restore("latest", &["--to", "latest"]);
    assert_eq!(latest.code, Some(0), "{latest:?}");
    assert!(latest.errors.contains("that nothing leads to"), "{latest:?}");
    let refused = followed.refused(&instants[2]);
    assert!(refused.errors.contains("cannot be restored"), "{refused:?}");
}
