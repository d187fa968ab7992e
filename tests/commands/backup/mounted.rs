//! A backup that a server shows, without a restore.

use super::*;

/// A server that shows a backup of the target.
fn mounted(backups: &Backups, args: &[&str]) -> Server {
    let target = backups.text("target");
    Server::start(&[&["--backup", &target], args].concat(), &[])
}

#[test]
fn a_backup_is_read_by_every_command_and_never_written() {
    let backups = Backups::new();
    let server = backups.serve("data");
    fill(&server, backups.folder.path());
    let before = shown(&server, backups.folder.path());
    backups.create();
    succeeds(&server, &["table", "delete", "orders", "--yes"]);
    succeeds(&server, &["blob", "rm", "blob://pictures/cat"]);
    drop(server);
    fs::remove_dir_all(backups.path("data")).unwrap();
    let parts = backups.parts();

    let copy = mounted(&backups, &[]);
    assert_eq!(shown(&copy, backups.folder.path()), before);
    for write in [
        &["entity", "insert", "orders", "-p", "p", "-r", "9", "--set", "v=new"][..],
        &["table", "create", "later"],
        &["table", "delete", "orders", "--yes"],
        &["message", "send", "jobs", "x"],
        &["message", "receive", "jobs"],
        &["blob", "rm", "blob://pictures/cat"],
        &["blob", "cp", backups.path("content").to_str().unwrap(), "blob://pictures/new"],
        &["log", "append", "app", backups.path("lines").to_str().unwrap()],
    ] {
        let rejected = run(&copy, write);
        assert_ne!(rejected.code, Some(0), "{write:?}: {rejected:?}");
        assert!(rejected.errors.contains("a backup, which accepts no writes"), "{rejected:?}");
    }
    assert_eq!(shown(&copy, backups.folder.path()), before);
    let status = succeeds(&copy, &["status"]).output;
    assert!(status.contains("writes\tread-only: disk or backup"), "{status}");
    assert_eq!(copy.terminate(), Some(0));
    assert_eq!(backups.parts(), parts);
}

#[test]
fn the_configuration_of_the_server_that_made_it_is_used() {
    let backups = Backups::new();
    let server = backups.serve("data");
    succeeds(&server, &["table", "create", "orders"]);
    backups.create();
    let config = backups.path("trestle.toml");
    let (data, own) = (backups.text("data"), backups.text("target"));
    let text = format!(
        "[storage]\ndata_dir = '{data}'\nblob_url = 's3://absent/path'\n[backup]\ntarget = '{own}'\n"
    );
    fs::write(&config, text).unwrap();
    let (target, config) = (backups.text("target"), config.to_str().unwrap());
    let key = ("TRESTLE_BACKUP_DECRYPT", "/dev/null");
    let variables = [key, ("AWS_REGION", "x"), ("AWS_ENDPOINT_URL", "http://127.0.0.1:1")];
    let checked =
        bare(&["config", "check", "--config", config]).env(key.0, key.1).output().unwrap();
    assert!(checked.status.success(), "the variable of other commands is no flag: {checked:?}");
    let parts = backups.parts();
    let refused = Ended::of(bare(&["serve", "--backup", &target, "--data-dir", &data]));
    assert!(refused.code == Some(2) && refused.errors.contains("--backup"), "{refused:?}");

    let copy = Server::start(&["--config", config, "--backup", &target], &variables[1..]);
    succeeds(&copy, &["entity", "query", "orders"]);
    assert_eq!(copy.terminate(), Some(0));
    assert_eq!(backups.parts(), parts, "no schedule");
}

#[test]
fn a_table_of_a_backup_is_put_back_beside_the_running_one() {
    let backups = Backups::new();
    let server = backups.serve("data");
    fill(&server, backups.folder.path());
    let first = backups.create();
    succeeds(&server, &["entity", "delete", "orders", "-p", "p", "-r", "1"]);
    backups.create();

    let copy = mounted(&backups, &["--backup-id", first["id"].as_str().unwrap()]);
    let (file, file_of_copy) = (backups.text("now.csv"), backups.text("then.csv"));
    succeeds(&copy, &["table", "export", "orders", &file_of_copy]);
    succeeds(&server, &["table", "create", "ordersBefore"]);
    succeeds(&server, &["table", "import", "ordersBefore", &file_of_copy]);
    succeeds(&server, &["table", "export", "orders", &file]);
    let rows = |table: &str| {
        succeeds(&server, &["entity", "query", table, "-o", "jsonl"]).output.lines().count()
    };
    assert_eq!((rows("orders"), rows("ordersBefore")), (2, 3));
}

#[test]
fn an_encrypted_backup_is_shown_with_its_key_and_damage_is_an_error_of_the_read() {
    let backups = Backups::new();
    let server = backups.serve("data");
    fill(&server, backups.folder.path());
    let [key, public] = encrypted::keys(&backups, "vault");
    assert_eq!(encrypted::create(&backups, &public).code, Some(0));
    let target = backups.text("target");
    let serve = ["serve", "--backup", &target, "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"];
    let refused = Ended::of(bare(&serve));
    assert_eq!(refused.code, Some(2), "{refused:?}");
    assert!(refused.errors.contains("is encrypted"), "{refused:?}");

    let copy = mounted(&backups, &["--decrypt", &key]);
    shown(&copy, backups.folder.path());
    drop(copy);
    let copy = mounted(&backups, &["--decrypt", &key]);
    let largest = backups.parts().into_iter().max_by_key(|it| fs::metadata(it).unwrap().len());
    fs::remove_file(largest.unwrap()).unwrap();
    let read = backups.text("read");
    let failed = run(&copy, &["blob", "cp", "blob://pictures/cat", &read]);
    assert_eq!(failed.code, Some(1), "a retry does not help: {failed:?}");
    succeeds(&copy, &["entity", "get", "orders", "-p", "p", "-r", "1"]);
}
