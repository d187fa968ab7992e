//! Accounts in hosts and in paths.

use proptest::prelude::*;

use super::*;

fn parse(host: &str, path: &str) -> Option<(String, bool, String)> {
    let path = path.split('?').next().unwrap_or(path);
    let address = Address::of(path, host, "table")?;
    Some((address.account.into_owned(), address.is_secondary, address.path.to_owned()))
}

#[test]
fn the_account_is_the_first_segment_of_the_path() {
    for host in ["127.0.0.1:10002", "localhost", "storage.example.com", "[::1]:1", ""] {
        let found = parse(host, "/acme/Tables?x=1").expect("an account");
        assert_eq!(found, ("acme".into(), false, "/Tables".into()), "{host}");
    }
    for (path, rest) in [("/acme", "/"), ("/acme/", "/"), ("/acme//a", "//a")] {
        assert_eq!(parse("h", path).expect("an account").2, rest);
    }
    assert_eq!(parse("h", "/acme-secondary/t"), Some(("acme".into(), true, "/t".into())));
    for path in ["/", "//x", "/-secondary/x"] {
        assert_eq!(parse("h", path), None, "{path}");
    }
}

#[test]
fn a_host_whose_second_label_is_the_service_names_the_account_itself() {
    for host in ["acme.table.core.windows.net", "acme.table:10002", "acme.Table.localhost"] {
        let found = parse(host, "/Tables").expect("an account");
        assert_eq!(found, ("acme".into(), false, "/Tables".into()), "{host}");
    }
    let secondary = parse("acme-secondary.table.example.com", "/");
    assert_eq!(secondary, Some(("acme".into(), true, "/".into())));
    // Another service: the path determines the account.
    let other = parse("acme.queue.core.windows.net", "/beta/q");
    assert_eq!(other, Some(("beta".into(), false, "/q".into())));
}

#[test]
fn only_the_second_label_of_a_host_names_the_service() {
    for (host, path, account) in [
        ("acme.tables.core.windows.net", "/beta/t", "beta"),
        ("acme.example.table.net", "/beta/t", "beta"),
        ("table.localhost", "/beta/t", "beta"),
        ("acme.table", "/beta/t", "acme"),
        ("acme.TABLE:443", "/beta/t", "acme"),
    ] {
        let found = parse(host, path).expect("an account");
        assert_eq!(found.0, account, "{host}");
        let rest = if account == "acme" { path } else { "/t" };
        assert_eq!(found.2, rest, "{host}");
    }
}

#[test]
fn a_host_is_case_insensitive_and_an_account_in_a_path_is_not() {
    let of_host = parse("ACME-Secondary.table.localhost", "/t").expect("an account");
    assert_eq!(of_host, ("acme".into(), true, "/t".into()));
    let of_path = parse("localhost", "/Acme-Secondary/t").expect("an account");
    assert_eq!(of_path, ("Acme-Secondary".into(), false, "/t".into()));
}

proptest! {
    #[test]
    fn both_styles_of_an_address_are_equal(
        account in "[a-z0-9]{3,24}",
        is_secondary in any::<bool>(),
        path in "/[a-zA-Z0-9%()'=,/]{0,20}",
    ) {
        let name = if is_secondary { format!("{account}-secondary") } else { account.clone() };
        let expected = Some((account, is_secondary, path.clone()));
        prop_assert_eq!(parse(&format!("{name}.table.localhost:1"), &path), expected.clone());
        prop_assert_eq!(parse("127.0.0.1:1", &format!("/{name}{path}")), expected);
    }
}

#[test]
fn a_website_has_a_host_of_its_own_at_the_service_of_blobs() {
    let website = |host: &str, service: &str| {
        let address = Address::of("/a/b", host, service).expect("an account");
        (address.is_website, address.account.into_owned(), address.path.to_owned())
    };
    for host in ["acme.web.localhost:10000", "ACME.Web.example.com", "acme.z22.web.x", "acme.web"] {
        assert_eq!(website(host, "blob"), (true, "acme".into(), "/a/b".into()), "{host}");
    }
    let secondary = Address::of("/", "acme-secondary.web.x", "blob").expect("an account");
    assert!(secondary.is_website && secondary.is_secondary);
    for host in ["web.example.com", "acme.z.web.x", "acme.za1.web.x", "acme.z1.z2.web", "web"] {
        assert_eq!(website(host, "blob"), (false, "a".into(), "/b".into()), "{host}");
    }
    assert!(!website("acme.blob.web", "blob").0);
    assert!(!website("acme.web.example.com", "queue").0, "only blobs have websites");
}
