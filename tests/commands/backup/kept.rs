//! Backups that were made by each format, which every later version restores.
//!
//! `just fixture` writes `tests/commands/backup/kept/FORMAT` anew; do that once for each format, and before the first
//! release where it changes.

use super::*;

/// The newest format.
const CURRENT: &str = "2";
/// The file of the secret key, which is no secret: it opens these backups alone.
const KEY: &str = "kept.key";

fn kept() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("commands/backup/kept")
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap().map(Result::unwrap) {
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).unwrap();
        }
    }
}

/// Less than `fill` writes, so that what is kept is small.
fn write(server: &Server, folder: &Path) {
    let lines = folder.join("lines");
    fs::write(&lines, "{\"body\":\"first\"}\n{\"body\":\"second\"}\n").unwrap();
    let lines = lines.to_str().unwrap();
    succeeds(server, &["table", "create", "orders"]);
    succeeds(server, &["entity", "insert", "orders", "-p", "p", "-r", "1", "--set", "v=kept"]);
    succeeds(server, &["queue", "create", "jobs"]);
    succeeds(server, &["message", "send", "jobs", "resize", "--never-expires"]);
    succeeds(server, &["blob", "container", "create", "pictures"]);
    let large = folder.join("large");
    fs::write(&large, "large ".repeat(20_000)).unwrap();
    succeeds(server, &["blob", "cp", large.to_str().unwrap(), "blob://pictures/large"]);
    succeeds(server, &["blob", "cp", lines, "blob://pictures/small"]);
    succeeds(server, &["log", "create", "app"]);
    succeeds(server, &["log", "append", "app", lines]);
}

fn check(server: &Server) {
    let found = succeeds(server, &["entity", "query", "orders", "-o", "jsonl"]).output;
    assert!(found.contains("\"v\":\"kept\""), "{found}");
    let found = succeeds(server, &["message", "peek", "jobs", "-o", "jsonl"]).output;
    assert!(found.contains("resize"), "{found}");
    let found = succeeds(server, &["blob", "cat", "blob://pictures/large"]).output;
    assert_eq!(found, "large ".repeat(20_000));
    let found = succeeds(server, &["blob", "cat", "blob://pictures/small"]).output;
    assert!(found.ends_with("second\"}\n"), "{found}");
    let found = succeeds(server, &["log", "read", "app", "--json"]).output;
    assert!(found.contains("first") && found.contains("second"), "{found}");
    succeeds(server, &["entity", "insert", "orders", "-p", "p", "-r", "2", "--set", "v=new"]);
}

/// Restores the backups of a folder, plain and encrypted ones.
fn restores(folder: &Path) {
    let backups = Backups::new();
    copy(folder, backups.folder.path());
    let key = backups.text(KEY);
    for (target, args) in [("plain", &[][..]), ("sealed", &["--decrypt", &key])] {
        let (target, data) = (backups.text(target), backups.text(&format!("{target}-data")));
        let verified = Ended::of(bare(&[&["backup", "verify", &target, "--all"], args].concat()));
        assert_eq!(verified.code, Some(0), "{verified:?}");
        let restore = ["backup", "restore", &target, "--data-dir", &data];
        let restored = Ended::of(bare(&[&restore[..], args].concat()));
        assert_eq!(restored.code, Some(0), "{restored:?}");
        check(&Server::start(&["--data-dir", &data], &[]));
    }
}

#[test]
#[allow(clippy::disallowed_methods, reason = "a setting of this test")]
fn writes_backups_that_are_restored() {
    let (backups, made) = (Backups::new(), tempdir().unwrap());
    let server = backups.serve("data");
    write(&server, backups.folder.path());
    let (data, key) = (backups.text("data"), made.path().join(KEY));
    let key = key.to_str().unwrap();
    assert_eq!(Ended::of(bare(&["backup", "keygen", key])).code, Some(0));
    for (target, args) in [("plain", &[][..]), ("sealed", &["--encrypt", key])] {
        let target = made.path().join(target);
        let create = ["backup", "create", target.to_str().unwrap(), "--data-dir", &data];
        let created = Ended::of(bare(&[&create[..], args].concat()));
        assert_eq!(created.code, Some(0), "{created:?}");
        fs::remove_dir(target.join("running")).unwrap();
    }
    if std::env::var_os("WRITE_FIXTURE").is_some() {
        let folder = kept().join(CURRENT);
        let _ = fs::remove_dir_all(&folder);
        copy(made.path(), &folder);
    }
    restores(made.path());
}

#[test]
fn restores_the_backups_of_every_format() {
    let folders: Vec<_> =
        fs::read_dir(kept()).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert!(folders.iter().any(|folder| folder.ends_with(CURRENT)), "none of {CURRENT}");
    folders.iter().for_each(|folder| restores(folder));
}
