//! The certificates of a command: files that are incomplete, and their precedence.

use std::fs;

use super::*;

fn args(ca: &str, name: &str, cert: &str, key: &str) -> TlsArgs {
    let text = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
    TlsArgs {
        ca_file: text(ca).map(PathBuf::from),
        server_name: text(name),
        cert_file: text(cert).map(PathBuf::from),
        key_file: text(key).map(PathBuf::from),
    }
}

fn usage(result: Result<impl Sized, CliError>) -> String {
    match result.err() {
        Some(CliError::Usage(text)) => text,
        other => panic!("no usage error: {other:?}"),
    }
}

#[test]
fn each_setting_of_the_command_line_precedes_that_of_the_context() {
    let merged = args("a", "", "c", "").or(args("x", "y", "z", "k"));

    assert_eq!(format!("{merged:?}"), format!("{:?}", args("a", "y", "c", "k")));
}

#[test]
fn any_setting_makes_a_connection_encrypted() {
    assert!(!TlsArgs::default().is_given());
    let each = [args("a", "", "", ""), args("", "a", "", ""), args("", "", "a", "")];
    for given in each.into_iter().chain([args("", "", "", "a")]) {
        assert!(given.is_given(), "{given:?}");
    }
}

#[test]
fn a_certificate_and_its_key_need_each_other() {
    for given in [args("", "", "cert.pem", ""), args("", "", "", "key.pem")] {
        let rule = usage(given.config());
        assert!(rule.contains("--cert-file and --key-file need each other"), "{rule}");
    }
}

#[test]
fn rejects_files_without_certificates_before_any_connection() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("ca.pem");
    let path = file.to_str().unwrap();
    let damaged = "-----BEGIN CERTIFICATE-----\n*\n-----END CERTIFICATE-----\n";
    for content in ["", "no PEM", "-----BEGIN CERTIFICATE-----\n", damaged] {
        fs::write(&file, content).unwrap();

        let rule = usage(args(path, "", "", "").config());
        assert!(rule.contains("has no certificates in PEM") && rule.contains(path), "{rule}");
        assert!(args(path, "", "", "").probe().is_none(), "{content}");
        assert_eq!(usage(public_tls_config(Some(&file), true)), rule);
        assert!(public_tls_config(Some(&file), false).is_ok(), "TLS is not used");
    }
    let missing = usage(args("/nowhere/ca.pem", "", "", "").config());
    assert!(missing.contains("cannot read `/nowhere/ca.pem`"), "{missing}");
}

#[test]
fn relative_files_are_stored_as_absolute_ones() {
    let absolute = args("ca", "name", "cert", "/key").absolute().unwrap();

    let here = std::env::current_dir().unwrap();
    assert_eq!(absolute.ca_file, Some(here.join("ca")));
    assert_eq!(absolute.cert_file, Some(here.join("cert")));
    assert_eq!(absolute.key_file, Some(PathBuf::from("/key")));
    assert_eq!(absolute.server_name.as_deref(), Some("name"));
}

#[test]
fn a_file_may_begin_with_a_byte_order_mark() {
    let file = tempfile::NamedTempFile::new().unwrap();
    fs::write(file.path(), "\u{feff}-----BEGIN CERTIFICATE-----\n").unwrap();

    assert_eq!(read(file.path()).unwrap(), b"-----BEGIN CERTIFICATE-----\n");
}
