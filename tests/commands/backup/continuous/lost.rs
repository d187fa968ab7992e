//! A target that was there before and is not.

use super::*;

#[test]
fn a_target_that_is_unmounted_is_not_made_anew_and_goes_on_once_it_is_back() {
    let backups = Backups::new();
    let server = continuous(&backups, "log", &[]);
    logged(&backups, "log", &["a backup was made"]);
    succeeds(&server, &["table", "create", "orders"]);
    covered(&backups, &now());
    // As what is below the place where it was mounted.
    let (target, away) = (backups.path("target"), backups.path("away"));
    fs::rename(&target, &away).unwrap();
    fs::create_dir(&target).unwrap();
    insert(&server, "1");
    logged(&backups, "log", &["changes are not sent to the backup target"]);
    let refused = backups.backup("create", &["--data-dir", &backups.text("data")]);
    assert_ne!(refused.code, Some(0), "{refused:?}");
    assert!(refused.errors.contains("is it mounted?"), "{refused:?}");
    assert!(!target.join("trestle-backup").exists() && !target.join("backups").exists());

    let exported = succeeds(&server, &["table", "export", "orders", "-"]).output;
    fs::remove_dir_all(&target).unwrap();
    fs::rename(&away, &target).unwrap();
    let instant = now();
    covered(&backups, &instant);
    assert_eq!(orders_at(&backups, &instant).output, exported);
    assert_eq!(metric(&page(&server), "trestle_backup_gaps_total"), Some(0.0));
    assert_eq!(backups.backup("verify", &[]).code, Some(0));
    assert_eq!(server.terminate(), Some(0));

    // And where an operator begins anew.
    fs::rename(&target, &away).unwrap();
    fs::remove_file(backups.path("data/backup-targets")).unwrap();
    let server = continuous(&backups, "anew", &[]);
    logged(&backups, "anew", &["a backup was made"]);
    covered(&backups, &now());
    assert_eq!(server.terminate(), Some(0));
}

#[test]
fn an_instant_is_restored_from_an_older_backup_where_the_newest_is_damaged() {
    let backups = Backups::new();
    let server = continuous(&backups, "log", &[]);
    let first = logged(&backups, "log", &["a backup was made"]);
    let first = first.split_once("id=\"").unwrap().1.split_once('"').unwrap().0.to_owned();
    succeeds(&server, &["table", "create", "orders"]);
    insert(&server, "1");
    let parts = backups.parts();
    backups.create();
    let made = backups.parts().into_iter().filter(|path| !parts.contains(path));
    let made: Vec<_> = made.filter(|path| path.to_str().unwrap().contains("/parts/")).collect();
    insert(&server, "2");
    let exported = succeeds(&server, &["table", "export", "orders", "-"]).output;
    let instant = now();
    covered(&backups, &instant);
    assert_eq!(server.terminate(), Some(0));
    made.iter().for_each(|part| fs::write(part, "damaged").unwrap());

    let failed = backups.restore("failed", &["--to", &instant]);
    assert_ne!(failed.code, Some(0), "{failed:?}");
    assert!(failed.errors.contains("--id"), "an older one may do: {failed:?}");
    let restored = backups.restore("restored", &["--to", &instant, "--id", &first]);
    assert_eq!(restored.code, Some(0), "{restored:?}");
    let copy = backups.serve("restored");
    assert_eq!(succeeds(&copy, &["table", "export", "orders", "-"]).output, exported);
    let target = backups.text("target");
    let which = ["--backup", &target, "--backup-to", &instant, "--backup-id", &first];
    let copy = Server::start(&which, &[]);
    assert_eq!(succeeds(&copy, &["table", "export", "orders", "-"]).output, exported);
}

#[test]
fn windows_that_are_missing_in_front_of_others_are_named_by_verify_and_by_restore() {
    let backups = Backups::new();
    let server = continuous(&backups, "log", &[]);
    logged(&backups, "log", &["a backup was made"]);
    succeeds(&server, &["table", "create", "orders"]);
    covered(&backups, &now());
    insert(&server, "1");
    covered(&backups, &now());
    assert_eq!(server.terminate(), Some(0));
    // All that come before the last one.
    let mut windows = windows::windows(&backups);
    windows.pop();
    windows.iter().for_each(|window| fs::remove_file(window).unwrap());
    let verified = backups.backup("verify", &[]);
    assert_eq!(verified.code, Some(1), "{verified:?}");
    assert!(verified.output.contains("windows are missing or ambiguous"), "{verified:?}");
    let server = continuous(&backups, "again", &[]);
    logged(&backups, "again", &["a backup was made"]);
    let exported = succeeds(&server, &["table", "export", "orders", "-"]).output;
    covered(&backups, &now());
    assert_eq!(orders_at(&backups, "latest").output, exported);
}
