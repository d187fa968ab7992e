//! Addresses that are malformed, or of another listener than gRPC.

use std::fs;

use trestle_tests::{CertificateAuthority, Server};

use crate::client::{Ended, bare};

const HINT: &str = "is this the gRPC address of the server?";

fn list(endpoint: &str, more: &[&str]) -> Ended {
    Ended::of(bare(&[&["table", "list", "--endpoint", endpoint][..], more].concat()))
}

#[test]
fn rejects_a_malformed_address_with_its_rule_and_source() {
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
        for rejected in [Ended::of(command), list(endpoint, &[])] {
            assert_eq!(rejected.code, Some(2), "{endpoint}: {rejected:?}");
            assert!(rejected.errors.contains(rule), "{endpoint}: {rejected:?}");
            let named = "--endpoint (TRESTLE_ENDPOINT)";
            assert!(rejected.errors.contains(named), "{endpoint}: {rejected:?}");
            assert!(!rejected.errors.contains("hunter2"), "{rejected:?}");
        }
    }
}

#[test]
fn reports_that_an_address_is_not_the_grpc_listener() {
    let server = Server::start(&["--ephemeral"], &[]);

    for listener in ["admin", "azure_table", "azure_queue"] {
        let listed = list(&format!("http://{}", server.address(listener)), &[]);
        assert_ne!(listed.code, Some(0), "{listener}: {listed:?}");
        assert!(listed.errors.contains(HINT), "{listener}: {listed:?}");
    }
    let right = list(&server.endpoint(), &[]);
    assert_eq!(right.code, Some(0), "{right:?}");
}

#[test]
fn reports_that_only_one_side_uses_tls() {
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
    let hint = "is this address encrypted? use https://";
    assert!(too_plain.errors.contains(hint), "{too_plain:?}");
    assert_eq!(too_much.code, Some(5), "{too_much:?}");
    let hint = "is this address not encrypted? use http://";
    assert!(too_much.errors.contains(hint), "{too_much:?}");
    assert_eq!(right.code, Some(0), "{right:?}");
}

#[test]
fn reports_a_missing_client_certificate_and_that_nothing_was_written() {
    let authority = CertificateAuthority::new("ours");
    let issued = authority.issue("127.0.0.1");
    let authorities = authority.file();
    let authorities = authorities.to_str().unwrap();
    let expected = [
        ("TRESTLE__TLS__CLIENT_CERTIFICATES", "required"),
        ("TRESTLE__TLS__CLIENT_CA_FILE", authorities),
    ];
    let settings = [&issued.settings()[..], &expected].concat();
    let server = Server::start(&["--ephemeral"], &settings);
    let endpoint = format!("https://{}", server.address("grpc"));

    let without = list(&endpoint, &["--ca-file", authorities]);

    assert_eq!(without.code, Some(5), "{without:?}");
    for text in ["the TLS handshake failed", "nothing was written", "--cert-file"] {
        assert!(without.errors.contains(text), "{text}: {without:?}");
    }
    assert!(fs::metadata(&issued.certificate).is_ok());
}
