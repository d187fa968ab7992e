//! Generated SAS tokens.

use std::fs;

use trestle_tests::Server;

use crate::client::{Ended, bare, run, server, succeeds};

/// A server with the blobs `a b` and `b` in the container `photos`.
fn with_blobs() -> Server {
    let (server, folder) = (server(), tempfile::tempdir().unwrap());
    let file = folder.path().join("file");
    fs::write(&file, "content").unwrap();
    succeeds(&server, &["blob", "container", "create", "photos"]);
    for to in ["blob://photos/2026/a b", "blob://photos/b"] {
        succeeds(&server, &["blob", "cp", file.to_str().unwrap(), to]);
    }
    server
}

/// A signature by the development account.
fn signature(args: &[&str]) -> String {
    let account = ["--account", "devstoreaccount1"];
    let signed = Ended::of(bare(&[&["sas"][..], args, &account].concat()));
    assert_eq!(signed.code, Some(0), "{signed:?}");
    signed.output.trim().to_owned()
}

#[test]
fn a_signature_for_a_blob_is_for_no_other_blob_and_one_for_a_container_for_each() {
    let server = with_blobs();
    let terms = ["--permissions", "r", "--expiry", "1h"];
    let blob = signature(&[&["blob", "photos/2026/a b"][..], &terms].concat());
    let container = signature(&[&["container", "photos"][..], &terms].concat());
    let cat = |sas: &str, blob: &str| run(&server, &["blob", "cat", blob, "--sas", sas]);

    for (sas, path, is_granted) in [
        (&blob, "photos/2026/a b", true),
        (&blob, "photos/b", false),
        (&container, "photos/2026/a b", true),
        (&container, "photos/b", true),
    ] {
        let read = cat(sas, path);
        assert_eq!(read.code == Some(0), is_granted, "{path}: {read:?}");
        assert_eq!(read.output, if is_granted { "content" } else { "" });
    }
    let deleted = run(&server, &["blob", "rm", "photos/2026/a b", "--sas", &blob]);
    assert_eq!(deleted.code, Some(1), "{deleted:?}");
    let explain = ["sas", "explain", &blob, "--account", "devstoreaccount1", "--container"];
    let explained = Ended::of(bare(&[&explain[..], &["photos/2026/a b"]].concat()));
    assert_eq!(explained.code, Some(0), "{explained:?}");
    let unnamed = Ended::of(bare(&[&["sas", "blob", "photos"][..], &terms].concat()));
    assert_eq!(unnamed.code, Some(2), "{unnamed:?}");
    assert!(unnamed.errors.contains("must be a blob, not a container"), "{unnamed:?}");
}

#[test]
fn a_signature_of_an_account_is_for_the_services_of_its_letters() {
    let server = with_blobs();
    succeeds(&server, &["log", "create", "web"]);
    for (services, opens_blobs, opens_logs) in
        [("b", true, false), ("l", false, true), ("bl", true, true)]
    {
        let terms = ["--services", services, "--permissions", "rl", "--expiry", "1h"];
        let sas = signature(&[&["account"][..], &terms].concat());

        let blob = run(&server, &["blob", "cat", "photos/b", "--sas", &sas]);
        let streams = run(&server, &["log", "list", "--sas", &sas]);
        let explained = bare(&["sas", "explain", &sas, "--account", "devstoreaccount1"]);
        let explained = Ended::of(explained).output;

        assert_eq!(blob.code == Some(0), opens_blobs, "{services}: {blob:?}");
        assert_eq!(streams.code == Some(0), opens_logs, "{services}: {streams:?}");
        for (name, is_open) in [("blob", opens_blobs), ("log", opens_logs)] {
            let named = explained.contains(&format!("the {name} service"))
                || explained.contains(&format!("the {name} and"));
            assert_eq!(named, is_open, "{services}: {explained}");
        }
    }
}

#[test]
fn a_signature_for_a_queue_is_rejected_elsewhere_in_terms_of_commands() {
    let server = server();
    succeeds(&server, &["queue", "create", "jobs"]);
    let sas = signature(&["queue", "jobs", "--permissions", "rp", "--expiry", "1h"]);

    let listed = run(&server, &["queue", "list", "--sas", &sas]);

    assert_eq!(listed.code, Some(1), "{listed:?}");
    let text = "it is for one queue, container or blob, which this command does not name: it needs one of the account";
    assert!(listed.errors.contains(text), "{listed:?}");
    assert!(listed.errors.contains("hint: create one with `trestle sas account`"), "{listed:?}");
    assert!(!listed.errors.contains("trestle-queue"), "{listed:?}");
    succeeds(&server, &["queue", "peek", "jobs", "--sas", &sas]);
}

#[test]
fn a_policy_of_a_container_grants_until_it_is_deleted_and_keeps_public_access() {
    let server = with_blobs();
    let create = ["blob", "container", "create", "open", "--public-access", "blob"];
    succeeds(&server, &create);
    let policy = |args: &[&str]| run(&server, &[&["blob", "container", "policy"], args].concat());
    let set = ["set", "photos", "readers", "--permissions", "r", "--expiry", "1h"];
    let sas = signature(&["container", "photos", "--policy", "readers"]);
    let cat = || run(&server, &["blob", "cat", "photos/b", "--sas", &sas]).code;

    let before = cat();
    let set = policy(&set);
    let granted = cat();
    let listed = policy(&["list", "photos", "-o", "jsonl"]);
    let deleted = policy(&["delete", "photos", "readers"]);

    assert_eq!(set.output, "set policy readers of photos\n", "{set:?}");
    assert!(listed.output.contains(r#""id":"readers","permissions":"r""#), "{listed:?}");
    assert_eq!(deleted.output, "deleted policy readers of photos\n", "{deleted:?}");
    assert_eq!((before == Some(0), granted, cat() == Some(0)), (false, Some(0), false));
    assert_eq!(policy(&["delete", "photos", "readers"]).code, Some(3));
    assert_eq!(policy(&["list", "nosuch"]).code, Some(3));
    assert_eq!(policy(&["set", "open", "readers", "--permissions", "r"]).code, Some(0));
    let stat = succeeds(&server, &["blob", "container", "stat", "open", "--json"]).output;
    assert!(stat.contains(r#""public_access":"blob""#), "{stat}");
}

#[test]
fn an_expiry_may_be_a_duration_and_one_in_the_past_gets_a_warning() {
    let sign = |more: &[&str]| {
        let account = ["--account", "devstoreaccount1"];
        Ended::of(bare(&[&["sas", "table", "orders"][..], &account, more].concat()))
    };

    let later = sign(&["--permissions", "r", "--expiry", "7d"]);
    let past = sign(&["--permissions", "r", "--expiry", "2020-01-31"]);
    let never = sign(&["--permissions", "r", "--expiry", "soon"]);
    let odd = sign(&["--permissions", "rx", "--expiry", "1h"]);

    assert_eq!((later.code, later.errors.as_str()), (Some(0), ""), "{later:?}");
    assert_eq!(past.code, Some(0), "{past:?}");
    assert!(past.errors.contains("warning: --expiry is past"), "{past:?}");
    for (rejected, named) in [(never, "--expiry: must be"), (odd, "--permissions: ")] {
        assert_eq!(rejected.code, Some(2), "{rejected:?}");
        assert!(rejected.errors.contains(named), "{rejected:?}");
    }
}

#[test]
fn a_command_that_calls_no_server_takes_no_endpoint() {
    let endpoint = ["--endpoint", "127.0.0.1:1"];
    let signing: &[&str] = &["sas", "queue", "jobs", "--permissions", "r", "--expiry", "1h"];
    let explaining: &[&str] = &["sas", "explain", "sv=2024-11-04"];
    let listing: &[&str] = &["context", "list"];
    for (args, name) in [(signing, "sas"), (explaining, "sas"), (listing, "context list")] {
        let refused = Ended::of(bare(&[args, &endpoint].concat()));

        assert_eq!(refused.code, Some(2), "{refused:?}");
        let text = format!("`trestle {name}` takes no --endpoint: it calls no server");
        assert!(refused.errors.contains(&text), "{refused:?}");
    }
    let mut signed = bare(&[signing, &["--account", "devstoreaccount1"]].concat());
    signed.env("TRESTLE_ENDPOINT", "127.0.0.1:1");
    let signed = Ended::of(signed);
    assert_eq!(signed.code, Some(0), "the variable is of all commands: {signed:?}");
}
