//! Data directories that are copied, and put back.

use super::*;

/// Copies a directory with everything in it.
fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let to = to.join(entry.file_name());
        match entry.file_type().unwrap().is_dir() {
            true => copy(&entry.path(), &to),
            false => drop(fs::copy(entry.path(), to).unwrap()),
        }
    }
}

/// The rows that an export has.
fn rows(exported: &str) -> Vec<String> {
    let row = |line: &str| {
        let entity: Value = serde_json::from_str(line).unwrap();
        entity["RowKey"].as_str().unwrap().to_owned()
    };
    exported.lines().map(row).collect()
}

#[test]
fn a_directory_that_is_put_back_is_not_mixed_with_what_came_after_the_copy() {
    let backups = Backups::new();
    let server = continuous(&backups, "log", &[]);
    logged(&backups, "log", &["a backup was made"]);
    succeeds(&server, &["table", "create", "orders"]);
    insert(&server, "before");
    covered(&backups, &now());
    assert_eq!(server.terminate(), Some(0));
    copy(&backups.path("data"), &backups.path("copy"));

    let server = continuous(&backups, "second", &[]);
    insert(&server, "lost");
    let lost = now();
    covered(&backups, &lost);
    backups.create();
    assert_eq!(server.terminate(), Some(0));

    fs::remove_dir_all(backups.path("data")).unwrap();
    fs::rename(backups.path("copy"), backups.path("data")).unwrap();
    let server = continuous(&backups, "third", &[]);
    insert(&server, "after");
    // It waits until it is sure that no other server sends.
    let log = || fs::read_to_string(backups.path("third")).unwrap();
    let is_followed = || log().contains("a backup was made");
    assert!((0..8).any(|_| becomes(is_followed)), "{}", log());
    insert(&server, "later");
    let exported = succeeds(&server, &["table", "export", "orders", "-"]).output;
    covered(&backups, &now());
    assert_eq!(rows(&orders_at(&backups, &lost).output), ["before", "lost"]);
    let latest = orders_at(&backups, "latest").output;
    assert_eq!(latest, exported);
    assert_eq!(rows(&latest), ["after", "before", "later"]);
    assert_eq!(backups.backup("verify", &["--all"]).code, Some(0));
}

#[test]
fn of_two_servers_with_copies_one_sends_and_the_other_is_refused() {
    let backups = Backups::new();
    let server = continuous(&backups, "log", &[]);
    logged(&backups, "log", &["a backup was made"]);
    succeeds(&server, &["table", "create", "orders"]);
    covered(&backups, &now());
    assert_eq!(server.terminate(), Some(0));
    copy(&backups.path("data"), &backups.path("copy"));

    let first = continuous(&backups, "first", &[]);
    insert(&first, "first");
    covered(&backups, &now());
    let (data, target) = (backups.text("copy"), backups.text("target"));
    let settings = [
        ("TRESTLE__BACKUP__TARGET", target.as_str()),
        ("TRESTLE__BACKUP__CONTINUOUS", "true"),
        ("TRESTLE__BACKUP__EVERY", "30d"),
    ];
    let args = ["--data-dir", data.as_str()];
    let second = Server::start_logging(&backups.path("second"), &args, &settings);
    insert(&second, "second");
    let log = || fs::read_to_string(backups.path("second")).unwrap();
    let mut number = 0;
    let is_refused = || {
        number += 1;
        insert(&first, &format!("first-{number}"));
        log().contains("another server sends its changes to the target")
    };
    let mut is_refused = is_refused;
    assert!((0..8).any(|_| becomes(&mut is_refused)), "{}", log());
    let exported = succeeds(&first, &["table", "export", "orders", "-"]).output;
    covered(&backups, &now());
    let latest = orders_at(&backups, "latest").output;
    assert_eq!(latest, exported);
    assert!(!rows(&latest).contains(&"second".to_owned()), "{latest}");
    assert_eq!(metric(&page(&first), "trestle_backup_gaps_total"), Some(0.0));
}
