//! Generated SAS tokens.

use crate::client::{Ended, bare};

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
