//! Commands that return at once, and every reason for which `serve` does not start.

use std::process::Output;

use crate::process::{Serving, output, trestle};

fn code(output: &Output) -> Option<i32> {
    output.status.code()
}

fn errors(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn prints_only_the_version_or_the_configuration() {
    let version = output(&mut trestle(&["version"]));
    let config = output(
        trestle(&["config", "print", "--roles", "table"]).env("TRESTLE__LIMITS__CALLS_MAX", "7"),
    );

    assert_eq!(version.stdout, b"trestle 0.1.0 (revision unknown)\n");
    let text = String::from_utf8(config.stdout).unwrap();
    assert!(text.contains("roles = \"table\"\n") && text.contains("calls_max = 7\n"), "{text}");
    assert!(config.stderr.is_empty());
}

#[test]
fn printed_settings_and_errors_never_contain_a_key() {
    // Base64 of 32 bytes each; the last is an invalid key.
    let keys = ["c2VjcmV0LW9uZS1zZWNyZXQtb25lLXNlY3JldC1vbmU=", "aHVudGVyMg=="];
    let with = |key: &str| {
        let mut command = trestle(&["config", "print"]);
        output(command.env("TRESTLE__ACCOUNTS__ACME__KEY1", key))
    };

    let (good, bad) = (with(keys[0]), with(keys[1]));

    let text = String::from_utf8(good.stdout).unwrap();
    assert_eq!(good.status.code(), Some(0), "{text}");
    assert!(text.contains("[accounts.acme]") && text.contains("(redacted)"), "{text}");
    assert!(!text.contains(keys[0]) && good.stderr.is_empty(), "{text}");
    assert_eq!(code(&bad), Some(2));
    assert!(errors(&bad).contains("accounts.acme.key1"), "{}", errors(&bad));
    assert!(!errors(&bad).contains(keys[1]) && !errors(&bad).contains("hunter2"));
}

#[test]
fn a_public_address_needs_an_account() {
    let config_on = |listener: &str, more: &[(&str, &str)]| {
        let mut command = trestle(&["config", "print", listener, "0.0.0.0:0"]);
        output(command.env("TRESTLE__SERVER__ALLOW_PLAINTEXT", "true").envs(more.iter().copied()))
    };
    let config_on_grpc = |more: &[(&str, &str)]| config_on("--listen", more);

    let alone = config_on_grpc(&[]);
    let by_tables = config_on("--azure-table", &[]);
    let by_queues = config_on("--azure-queue", &[]);
    let off = [("TRESTLE__GATEWAY__DEVELOPMENT_ACCOUNT", "off")];
    let without = output(trestle(&["config", "print"]).envs(off));
    let anywhere = config_on_grpc(&[("TRESTLE__GATEWAY__DEVELOPMENT_ACCOUNT", "anywhere")]);
    let key = "c2VjcmV0LW9uZS1zZWNyZXQtb25lLXNlY3JldC1vbmU=";
    let named = config_on_grpc(&[("TRESTLE__ACCOUNTS__ACME__KEY1", key)]);

    for rejected in [alone, by_tables, by_queues, without] {
        assert_eq!(code(&rejected), Some(2));
        assert!(errors(&rejected).contains("no client could call"), "{}", errors(&rejected));
    }
    assert_eq!((code(&anywhere), code(&named)), (Some(0), Some(0)), "{}", errors(&named));
}

#[test]
fn trust_in_callers_needs_a_secret_or_client_certificates() {
    let trusting = ("TRESTLE__SERVER__TRUST_CALLERS", "true");
    let config = |roles: &str, more: &[(&str, &str)]| {
        let mut command = trestle(&["config", "print", "--roles", roles]);
        output(command.envs([trusting]).envs(more.iter().copied()))
    };
    let secret = ("TRESTLE__SERVER__GATEWAY_SECRET", "0123456789abcdef0123456789abcdef");
    let required = [
        ("TRESTLE__TLS__CERT_FILE", "c.pem"),
        ("TRESTLE__TLS__KEY_FILE", "k.pem"),
        ("TRESTLE__TLS__CLIENT_CA_FILE", "ca.pem"),
        ("TRESTLE__TLS__CLIENT_CERTIFICATES", "required"),
    ];
    let optional = [&required[..3], &[("TRESTLE__TLS__CLIENT_CERTIFICATES", "optional")]].concat();

    for role in ["table", "queue", "blob", "log", "table,queue,blob,log"] {
        for more in [&[][..], &optional] {
            let rejected = config(role, more);
            assert_eq!(code(&rejected), Some(2), "{role}");
            let text = errors(&rejected);
            for part in ["server.trust_callers", "server.gateway_secret_file", "\"required\""] {
                assert!(text.contains(part), "{role}: {part}: {text}");
            }
        }
        for more in [&[secret][..], &required] {
            let accepted = config(role, more);
            assert_eq!(code(&accepted), Some(0), "{role}: {}", errors(&accepted));
        }
    }
    let printed = String::from_utf8(config("table", &[secret]).stdout).unwrap();
    assert!(printed.contains("gateway_secret = \"(redacted)\""), "{printed}");
    let file = ("TRESTLE__SERVER__GATEWAY_SECRET_FILE", "/nowhere/secret");
    for (more, rule) in [
        (&[("TRESTLE__SERVER__GATEWAY_SECRET", "hunter2")][..], "must be 32 to 512"),
        (&[secret, file], "must not be set together with server.gateway_secret_file"),
    ] {
        let rejected = errors(&config("table", more));
        assert!(
            rejected.contains("server.gateway_secret: ") && rejected.contains(rule),
            "{rejected}"
        );
        assert!(!rejected.contains("hunter2"), "{rejected}");
    }
}

#[test]
fn a_published_key_is_rejected_in_the_settings_and_in_a_file() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("key");
    let public = trestle_identity::account::DEVELOPMENT_KEY;
    std::fs::write(&file, format!("{public}\n")).unwrap();
    let rejected = |name: &str, value: &str, arguments: &[&str]| {
        let mut command = trestle(arguments);
        output(command.env(format!("TRESTLE__ACCOUNTS__ACME__{name}"), value))
    };
    let path = file.to_str().unwrap();

    for (name, value, arguments) in [
        ("KEY1", public, &["config", "print"][..]),
        ("KEY2", public, &["config", "check"]),
        ("KEY1_FILE", path, &["config", "check"]),
        ("KEY1_FILE", path, &["serve", "--ephemeral", "--listen", "127.0.0.1:0"]),
    ] {
        let rejected = rejected(name, value, arguments);
        assert_eq!(code(&rejected), Some(2), "{name}: {}", errors(&rejected));
        let (text, key) = (errors(&rejected), format!("accounts.acme.{}: ", name.to_lowercase()));
        let rule = "must not be the key of the development account, which is public";
        assert!(text.contains(&key) && text.contains(rule), "{text}");
        assert!(!text.contains(public), "{text}");
    }
}

#[test]
fn rejects_each_kind_of_invalid_configuration_with_its_exit_code() {
    let unknown = output(trestle(&["serve"]).env("TRESTLE__SERVER__LISTN", "x"));
    let plaintext = output(&mut trestle(&["serve", "--listen", "0.0.0.0:0"]));
    let alone = output(&mut trestle(&["serve", "--roles", "gateway"]));
    let first = Serving::start(&["--ephemeral"], &[]);
    let occupied = output(&mut trestle(&["serve", "--ephemeral", "--listen", &first.grpc]));

    assert_eq!(code(&unknown), Some(2));
    assert!(errors(&unknown).contains("server.listn"), "{}", errors(&unknown));
    assert_eq!(code(&plaintext), Some(2));
    assert!(errors(&plaintext).contains("--allow-plaintext"), "{}", errors(&plaintext));
    assert_eq!(code(&alone), Some(2));
    assert!(errors(&alone).contains("gateway.table_endpoint"), "{}", errors(&alone));
    assert_eq!(code(&occupied), Some(5));
    assert!(errors(&occupied).contains(&first.grpc), "{}", errors(&occupied));
    for rejected in [unknown, plaintext, alone, occupied] {
        assert!(rejected.stdout.is_empty(), "reported that it is ready");
    }
}

#[test]
fn a_public_address_needs_tls_or_permission_for_plaintext() {
    let pair = [("TRESTLE__TLS__CERT_FILE", "c.pem"), ("TRESTLE__TLS__KEY_FILE", "k.pem")];
    let admin = ("TRESTLE__TLS__ADMIN", "true");
    let (listen, other) = (["--listen", "0.0.0.0:0"], ["--admin", "[::]:0"]);
    let config_print = |arguments: &[&str], variables: &[(&str, &str)]| {
        let mut command = trestle(&[&["config", "print"], arguments].concat());
        command.env("TRESTLE__GATEWAY__DEVELOPMENT_ACCOUNT", "anywhere");
        output(command.envs(variables.iter().copied()))
    };

    let allowed = [
        config_print(&listen, &pair),
        config_print(&[listen, other].concat(), &[pair[0], pair[1], admin]),
        config_print(&[&listen[..], &other, &["--allow-plaintext"]].concat(), &[]),
    ];
    let rejected = [
        (config_print(&listen, &[]), "server.listen"),
        (config_print(&other, &pair), "server.admin"),
        (config_print(&listen, &pair[..1]), "tls.key_file"),
        (
            config_print(&[], &[("TRESTLE__TLS__CLIENT_CERTIFICATES", "required")]),
            "tls.client_ca_file",
        ),
        (config_print(&[], &[admin]), "tls.admin"),
        (config_print(&[], &[("TRESTLE__LIMITS__BODY_BYTES_MAX", "1")]), "limits.body_bytes_max"),
    ];

    for allowed in allowed {
        assert_eq!(code(&allowed), Some(0), "{}", errors(&allowed));
    }
    for (rejected, key) in rejected {
        assert_eq!(code(&rejected), Some(2), "{key}");
        assert!(errors(&rejected).contains(key), "{key}: {}", errors(&rejected));
    }
}

#[test]
fn a_data_directory_is_locked_by_one_process_until_it_ends() {
    let parent = tempfile::tempdir().unwrap();
    let directory = parent.path().join("made/for/this");
    let arguments = ["--data-dir", directory.to_str().unwrap()];
    let first = Serving::start(&arguments, &[]);

    let ports = ["serve", "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"];
    let off = ["--azure-table", "off", "--azure-queue", "off", "--azure-blob", "off"];
    let second = output(&mut trestle(&[&ports[..], &off[..], &arguments[..]].concat()));
    first.terminate();
    let (ended, _) = first.wait();
    let third = Serving::start(&arguments, &[]);

    assert_eq!(code(&second), Some(3), "{}", errors(&second));
    assert!(errors(&second).contains(directory.to_str().unwrap()), "{}", errors(&second));
    assert_eq!(ended.code(), Some(0));
    assert!(!third.grpc.is_empty());
}

#[test]
fn rejects_a_store_with_a_missing_file_after_a_clean_shutdown_and_names_it() {
    let directory = tempfile::tempdir().unwrap();
    let arguments = ["--data-dir", directory.path().to_str().unwrap()];
    let server = Serving::start(&arguments, &[]);
    for what in [["table", "create", "Things"], ["queue", "create", "jobs"]] {
        let made = output(&mut trestle(&[&what[..], &["--endpoint", &server.endpoint()]].concat()));
        assert_eq!(code(&made), Some(0), "{}", errors(&made));
    }
    server.terminate();
    assert_eq!(server.wait().0.code(), Some(0));
    let journal = directory.path().join("kv/db/0.jnl");
    let mut bytes = std::fs::read(&journal).unwrap();
    bytes[60..110].fill(0xab);
    std::fs::write(&journal, bytes).unwrap();

    let ports = ["serve", "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"];
    let off = ["--azure-table", "off", "--azure-queue", "off", "--azure-blob", "off"];
    let rejected = output(&mut trestle(&[&ports[..], &off[..], &arguments[..]].concat()));

    assert_eq!(code(&rejected), Some(4), "{}", errors(&rejected));
    assert!(errors(&rejected).contains("0.jnl"), "{}", errors(&rejected));
    assert!(rejected.stdout.is_empty(), "reported that it is ready");
}

#[test]
fn the_exit_code_of_healthcheck_reports_whether_a_server_serves() {
    let server = Serving::start(&["--ephemeral"], &[]);
    let check = |endpoint: &str, service: &str| {
        let arguments = ["healthcheck", "--endpoint", endpoint, "--service", service];
        output(&mut trestle(&arguments))
    };
    let endpoint = server.endpoint();

    let whole = check(&endpoint, "");
    let table = check(&endpoint, "trestle.table.v1.TableService");
    let unknown_service = check(&endpoint, "absent");
    let mut configured = trestle(&["healthcheck"]);
    // Settings of a role: a server would need more of them.
    configured
        .env("TRESTLE__SERVER__LISTEN", &server.grpc)
        .env("TRESTLE__SERVER__ROLES", "gateway");
    let configured = output(&mut configured);
    server.terminate();
    server.wait();
    let stopped = check(&endpoint, "");

    assert_eq!([code(&whole), code(&table), code(&configured)], [Some(0); 3]);
    for checked in [&whole, &configured] {
        let printed = String::from_utf8_lossy(&checked.stdout);
        assert_eq!(printed, format!("serving at {endpoint}\n"), "which one it was");
    }
    assert_eq!([code(&unknown_service), code(&stopped)], [Some(1); 2]);
    assert!(errors(&stopped).contains(&endpoint), "{}", errors(&stopped));
}

#[test]
fn healthcheck_prefers_a_file_of_the_command_line_to_the_variable_for_clients() {
    let server = Serving::start(&["--ephemeral"], &[]);
    let folder = tempfile::tempdir().unwrap();
    let (live, dead) = (folder.path().join("live.toml"), folder.path().join("dead.toml"));
    std::fs::write(&live, format!("[server]\nlisten = \"{}\"\n", server.grpc)).unwrap();
    std::fs::write(&dead, "[server]\nlisten = \"127.0.0.1:1\"\n").unwrap();
    let (live, dead) = (live.to_str().unwrap(), dead.to_str().unwrap());
    let (endpoint, nowhere) = (server.endpoint(), "http://127.0.0.1:1");
    let check = |arguments: &[&str], variables: &[(&str, &str)]| {
        let mut command = trestle(&[&["healthcheck"], arguments].concat());
        code(&output(command.envs(variables.iter().copied())))
    };

    for (arguments, variables, expected) in [
        (&["--config", live][..], &[("TRESTLE_ENDPOINT", nowhere)][..], 0),
        (&["--config", dead], &[("TRESTLE_ENDPOINT", &endpoint)], 1),
        (&["--config", dead, "--endpoint", &endpoint], &[], 0),
        (&[], &[("TRESTLE_ENDPOINT", nowhere), ("TRESTLE_CONFIG", live)], 0),
        (&[], &[("TRESTLE_CONFIG", live)], 0),
    ] {
        assert_eq!(check(arguments, variables), Some(expected), "{arguments:?} {variables:?}");
    }
    let context = output(&mut trestle(&["healthcheck", "--context", "x"]));
    let text = "`trestle healthcheck` takes no --context: it calls the server of --endpoint";
    assert!(errors(&context).contains(text), "{}", errors(&context));
    let form = output(&mut trestle(&["version", "-o", "csv"]));
    assert!(errors(&form).contains("Usage: trestle version"), "{}", errors(&form));
}
