//! Addresses that are malformed, or of another listener than gRPC.

use std::fs;

use trestle_tests::{CertificateAuthority, Server};

use crate::client::{Ended, bare};

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
        ("127.0.0.1:99999", "port must be 1 to 65535: value=`127.0.0.1:99999`"),
        ("host:0", "port must be 1 to 65535: value=`host:0`"),
        ("ftp://127.0.0.1", "must be HOST:PORT, or begin with http:// or https://"),
        ("not an address", "must be an address such as 127.0.0.1:50051"),
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

    for (listener, what) in [
        ("admin", "metrics and probes are served there"),
        ("azure_table", "clients of Azure Storage are served there"),
        ("azure_queue", "clients of Azure Storage are served there"),
    ] {
        let endpoint = format!("http://{}", server.address(listener));
        let listed = list(&endpoint, &[]);
        assert_eq!(listed.code, Some(6), "{listener}: {listed:?}");
        let whole = format!(
            "error: {endpoint} is not the address of gRPC: {what}; give the address of gRPC with \
             --endpoint\n"
        );
        assert_eq!(listed.errors, whole, "{listener}");
        let encrypted = list(&endpoint.replace("http:", "https:"), &[]);
        assert_eq!(encrypted.errors, whole.replacen("http:", "https:", 1), "{listener}");
        let checked = Ended::of(bare(&["healthcheck", "--endpoint", &endpoint]));
        assert_eq!(checked.code, Some(1), "{listener}: {checked:?}");
        assert_eq!(checked.errors, whole, "{listener}");
    }
    let right = list(&server.endpoint(), &[]);
    assert_eq!(right.code, Some(0), "{right:?}");
}

#[test]
fn a_key_in_plain_text_to_another_host_is_a_warning_before_the_call() {
    let key = "dGhlIGtleSBvZiBhbiBhY2NvdW50IG9mIGEgdGVzdCE=";
    let server = Server::start(&["--ephemeral"], &[("TRESTLE__ACCOUNTS__ACME__KEY1", key)]);
    let port = server.address("grpc").rsplit_once(':').unwrap().1.to_owned();
    let listed = |host: &str, variables: &[(&str, &str)], more: &[&str]| {
        let endpoint = format!("http://{host}:{port}");
        let mut command = bare(&[&["table", "list", "--endpoint", &endpoint], more].concat());
        command.envs(variables.iter().copied());
        Ended::of(command)
    };
    let owner = [("TRESTLE_ACCOUNT", "acme"), ("TRESTLE_ACCOUNT_KEY", key)];
    let warning = "warning: the key of the account is sent in plain text";

    // An address of this machine that is no loopback address by its text.
    let exposed = listed("0.0.0.0", &owner, &[]);
    let local = listed("127.0.0.1", &owner, &[]);
    let signed = listed("0.0.0.0", &[("TRESTLE_SAS", "sv=2019-02-02&sig=x")], &[]);
    let public = listed("0.0.0.0", &[("TRESTLE_ACCOUNT", "devstoreaccount1")], &[]);

    assert_eq!((exposed.code, local.code), (Some(0), Some(0)), "{exposed:?} {local:?}");
    assert_eq!(exposed.errors.matches(warning).count(), 1, "{exposed:?}");
    let endpoint = format!("endpoint=`http://0.0.0.0:{port}`");
    assert!(exposed.errors.contains(&endpoint) && !exposed.errors.contains(key), "{exposed:?}");
    for without in [local, signed, public] {
        assert!(!without.errors.contains("warning"), "{without:?}");
    }
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

    assert_eq!(too_plain.code, Some(6), "{too_plain:?}");
    let address = encrypted.address("grpc");
    let whole = format!("error: the server at {address} uses TLS: use https://{address}\n");
    assert_eq!(too_plain.errors, whole);
    assert_eq!(too_much.code, Some(6), "{too_much:?}");
    let address = plain.address("grpc");
    let whole =
        format!("error: the server at {address} uses plain text, not TLS: use http://{address}\n");
    assert_eq!(too_much.errors, whole);
    assert_eq!(right.code, Some(0), "{right:?}");
}

#[test]
fn reports_that_an_encrypted_address_is_not_the_grpc_listener() {
    let authority = CertificateAuthority::new("ours");
    let issued = authority.issue("127.0.0.1");
    let server = Server::start(&["--ephemeral"], &issued.settings());
    let trusted = authority.file();
    let trusted = ["--ca-file", trusted.to_str().unwrap()];

    for listener in ["azure_table", "azure_queue"] {
        let endpoint = format!("https://{}", server.address(listener));
        let whole = format!(
            "error: {endpoint} is not the address of gRPC: clients of Azure Storage are served there; give the \
             address of gRPC with --endpoint\n"
        );
        let listed = list(&endpoint, &trusted);
        assert_eq!((listed.code, listed.errors), (Some(6), whole.clone()), "{listener}");
        let check = ["healthcheck", "--endpoint", &endpoint];
        assert_eq!(Ended::of(bare(&[&check[..], &trusted].concat())).errors, whole, "{listener}");
    }
}

#[test]
fn a_healthcheck_with_a_configuration_checks_its_server() {
    let (server, folder) = (Server::start(&["--ephemeral"], &[]), tempfile::tempdir().unwrap());
    let file = folder.path().join("trestle.toml");
    fs::write(&file, "[server]\nlisten = \"127.0.0.1:1\"\n").unwrap();
    let check = |args: &[&str]| {
        let mut command = bare(&[&["healthcheck"], args].concat());
        command.env("TRESTLE_ENDPOINT", server.endpoint());
        Ended::of(command)
    };
    let config = ["--config", file.to_str().unwrap()];

    let of_file = check(&config);
    let of_flag = check(&[&config[..], &["--endpoint", &server.endpoint()]].concat());

    assert_eq!(of_file.code, Some(1), "{of_file:?}");
    assert!(of_file.errors.contains("127.0.0.1:1"), "{of_file:?}");
    assert_eq!((check(&[]).code, of_flag.code), (Some(0), Some(0)));
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

    assert_eq!(without.code, Some(6), "{without:?}");
    for text in ["the TLS handshake with", "nothing was written", "--cert-file"] {
        assert!(without.errors.contains(text), "{text}: {without:?}");
    }
    assert!(fs::metadata(&issued.certificate).is_ok());
}

#[test]
fn a_host_and_a_port_are_an_address() {
    let server = Server::start(&["--ephemeral"], &[]);

    let listed = list(&server.address("grpc"), &[]);

    assert_eq!(listed.code, Some(0), "{listed:?}");
}

#[test]
fn a_certificate_is_checked_against_the_authorities_of_the_system() {
    let (ours, theirs) = (CertificateAuthority::new("ours"), CertificateAuthority::new("theirs"));
    let server = Server::start(&["--ephemeral"], &ours.issue("127.0.0.1").settings());
    let endpoint = format!("https://{}", server.address("grpc"));
    let with_system = |authority: &CertificateAuthority, more: &[&str]| {
        let mut command = bare(&[&["table", "list", "--endpoint", &endpoint][..], more].concat());
        // The file of the system, as OpenSSL and rustls find it.
        command.env("SSL_CERT_FILE", authority.file());
        Ended::of(command)
    };

    let trusted = with_system(&ours, &[]);
    let unknown = with_system(&theirs, &[]);
    let misnamed = with_system(&ours, &["--server-name", "elsewhere"]);

    assert_eq!(trusted.code, Some(0), "{trusted:?}");
    for (rejected, remedy) in [(unknown, "--ca-file"), (misnamed, "--server-name")] {
        assert_eq!(rejected.code, Some(6), "{rejected:?}");
        let first = rejected.errors.lines().next().unwrap();
        assert!(first.contains("nothing was written") && first.contains(remedy), "{rejected:?}");
    }
}

#[test]
fn a_connection_string_with_endpoints_of_rest_needs_an_endpoint_of_grpc() {
    let server = Server::start(&["--ephemeral"], &[]);
    let text = "AccountName=devstoreaccount1;TableEndpoint=http://127.0.0.1:10002/devstoreaccount1";
    let run = |more: &[&str]| {
        let connection = ["table", "list", "--connection-string", text];
        Ended::of(bare(&[&connection[..], more].concat()))
    };

    let refused = run(&[]);
    let complete = run(&["--endpoint", &server.address("grpc")]);

    assert_eq!(refused.code, Some(2), "{refused:?}");
    assert!(refused.errors.contains("TableEndpoint") && refused.errors.contains("--endpoint"));
    assert_eq!(complete.code, Some(0), "{complete:?}");
}
