use super::*;

fn rule(address: &str) -> String {
    PostgresAddress::parse(address).unwrap_err().to_string()
}

#[test]
fn addresses_are_those_of_psql_and_are_shown_without_secrets() {
    let address = "postgres://trestle:hunter2@db1,db2:5433/store?sslmode=verify-full";
    let parsed = PostgresAddress::parse(address).unwrap();
    assert_eq!(parsed.shown(), "postgres://db1:5432,db2:5433/store");
    assert_eq!(format!("{parsed:?}"), parsed.shown());
    assert_eq!(parsed.config.get_ssl_mode(), SslMode::Require);
    let hosts = parsed.hosts();
    let ports: Vec<_> = hosts.iter().map(|host| host.get_ports().to_vec()).collect();
    assert_eq!(ports, [[5432], [5433]]);
    for host in &hosts {
        assert_eq!(host.get_target_session_attrs(), TargetSessionAttrs::ReadWrite);
        assert_eq!((host.get_hosts().len(), host.get_user()), (1, Some("trestle")));
        assert_eq!(
            (host.get_password(), host.get_dbname()),
            (Some(&b"hunter2"[..]), Some("store"))
        );
    }
    assert_eq!(parsed.config.get_password(), Some(&b"hunter2"[..]));

    let other = parsed.clone().with_password("from a file");
    assert!(parsed.has_password() && other.has_password());
    assert_eq!(other.config.get_password(), Some(&b"from a file"[..]));
}

#[test]
fn tls_is_required_unless_the_server_is_this_machine_or_the_address_says_otherwise() {
    for (address, mode) in [
        ("postgres://db/store", SslMode::Require),
        ("postgres://localhost/store", SslMode::Disable),
        ("postgres://127.0.0.1,[::1]/store", SslMode::Disable),
        ("postgres://127.0.0.1,db/store", SslMode::Require),
        ("postgres://%2Frun%2Fpostgresql/store", SslMode::Disable),
        ("postgres://db/store?sslmode=disable", SslMode::Disable),
        ("postgres://localhost/store?sslmode=require", SslMode::Require),
        ("postgres://localhost/store?hostaddr=192.0.2.1", SslMode::Require),
    ] {
        let parsed = PostgresAddress::parse(address).unwrap();
        assert_eq!(parsed.config.get_ssl_mode(), mode, "{address}");
    }
}

#[test]
fn a_wrong_address_is_named_by_its_rule_and_not_by_its_password() {
    for (address, expected) in [
        ("mysql://db/store", "must begin with postgres://"),
        ("postgres:///store", "must name a host"),
        ("postgres://db", "must name a database"),
        ("postgres://u:hunter2@db:port/store", "port"),
        ("postgres://u:hunter2@db/store?nothing=1", "nothing"),
        ("postgres://db/store?sslrootcert=/absent.pem", "file=`/absent.pem`"),
    ] {
        let found = rule(address);
        assert!(found.contains(expected) && !found.contains("hunter2"), "{address}: {found}");
    }
}

#[test]
fn certificates_of_a_file_are_the_only_ones() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("root.pem");
    std::fs::write(&file, "no certificate").unwrap();
    let address = format!("postgres://db/store?sslrootcert={}", file.display());
    assert!(rule(&address).contains("it has no certificate"), "{}", rule(&address));
}

#[test]
fn certificates_of_the_system_are_read_for_the_first_connection_that_is_encrypted() {
    let here = PostgresAddress::parse("postgres://localhost/store").unwrap();
    here.tls().unwrap();
    assert!(LazyLock::get(&SYSTEM_ROOTS).is_none(), "nothing is verified");

    let other = PostgresAddress::parse("postgres://db/store").unwrap();
    let clone = other.with_password("secret");
    assert!(LazyLock::get(&SYSTEM_ROOTS).is_none(), "nothing is connected to");
    clone.tls().unwrap();
    assert!(LazyLock::get(&SYSTEM_ROOTS).is_some());
}
