//! Addresses for clients of Azure Storage in a process without the role gateway, which has no such listeners.

use std::fs;

use tempfile::tempdir;

use super::at;
use crate::client::Ended;

const RULE: &str = "must not be set without the role gateway, which serves clients of Azure Storage: \
                    roles=`table,queue`";

#[test]
fn a_flag_without_the_role_gateway_is_a_mistake_that_hides_no_other() {
    let folder = tempdir().unwrap();
    let flags =
        ["--roles", "table,queue", "--azure-table", "127.0.0.1:0", "--azure-queue", "127.0.0.1:0"];

    for command in [&["config", "check"][..], &["config", "print"], &["serve", "--ephemeral"]] {
        let ended = Ended::of(at(folder.path(), &[command, &flags].concat()));

        assert_eq!(ended.code, Some(2), "{ended:?}");
        for (flag, key) in [("--azure-table", "azure_table"), ("--azure-queue", "azure_queue")] {
            let line = format!("error: {flag}: server.{key}: {RULE}\n");
            assert!(ended.errors.contains(&line), "{line}: {ended:?}");
        }
        assert!(ended.errors.contains("mistakes=`2`"), "{ended:?}");
    }
    let mut check = at(folder.path(), &[&["config", "check"][..], &flags].concat());
    check.env("TRESTLE__LIMITS__CALLS_MAX", "0");
    let ended = Ended::of(check);
    assert!(ended.errors.contains("mistakes=`3`"), "{ended:?}");
}

#[test]
fn a_flag_that_turns_a_listener_off_needs_no_gateway_and_a_gateway_takes_each() {
    let folder = tempdir().unwrap();
    for flags in [
        ["--roles", "table,queue", "--azure-table", "off"],
        ["--roles", "table,queue,gateway", "--azure-table", "127.0.0.1:0"],
        ["--roles", "all", "--azure-blob", "127.0.0.1:0"],
    ] {
        let ended = Ended::of(at(folder.path(), &[&["config", "check"][..], &flags].concat()));
        assert_eq!((ended.code, ended.errors.as_str()), (Some(0), ""), "{flags:?}");
    }
}

#[test]
fn an_address_of_the_file_or_of_a_variable_is_one_warning() {
    let folder = tempdir().unwrap();
    let file = "[server]\nroles = \"table\"\nazure_table = \"127.0.0.1:1\"\n";
    fs::write(folder.path().join("trestle.toml"), file).unwrap();
    let with_variable = |args: &[&str]| {
        let mut command = at(folder.path(), args);
        command.env("TRESTLE__SERVER__AZURE_QUEUE", "127.0.0.1:2");
        // What the image sets for processes with any roles.
        command.env("TRESTLE__SERVER__AZURE_BLOB", "0.0.0.0:10000");
        Ended::of(command)
    };

    let checked = with_variable(&["config", "check"]);
    // It does not start, as the address of metrics is that of no machine, and logs the warning before.
    let started = with_variable(&[
        "serve",
        "--ephemeral",
        "--listen",
        "127.0.0.1:0",
        "--admin",
        "192.0.2.1:1",
        "--allow-plaintext",
    ]);

    let keys = "server.azure_queue, server.azure_table";
    let warning = format!(
        "warning: no effect without the role gateway, which serves clients of Azure Storage: {keys}\n"
    );
    assert_eq!((checked.code, checked.errors), (Some(0), warning));
    let lines: Vec<_> =
        started.errors.lines().filter(|line| line.contains("without the role gateway")).collect();
    assert_eq!(lines.len(), 1, "{started:?}");
    assert!(lines[0].contains("WARN") && lines[0].contains(keys), "{started:?}");
}
