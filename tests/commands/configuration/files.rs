//! Files that the configuration names.

use super::*;

#[test]
fn a_start_reports_every_file_that_cannot_be_used() {
    let files = [("CERT", "/nowhere/cert.pem"), ("KEY", "/nowhere/key.pem")];
    let files = files.map(|(name, file)| (format!("TRESTLE__TLS__{name}_FILE"), file));
    let mut serve = bare(&["serve", "--ephemeral", "--listen", "127.0.0.1:0"]);
    serve.envs(files);

    let ended = Ended::of(serve);

    assert_eq!(ended.code, Some(2), "{ended:?}");
    for key in ["cert_file", "key_file"] {
        let variable = format!("TRESTLE__TLS__{}", key.to_uppercase());
        let start = format!("error: {variable}: tls.{key}: ");
        assert!(ended.errors.lines().any(|line| line.starts_with(&start)), "{key}: {ended:?}");
    }
    assert!(ended.errors.contains("mistakes=`2`"), "{ended:?}");
}

#[test]
fn every_file_that_cannot_be_used_is_a_mistake() {
    let directory = tempdir().unwrap();
    let (file, empty) = (directory.path().join("wrong.toml"), directory.path().join("empty.pem"));
    fs::write(&empty, "").unwrap();
    let of_listeners = format!(
        "[tls]\ncert_file = \"/nowhere/cert.pem\"\nkey_file = \"/nowhere/key.pem\"\n\
         client_ca_file = \"{}\"\nclient_certificates = \"required\"\n",
        empty.display()
    );
    let of_accounts = "[accounts.acme]\nkey1_file = \"/nowhere/key1\"\n";
    fs::write(&file, format!("{of_listeners}{of_accounts}")).unwrap();
    let arguments = ["--config", file.to_str().unwrap(), "--ephemeral"];

    let checked = Ended::of(bare(&[&["config", "check"][..], &arguments].concat()));

    assert_eq!(checked.code, Some(2), "{checked:?}");
    for (line, problem) in [
        (2, "tls.cert_file: certificate: file=`/nowhere/cert.pem`, cannot be read: "),
        (3, "tls.key_file: private key: file=`/nowhere/key.pem`, cannot be read: "),
        (4, "tls.client_ca_file: client authorities: file=`"),
        (7, "accounts.acme.key1_file: "),
    ] {
        let text = format!("error: {}:{line}: {problem}", file.display());
        assert!(checked.errors.contains(&text), "{text}: {checked:?}");
    }
    assert!(checked.errors.contains("mistakes=`4`"), "{checked:?}");
}

#[test]
fn a_mistake_in_the_syntax_has_its_line_and_a_valid_file_is_named() {
    let directory = tempdir().unwrap();
    fs::write(directory.path().join("trestle.toml"), "[server]\nlisten 127.0.0.1\n").unwrap();

    let broken = Ended::of(at(directory.path(), &["config", "check"]));
    fs::write(directory.path().join("trestle.toml"), "[storage]\nephemeral = true\n").unwrap();
    let valid = Ended::of(at(directory.path(), &["config", "check"]));

    assert_eq!(broken.code, Some(2), "{broken:?}");
    assert!(broken.errors.contains("error: ./trestle.toml:2: "), "{broken:?}");
    assert_eq!(valid.code, Some(0), "{valid:?}");
    assert_eq!(valid.output, "the configuration is valid: ./trestle.toml\n");
}
