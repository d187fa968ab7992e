//! Mistakes of every class at once: a mistake in the syntax, in a role or in a flag hides none of the others.

use std::fs;

use tempfile::tempdir;

use crate::client::{Ended, bare};

/// What `config check` reports with a file, flags and variables; `FILE` is the path of the file.
fn checked(text: &str, flags: &[&str], variables: &[(&str, &str)]) -> String {
    let directory = tempdir().unwrap();
    let file = directory.path().join("wrong.toml");
    fs::write(&file, text).unwrap();
    let path = file.to_str().unwrap();
    let mut check = bare(&[&["config", "check", "--config", path], flags].concat());
    check.envs(variables.iter().copied());
    let ended = Ended::of(check);
    assert_eq!(ended.code, Some(2), "{ended:?}");
    ended.errors.replace(path, "FILE")
}

/// Each report begins with one of these, and there are no others.
fn assert_reports(reported: &str, starts: &[&str]) {
    for start in starts {
        let start = format!("error: {start}");
        assert!(reported.lines().any(|line| line.starts_with(&start)), "{start}: {reported}");
    }
    let count = format!("mistakes=`{}`", starts.len());
    assert!(reported.contains(&count), "{count}: {reported}");
}

const ACCOUNTS: &str = "[accounts.acme]\nkey1 = \"zz\"\n\
                        [accounts.other]\nkey1_file = \"/nowhere/key\"\n";

#[test]
fn a_wrong_role_hides_no_mistake_of_accounts_and_files() {
    let of_accounts = ["FILE:2: accounts.acme.key1: ", "FILE:4: accounts.other.key1_file: "];
    let roles = "server.roles: must be `all`, or of `gateway`";

    let by_flag = checked(ACCOUNTS, &["--roles", "tabel"], &[]);
    let in_file = checked(&format!("{ACCOUNTS}[server]\nroles = \"tabel,queue\"\n"), &[], &[]);

    assert_reports(&by_flag, &[&format!("--roles: {roles}"), of_accounts[0], of_accounts[1]]);
    assert_reports(&in_file, &[of_accounts[0], of_accounts[1], &format!("FILE:6: {roles}")]);
}

#[test]
fn a_wrong_role_makes_no_other_mistake() {
    let alone =
        checked("", &["--roles", "tabel", "--listen", "0.0.0.0:0", "--allow-plaintext"], &[]);
    let remote = "[gateway]\ntable_endpoint = \"http://127.0.0.1:1\"\n";
    let gateway = checked(remote, &["--roles", "gatway"], &[]);

    assert_reports(&alone, &["--roles: server.roles: must be `all`"]);
    assert_reports(&gateway, &["--roles: server.roles: must be `all`"]);
}

#[test]
fn a_malformed_address_of_a_flag_hides_no_other_mistake() {
    let flags =
        ["--listen", "host:99999", "--admin", "here", "--azure-table", "there", "--roles", "tabel"];
    let reported = checked(ACCOUNTS, &flags, &[("TRESTLE__LIMITS__CALLS_MAX", "0")]);

    assert_reports(
        &reported,
        &[
            "FILE:2: accounts.acme.key1: ",
            "FILE:4: accounts.other.key1_file: ",
            "TRESTLE__LIMITS__CALLS_MAX: limits.calls_max: must be 1 to 1000000: value=`0`",
            "--roles: server.roles: must be `all`",
            "--listen: server.listen: must be an address, as in 127.0.0.1:50051: value=`host:99999`",
            "--admin: server.admin: must be an address, as in 127.0.0.1:50051: value=`here`",
            "--azure-table: server.azure_table: must be an address, as in 127.0.0.1:10002, or `off`: value=`there`",
        ],
    );
}

#[test]
fn a_missing_partner_hides_no_missing_file() {
    for (text, partner) in [
        ("[tls]\ncert_file = \"/nowhere/file\"\n", "tls.key_file: required, since tls.cert_file"),
        ("[tls]\nkey_file = \"/nowhere/file\"\n", "tls.cert_file: required, since tls.key_file"),
        (
            "[tls]\nclient_ca_file = \"/nowhere/file\"\n",
            "tls.client_ca_file: of no use while tls.client_certificates is off",
        ),
    ] {
        let reported = checked(text, &[], &[]);
        let key = text.split(['\n', ' ']).nth(1).unwrap();
        let missing = format!("FILE:2: tls.{key}: ");

        assert_reports(&reported, &[&format!("FILE:2: {partner}"), &missing]);
        assert!(reported.contains("file=`/nowhere/file`, cannot be read"), "{reported}");
    }
    let account = "[accounts.acme]\nkey1 = \"zz\"\nkey1_file = \"/nowhere/key\"\n";
    let both = "FILE:2: accounts.acme.key1: must not be set together with key1_file";
    let key = "FILE:2: accounts.acme.key1: ";
    let of_account = checked(account, &[], &[]);
    assert_reports(&of_account, &[both, key, "FILE:3: accounts.acme.key1_file: "]);
    let endpoint = "[gateway]\ntable_endpoint = \"nowhere\"\nqueue_endpoint = \"http://127.0.0.1:1\"\n\
                    [gateway.tls]\nca_file = \"/nowhere/ca\"\n";
    let of_gateway = checked(endpoint, &["--roles", "gateway"], &[]);
    assert!(of_gateway.contains("FILE:5: gateway.tls.ca_file: cannot be read"), "{of_gateway}");
}

#[test]
fn the_syntax_of_the_file_hides_no_mistake_of_variables_and_flags() {
    let flags = ["--roles", "tabel", "--admin", "here"];
    let variables = [
        ("TRESTLE__LIMITS__CALLS_MAX", "0"),
        ("TRESTLE__LIMITS__CALLS_MIN", "1"),
        ("TRESTLE__ACCOUNTS__ACME__KEY1_FILE", "/nowhere/key"),
        ("TRESTLE__TLS__CERT_FILE", "/nowhere/cert.pem"),
    ];
    let others = [
        "TRESTLE__LIMITS__CALLS_MAX: limits.calls_max: must be 1 to 1000000: value=`0`",
        "TRESTLE__LIMITS__CALLS_MIN: limits.calls_min: unknown key",
        "TRESTLE__ACCOUNTS__ACME__KEY1_FILE: accounts.acme.key1_file: ",
        "TRESTLE__TLS__CERT_FILE: tls.cert_file: certificate: file=`/nowhere/cert.pem`",
        "--roles: server.roles: must be `all`",
        "--admin: server.admin: must be an address",
    ];

    // The rest of the file may have what is missing, such as the key of the certificate.
    let broken = checked("[server]\nlisten 127.0.0.1\n", &flags, &variables);
    let missing = bare(&[&["config", "check", "--config", "/nowhere/a.toml"], &flags[..]].concat());
    let missing = Ended::of({
        let mut missing = missing;
        missing.envs(variables);
        missing
    });

    assert_reports(&broken, &[&["FILE:2: "][..], &others].concat());
    let unread = "configuration file cannot be read: path=`/nowhere/a.toml`: No such file";
    assert_reports(&missing.errors, &[&[unread][..], &others].concat());
}

#[test]
fn a_file_that_cannot_be_read_has_the_accounts_that_seem_to_be_missing() {
    let reported = checked("[server\n", &["--listen", "0.0.0.0:0", "--allow-plaintext"], &[]);

    assert_reports(&reported, &["FILE:1: "]);
}

#[test]
fn a_malformed_value_makes_no_other_mistake() {
    let text = "[tls]\nclient_certificates = \"maybe\"\nclient_ca_file = \"/nowhere/ca\"\n";

    let reported = checked(text, &[], &[]);

    assert_reports(
        &reported,
        &["FILE:2: tls.client_certificates: must be one of", "FILE:3: tls.client_ca_file: client"],
    );
}

#[test]
fn a_key_that_is_written_twice_hides_no_other_mistake() {
    let text = "[limits]\ncalls_max = 0\ncalls_max = 5\nnone = 1\n[limits]\n[storage]\ncache_bytes = \"x\"\n";

    let reported = checked(text, &[], &[("TRESTLE__LIMITS__CALLS_MIN", "none")]);

    let starts = [
        "FILE:2: limits.calls_max: ",
        "FILE:3: duplicate key: key=`calls_max`",
        "FILE:4: limits.none: unknown key",
        "FILE:5: duplicate key: key=`limits`",
        "FILE:7: storage.cache_bytes: ",
        "TRESTLE__LIMITS__CALLS_MIN: ",
    ];
    assert_reports(&reported, &starts);
}

#[test]
fn variables_that_differ_in_case_only_are_a_mistake_that_names_both() {
    let variables =
        [("TRESTLE__STORAGE__DATA_DIR", "/srv/a"), ("trestle__storage__data_dir", "/srv/b")];
    let mistake = "TRESTLE__STORAGE__DATA_DIR and trestle__storage__data_dir: set the same key, remove all but one";

    let reported = checked("", &[], &variables);

    assert_reports(&reported, &[mistake]);
    let mut print = bare(&["config", "print"]);
    print.envs(variables);
    let printed = Ended::of(print);
    assert_eq!(printed.code, Some(2), "{printed:?}");
    assert!(printed.errors.contains(mistake), "{printed:?}");
}

#[test]
fn a_mistake_of_a_flag_is_not_one_of_the_file() {
    let of_flag = checked("", &["--listen", "here"], &[]);
    let of_both = checked("[limits]\ncalls_max = 0\n", &["--listen", "here"], &[]);

    assert!(of_flag.contains("error: --listen: server.listen: ") && !of_flag.contains("FILE"));
    assert!(of_both.contains("mistakes=`2`, file=`FILE`"), "{of_both}");
}
