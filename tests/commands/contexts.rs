//! Contexts: servers and credentials under a name.

use std::{fs, os::unix::fs::PermissionsExt as _, path::Path, process::Command};

use tempfile::tempdir;

use crate::client::{Ended, bare, server};

/// A command whose contexts are in a folder of the test.
fn with(config: &Path, args: &[&str]) -> Command {
    let mut command = bare(args);
    command.env("XDG_CONFIG_HOME", config);
    command
}

#[test]
fn a_context_names_a_server_and_its_credentials() {
    let (server, config) = (server(), tempdir().unwrap());
    let run = |args: &[&str]| Ended::of(with(config.path(), args));
    let address = server.address("grpc");

    let set = ["context", "set", "dev", "--endpoint", &address, "--account", "devstoreaccount1"];
    let stored = run(&set);
    let other = run(&["context", "set", "other", "--endpoint", "127.0.0.1:1"]);
    let file = config.path().join("trestle/client.toml");
    let mode = fs::metadata(&file).unwrap().permissions().mode();

    assert_eq!((stored.code, other.code), (Some(0), Some(0)), "{stored:?} {other:?}");
    assert_eq!(mode & 0o777, 0o600, "only the owner reads it");
    assert_eq!(run(&["table", "create", "orders"]).code, Some(0), "the first is used at once");
    assert_eq!(run(&["table", "list", "--context", "other"]).code, Some(5));
    assert_eq!(run(&["context", "use", "other"]).code, Some(0));
    assert_eq!(run(&["table", "list"]).code, Some(5));
    assert_eq!(run(&["--context", "dev", "table", "list"]).code, Some(0));
    let listed = run(&["context", "list"]).output;
    assert_eq!(listed.lines().count(), 3, "{listed}");
    assert!(
        listed.contains(&format!("dev\tfalse\thttp://{address}\tdevstoreaccount1")),
        "{listed}"
    );
    let missing = run(&["table", "list", "--context", "nosuch"]);
    assert_eq!(missing.code, Some(2), "{missing:?}");
    assert!(missing.errors.contains("trestle context list"), "{missing:?}");
    assert_eq!(run(&["context", "delete", "other"]).code, Some(0));
    assert_eq!(run(&["context", "list"]).output.lines().count(), 2);
}

#[test]
fn arguments_for_a_server_are_rejected_where_a_context_is_only_named() {
    let config = tempdir().unwrap();
    let run = |args: &[&str]| Ended::of(with(config.path(), args));
    assert_eq!(run(&["context", "set", "dev", "--endpoint", "127.0.0.1:1"]).code, Some(0));

    for verb in [&["use", "dev"][..], &["delete", "dev"], &["list"]] {
        for flag in [["--endpoint", "127.0.0.1:2"], ["--account", "other"], ["--ca-file", "ca.pem"]]
        {
            let rejected = run(&[&["context"][..], verb, &flag].concat());
            assert_eq!(rejected.code, Some(2), "{rejected:?}");
            let text = format!("`trestle context {}` takes no {}", verb[0], flag[0]);
            assert!(rejected.errors.contains(&text), "{rejected:?}");
        }
    }
    assert!(run(&["context", "list", "-o", "json"]).output.contains("127.0.0.1:1"));
}

#[test]
fn credentials_of_a_context_are_for_its_server_only() {
    let (server, config) = (server(), tempdir().unwrap());
    let run = |args: &[&str]| Ended::of(with(config.path(), args));
    let set = ["context", "set", "dev", "--endpoint", "127.0.0.1:1", "--account", "other"];
    let with_sas = [&set[..], &["--sas", "sv=1&sig=hunter2"]].concat();
    assert_eq!(run(&with_sas).code, Some(0));

    // Credentials that this server would reject.
    let named = run(&["table", "list", "--endpoint", &server.endpoint()]);
    let listed = run(&["context", "list", "-o", "json"]).output;

    assert_eq!(named.code, Some(0), "{named:?}");
    assert!(!listed.contains("hunter2"), "{listed}");
}

#[test]
fn a_context_and_the_address_of_another_server_are_rejected_before_a_call() {
    let (server, config) = (server(), tempdir().unwrap());
    let endpoint = server.endpoint();
    let set = [
        "context",
        "set",
        "dev",
        "--endpoint",
        "127.0.0.1:1",
        "--account",
        "other",
        "--sas",
        "sv=1&sig=x",
    ];
    assert_eq!(Ended::of(with(config.path(), &set)).code, Some(0));

    let by_arguments = ["table", "list", "--context", "dev", "--endpoint", &endpoint];
    let by_arguments = Ended::of(with(config.path(), &by_arguments));
    let mut by_variables = with(config.path(), &["table", "list"]);
    by_variables.envs([("TRESTLE_CONTEXT", "dev"), ("TRESTLE_ENDPOINT", &*endpoint)]);
    let by_variables = Ended::of(by_variables);

    for (ended, names) in [
        (by_arguments, "--endpoint and --context"),
        (by_variables, "TRESTLE_ENDPOINT and TRESTLE_CONTEXT"),
    ] {
        assert_eq!(ended.code, Some(2), "{ended:?}");
        assert!(ended.errors.contains(&format!("{names} name two servers")), "{ended:?}");
    }
    let same = ["table", "list", "--context", "dev", "--endpoint", "127.0.0.1:1"];
    assert_eq!(Ended::of(with(config.path(), &same)).code, Some(5), "the server of the context");
}

#[test]
fn a_context_has_content_and_the_end_of_the_current_one_is_reported() {
    let config = tempdir().unwrap();
    let run = |args: &[&str]| Ended::of(with(config.path(), args));

    for (args, rule) in [
        (&["context", "set", "none"][..], "nothing to store: give --endpoint"),
        (&["context", "set", "bad", "--sas", "sv=1"], "--sas: must be a signature"),
    ] {
        let rejected = run(args);
        assert_eq!(rejected.code, Some(2), "{rejected:?}");
        assert!(rejected.errors.contains(rule), "{rejected:?}");
    }
    let development = ["--connection-string", "UseDevelopmentStorage=true"];
    let set = ["context", "set", "dev", "--endpoint", "127.0.0.1:1"];
    assert_eq!(run(&[&set[..], &development].concat()).code, Some(0));
    assert!(run(&["context", "list", "-o", "csv"]).output.contains(",devstoreaccount1,"));
    let deleted = run(&["context", "delete", "dev"]);
    assert!(deleted.errors.contains("trestle context use"), "{deleted:?}");
}

#[test]
fn a_context_with_a_file_that_cannot_be_used_is_not_stored() {
    let config = tempdir().unwrap();
    let run = |args: &[&str]| Ended::of(with(config.path(), args));
    let (absent, other) = (config.path().join("absent"), config.path().join("other"));
    fs::write(&other, "neither a key nor a signature").unwrap();
    let (absent, other) = (absent.to_str().unwrap(), other.to_str().unwrap());

    for (flag, file, endpoint) in [
        ("--account-key-file", absent, "127.0.0.1:1"),
        ("--account-key-file", other, "127.0.0.1:1"),
        ("--sas-file", absent, "127.0.0.1:1"),
        ("--sas-file", other, "127.0.0.1:1"),
        ("--ca-file", absent, "https://127.0.0.1:1"),
        ("--key-file", absent, "https://127.0.0.1:1"),
    ] {
        let set =
            ["context", "set", "dev", "--endpoint", endpoint, "--account", "acme", flag, file];
        let rejected = run(&set);

        assert_eq!(rejected.code, Some(2), "{flag}: {rejected:?}");
        assert!(rejected.errors.contains(file), "{flag}: {rejected:?}");
    }
    assert_eq!(run(&["context", "list"]).output.lines().count(), 1, "nothing is stored");
}

#[test]
fn the_name_of_a_context_is_one_word_and_the_first_one_becomes_current() {
    let config = tempdir().unwrap();
    let set = |name: &str, more: &[&str]| {
        let args = ["context", "set", "--endpoint", "127.0.0.1:1"];
        Ended::of(with(config.path(), &[&args[..], more, &["--", name]].concat()))
    };

    for name in ["", "a b", "a\tb", "-a"] {
        let rejected = set(name, &[]);
        assert_eq!(rejected.code, Some(2), "{name:?}: {rejected:?}");
        assert!(rejected.errors.contains("no spaces"), "{name:?}: {rejected:?}");
    }
    let (first, second, object) = (set("a", &[]), set("b", &[]), set("c", &["-o", "jsonl"]));

    assert_eq!(first.output, "stored context a; it is now the current one\n");
    assert_eq!(second.output, "stored context b\n");
    assert_eq!(object.output, "{\"context\":\"c\",\"stored\":true,\"current\":false}\n");
}

#[test]
fn a_key_that_no_context_has_is_an_error_with_its_line_and_the_known_keys() {
    let config = tempdir().unwrap();
    let folder = config.path().join("trestle");
    fs::create_dir(&folder).unwrap();
    fs::write(folder.join("client.toml"), "[contexts.dev]\nendpont = \"127.0.0.1:1\"\n").unwrap();

    let rejected = Ended::of(with(config.path(), &["context", "list"]));

    assert_eq!(rejected.code, Some(2), "{rejected:?}");
    let text = "trestle/client.toml:2: contexts.dev.endpont: unknown key, must be one of account,";
    assert!(rejected.errors.contains(text), "{rejected:?}");
}
