//! Addresses that are malformed, or lead to something else than the gRPC listener.

use std::fs;

use trestle_tests::{CertificateAuthority, Server};

use crate::client::{Ended, bare};

const QUESTION: &str = "is this the gRPC address of the server?";

fn list(endpoint: &str, more: &[&str]) -> Ended {
    Ended::of(bare(&[&["table", "list", "--endpoint", endpoint][..], more].concat()))
}

#[test]
fn an_address_that_cannot_be_one_is_refused_with_its_rule_and_where_it_is_from() {
    for (endpoint, rule) in [
        ("http://127.0.0.1:99999", "port must be 1 to 65535"),
        ("http://127.0.0.1:0", "port must be 1 to 65535"),
        ("http://127.0.0.1:", "port must be 1 to 65535"),
        ("http://me:hunter2@127.0.0.1:1", "must have no user name or password"),
        ("http://127.0.0.1:1/table", "must have no path"),
        ("http://127.0.0.1:1/?a=b", "must have no path"),
        ("127.0.0.1:50051", "must begin with http:// or https://"),
        ("ftp://127.0.0.1", "must begin with http:// or https://"),
        ("not an address", "must be an address such as http://127.0.0.1:50051"),
    ] {
        let mut command = bare(&["table", "list"]);
        command.env("TRESTLE_ENDPOINT", endpoint);
        for refused in [Ended::of(command), list(endpoint, &[])] {
            assert_eq!(refused.code, Some(2), "{endpoint}: {refused:?}");
            assert!(refused.errors.contains(rule), "{endpoint}: {refused:?}");
            let named = "--endpoint (TRESTLE_ENDPOINT)";
            assert!(refused.errors.contains(named), "{endpoint}: {refused:?}");
            assert!(!refused.errors.contains("hunter2"), "{refused:?}");
        }
    }
}

#[test]
fn another_listener_of_the_server_is_recognised_as_one() {
    let server = Server::start(&["--ephemeral"], &[]);

    for listener in ["admin", "azure_table", "azure_queue"] {
        let asked = list(&format!("http://{}", server.address(listener)), &[]);
        assert_ne!(asked.code, Some(0), "{listener}: {asked:?}");
        assert!(asked.errors.contains(QUESTION), "{listener}: {asked:?}");
    }
    let right = list(&server.endpoint(), &[]);
    assert_eq!(right.code, Some(0), "{right:?}");
}

#[test]
fn encryption_that_one_side_expects_and_the_other_does_not_is_named() {
    let authority = CertificateAuthority::new("ours");
    let issued = authority.issue("127.0.0.1");
    let plain = Server::start(&["--ephemeral"], &[]);
    let encrypted = Server::start(&["--ephemeral"], &issued.settings());
    let trusted = authority.file();
    let trusted = ["--ca-file", trusted.to_str().unwrap()];

    let too_plain = list(&encrypted.endpoint(), &[]);
    let too_much = list(&format!("https://{}", plain.address("grpc")), &trusted);
    let right = list(&format!("https://{}", encrypted.address("grpc")), &trusted);

    assert_eq!(too_plain.code, Some(5), "{too_plain:?}");
    let question = "is this address encrypted? use https://";
    assert!(too_plain.errors.contains(question), "{too_plain:?}");
    assert_eq!(too_much.code, Some(5), "{too_much:?}");
    let question = "is this address not encrypted? use http://";
    assert!(too_much.errors.contains(question), "{too_much:?}");
    assert_eq!(right.code, Some(0), "{right:?}");
}

#[test]
fn a_server_that_wants_a_certificate_and_gets_none_was_sent_nothing() {
    let authority = CertificateAuthority::new("ours");
    let issued = authority.issue("127.0.0.1");
    let authorities = authority.file();
    let authorities = authorities.to_str().unwrap();
    let wanted = [
        ("TRESTLE__TLS__CLIENT_CERTIFICATES", "required"),
        ("TRESTLE__TLS__CLIENT_CA_FILE", authorities),
    ];
    let settings = [&issued.settings()[..], &wanted].concat();
    let server = Server::start(&["--ephemeral"], &settings);
    let endpoint = format!("https://{}", server.address("grpc"));

    let without = list(&endpoint, &["--ca-file", authorities]);

    assert_eq!(without.code, Some(5), "{without:?}");
    for said in ["the TLS handshake failed", "nothing was written", "--cert-file"] {
        assert!(without.errors.contains(said), "{said}: {without:?}");
    }
    assert!(fs::metadata(&issued.certificate).is_ok());
}
