//! Sources that a caller may read in part, that are another account of the target, and that are encrypted.

use trestle_tests::CertificateAuthority;

use super::*;

const KEY: &str = "a2V5IG9mIGFuIGFjY291bnQgb2YgdGhpcnR5LXR3byBieXRlcw==";

/// A file with a text.
fn file(folder: &Path, name: &str, text: &str) -> String {
    let path = folder.join(name);
    fs::write(&path, text).unwrap();
    path.to_str().unwrap().to_owned()
}

#[test]
fn what_a_signature_may_not_read_is_named_and_the_rest_is_copied() {
    let pair = Pair::new();
    let Pair { source, server, folder, .. } = &pair;
    let _workspace = fill(source, folder.path());
    let sign = ["sas", "account", "--services", "tqb", "--permissions", "rl", "--expiry", "1h"];
    let signed = Ended::of(bare(&[&sign[..], &["--account", "devstoreaccount1"]].concat()));
    assert_eq!(signed.code, Some(0), "{signed:?}");
    let signature = file(folder.path(), "signature", &signed.output);

    let ended = pair.run(&["--source-sas-file", &signature]);

    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert!(!ended.errors.contains("sig="), "{ended:?}");
    let found = lines(&ended.output);
    let is_named = |whose: &str, which: &str| {
        found.iter().any(|line| line["not_copied"] == whose && line["which"] == which)
    };
    for (whose, which) in [
        ("table `Orders`", "access policies"),
        ("queue `jobs`", "access policies"),
        ("container `docs`", "access policies"),
        ("container `docs`", "tags"),
    ] {
        assert!(is_named(whose, which), "{whose}, {which}: {found:?}");
    }
    let exported = |server| succeeds(server, &["table", "export", "orders", "-"]);
    assert_eq!(exported(server), exported(source));
    assert_eq!(messages(server, "jobs"), messages(source, "jobs"));
    let listed = |server| lines(&succeeds(server, &["blob", "ls", "docs", "--json"])).len();
    assert_eq!((listed(server), listed(source)), (6, 6));
    let policies = succeeds(server, &["table", "policy", "list", "orders", "--json"]);
    assert_eq!(policies, "");
}

#[test]
fn another_account_of_the_same_server_is_a_source_under_the_same_names() {
    let (data, folder) = (tempdir().unwrap(), tempdir().unwrap());
    let settings = [
        ("TRESTLE__ACCOUNTS__ACME__KEY1", KEY),
        ("TRESTLE__GATEWAY__DEVELOPMENT_ACCOUNT", "anywhere"),
    ];
    let server = Server::start(&["--data-dir", data.path().to_str().unwrap()], &settings);
    let key = file(folder.path(), "key", KEY);
    let development = ["--account", "devstoreaccount1"];
    let acme = ["--account", "acme", "--account-key-file", &key];
    let as_acme = |args: &[&str]| run(&server, &[args, &acme].concat());
    let as_development = |args: &[&str]| run(&server, &[args, &development].concat());
    assert_eq!(as_development(&["table", "create", "orders"]).code, Some(0));
    let insert = ["entity", "insert", "orders", "-p", "p", "-r", "1", "--set", "state=open"];
    assert_eq!(as_development(&insert).code, Some(0));
    let source = arguments(&server, folder.path(), &["--source-account", "devstoreaccount1"]);
    let source: Vec<_> = source.iter().map(String::as_str).collect();

    let copied = as_acme(&source);
    let onto_itself = as_development(&source);
    let back = arguments(&server, folder.path(), &["--source-account", "acme"]);
    let with_key = format!("--source-account-key-file={key}");
    let back: Vec<_> = back.iter().map(String::as_str).chain([with_key.as_str()]).collect();
    let filled = as_development(&back);
    let replaced = as_development(&[&back[..], &["--into-existing"]].concat());

    assert_eq!(copied.code, Some(0), "{copied:?}");
    let found = as_acme(&["entity", "get", "orders", "p", "1", "--json"]);
    assert!(found.output.contains("\"state\":\"open\""), "{found:?}");
    assert_eq!(onto_itself.code, Some(2), "{onto_itself:?}");
    assert!(onto_itself.errors.contains("one account of one server"), "{onto_itself:?}");
    assert_eq!(filled.code, Some(2), "{filled:?}");
    assert!(filled.errors.contains("targets are not empty: table `orders`"), "{filled:?}");
    assert_eq!(replaced.code, Some(0), "{replaced:?}");
}

#[test]
fn a_source_is_read_over_tls_with_a_trusted_ca() {
    let (source_data, data, folder) = (tempdir().unwrap(), tempdir().unwrap(), tempdir().unwrap());
    let plain = start(&source_data);
    succeeds(&plain, &["table", "create", "orders"]);
    assert_eq!(plain.terminate(), Some(0));
    let authority = CertificateAuthority::new("of the source");
    let issued = authority.issue("127.0.0.1");
    let data_dir = source_data.path().to_str().unwrap();
    let source = Server::start(&["--data-dir", data_dir], &issued.settings());
    let server = start(&data);
    let address = format!("https://{}", source.address("grpc"));
    let checkpoint = format!("--checkpoint={}", folder.path().join("checkpoint").display());
    let import = |ca: &Path| {
        let ca = format!("--source-ca-file={}", ca.display());
        run(&server, &["import", "trestle", &address, &checkpoint, &ca, "--json"])
    };

    let other = import(&CertificateAuthority::new("of another owner").file());
    let plain = source.address("grpc");
    let unencrypted = run(&server, &["import", "trestle", &format!("http://{plain}"), &checkpoint]);
    let trusted = import(&authority.file());

    assert_eq!(other.code, Some(6), "{other:?}");
    assert!(other.errors.contains(&address), "{other:?}");
    assert_eq!(unencrypted.code, Some(6), "{unencrypted:?}");
    assert!(unencrypted.errors.contains(&plain), "the address of the source: {unencrypted:?}");
    assert_eq!(trusted.code, Some(0), "{trusted:?}");
    assert!(succeeds(&server, &["table", "list"]).contains("orders"));
}
