//! The configuration: where it is found, sizes with units, and mistakes.

mod azure_listeners;
mod files;
mod memory;
mod rules;
mod secrets;
mod together;

use std::{fs, path::Path, process::Command};

use tempfile::tempdir;
use trestle_tests::Server;

use crate::client::{Ended, bare};

fn at(folder: &Path, args: &[&str]) -> Command {
    let mut command = bare(args);
    command.current_dir(folder);
    command
}

#[test]
fn a_data_directory_on_the_command_line_wins_over_memory_in_a_variable() {
    let mut print = bare(&["config", "print", "--data-dir", "/srv/trestle"]);
    print.env("TRESTLE__STORAGE__EPHEMERAL", "true");

    let printed = Ended::of(print);

    assert_eq!(printed.code, Some(0), "{printed:?}");
    assert!(printed.output.contains("ephemeral = false"), "{printed:?}");
}

#[test]
fn a_directory_beside_memory_in_a_file_is_a_mistake_that_a_higher_layer_resolves() {
    let directory = tempdir().unwrap();
    let file = directory.path().join("both.toml");
    fs::write(&file, "[storage]\nephemeral = true\ndata_dir = \"./own\"\n").unwrap();
    let path = file.to_str().unwrap();
    let rule = "storage.data_dir: has no effect with storage.ephemeral = true: remove one of them";

    for command in [&["config", "check"][..], &["config", "print"], &["serve"], &["doctor"]] {
        let rejected = Ended::of(at(directory.path(), &[command, &["--config", path]].concat()));
        assert_eq!(rejected.code, Some(2), "{command:?}: {rejected:?}");
        let text = rejected.output + &rejected.errors;
        assert!(text.contains(&format!("{path}:3: {rule}")), "{command:?}: {text}");
    }
    for flag in [&["--ephemeral"][..], &["--data-dir", "./other"]] {
        let args = [&["config", "check", "--config", path], flag].concat();
        let checked = Ended::of(at(directory.path(), &args));
        assert_eq!(checked.code, Some(0), "{flag:?}: {checked:?}");
    }
    let mut of_variable = at(directory.path(), &["config", "print", "--config", path]);
    let printed = Ended::of({
        of_variable.env("TRESTLE__STORAGE__EPHEMERAL", "true");
        of_variable
    });
    assert_eq!(printed.code, Some(0), "{printed:?}");
    fs::write(&file, &printed.output).unwrap();
    let checked = Ended::of(at(directory.path(), &["config", "check", "--config", path]));
    assert_eq!(checked.code, Some(0), "{checked:?}");
}

#[test]
fn a_doctor_with_a_data_directory_examines_it_although_a_file_selects_memory() {
    let directory = tempdir().unwrap();
    let file = directory.path().join("memory.toml");
    fs::write(&file, "[storage]\nephemeral = true\n").unwrap();
    let args = ["doctor", "--config", file.to_str().unwrap(), "--data-dir", "./own"];

    let examined = Ended::of(at(directory.path(), &args));

    assert!(examined.output.contains("own"), "{examined:?}");
}

#[test]
fn sections_of_absent_roles_are_named_once() {
    let directory = tempdir().unwrap();
    let file = directory.path().join("all.toml");
    let text = "[gateway]\ntable_endpoint = \"http://127.0.0.1:1\"\n\
                [quotas]\naccount_entities_per_second = 5\n[storage]\ncache_bytes = \"64MiB\"\n\
                [backup]\ntarget = \"./backups\"\n";
    fs::write(&file, text).unwrap();
    let check = |roles: &str| {
        let args = ["config", "check", "--config", file.to_str().unwrap(), "--roles", roles];
        Ended::of(at(directory.path(), &args))
    };

    let (queue, all) = (check("queue"), check("gateway,table,queue"));

    assert_eq!((queue.code, all.code), (Some(0), Some(0)), "{queue:?} {all:?}");
    let note = "note: no effect in a process with these roles: gateway, quotas\n";
    assert!(queue.errors.contains(note), "{queue:?}");
    // Quotas of calls apply in a gateway, those of entities beside tables.
    let gateway = check("gateway");
    assert_eq!(gateway.code, Some(0), "{gateway:?}");
    assert!(gateway.errors.contains("these roles: storage, backup\n"), "{gateway:?}");
    assert!(!all.errors.contains("note:"), "{all:?}");
}

#[test]
fn a_key_that_is_written_twice_is_named() {
    let directory = tempdir().unwrap();
    let file = directory.path().join("twice.toml");
    fs::write(&file, "[storage]\ncache_bytes = 1\n\ncache_bytes = 2\n").unwrap();

    let checked = Ended::of(bare(&["config", "check", "--config", file.to_str().unwrap()]));

    let mistake = format!("{}:4: duplicate key: key=`cache_bytes`", file.display());
    assert!(checked.errors.contains(&mistake), "{checked:?}");
}

#[test]
fn every_mistake_is_reported_at_once_with_its_place() {
    let directory = tempdir().unwrap();
    let file = directory.path().join("wrong.toml");
    fs::write(
        &file,
        "[server]\nlisten = \"somewhere\"\nlisen = \"127.0.0.1:1\"\n\n[storage]\n\
         cache_bytes = \"12 apples\"\nsync_every_ms = 0\n\n[sotrage]\nephemeral = true\n",
    )
    .unwrap();

    let mut check = bare(&["config", "check", "--config", file.to_str().unwrap()]);
    check.env("TRESTLE__LIMITS__CALLS_MAX", "0").env("TRESTLE__LIMITS__CALLS_MIN", "1");
    let checked = Ended::of(check);

    assert_eq!(checked.code, Some(2), "{checked:?}");
    let place = |line: u32| format!("error: {}:{line}: ", file.display());
    for (place, problem) in [
        (place(2), "server.listen: must be an address"),
        (place(3), "server.lisen: unknown key"),
        (place(6), "storage.cache_bytes: must be a whole number"),
        (place(7), "storage.sync_every_ms: must be 1 to 3600000"),
        (place(9), "sotrage: unknown key"),
        ("error: TRESTLE__LIMITS__CALLS_MAX: ".to_owned(), "limits.calls_max: must be 1 to"),
        ("error: TRESTLE__LIMITS__CALLS_MIN: ".to_owned(), "limits.calls_min: unknown key"),
    ] {
        let line = format!("{place}{problem}");
        assert!(checked.errors.lines().any(|it| it.starts_with(&line)), "{line}: {checked:?}");
    }
    assert!(checked.errors.contains("mistakes=`7`"), "{checked:?}");
}

#[test]
fn a_number_beyond_64_bits_hides_no_other_mistake() {
    let directory = tempdir().unwrap();
    let file = directory.path().join("large.toml");
    fs::write(
        &file,
        "[limits]\ncalls_max = 18446744073709551616\nreader_within_seconds = 18446744073709551615\n\
         [storge]\n[storage]\nsync_every_ms = 1e400\nwrite_buffer_bytes = \"99999999999999999999GiB\"\n",
    )
    .unwrap();

    for command in [&["config", "check"][..], &["config", "print"], &["serve"]] {
        let ended = Ended::of(bare(&[command, &["--config", file.to_str().unwrap()]].concat()));

        assert_eq!(ended.code, Some(2), "{ended:?}");
        let whole = "must be a whole number";
        for (line, problem) in [
            (2, format!("limits.calls_max: {whole}, 1 to 1000000: value=`18446744073709551616`")),
            (4, "storge: unknown key".to_owned()),
            (6, format!("storage.sync_every_ms: {whole}, 1 to 3600000: value=`1e400`")),
            (3, "limits.reader_within_seconds: must be 1 to 3600: value=`1844".to_owned()),
            (
                7,
                format!(
                    "storage.write_buffer_bytes: {whole} of bytes, or a size such as 128MiB, 32MiB to 4GiB"
                ),
            ),
        ] {
            let line = format!("error: {}:{line}: {problem}", file.display());
            assert!(ended.errors.contains(&line), "{line}: {ended:?}");
        }
        assert!(ended.errors.contains("mistakes=`5`"), "{ended:?}");
    }
}

#[test]
fn a_start_reports_the_same_mistakes_as_the_check_in_the_order_of_the_file() {
    let directory = tempdir().unwrap();
    let file = directory.path().join("wrong.toml");
    fs::write(
        &file,
        "[storage]\nephemeral = true\ndurability = \"never\"\n\n[server]\nlisten = \"here\"\n\n\
         [accounts.acme]\nkey = \"short\"\n\n[limits]\ncalls_max = -1\n\n\
         [tls]\ncert_file = \"/nowhere/cert.pem\"\nkey_file = \"/nowhere/key.pem\"\n",
    )
    .unwrap();
    let with = |command: &[&str]| {
        let mut command = bare(&[command, &["--config", file.to_str().unwrap()]].concat());
        command.env("OTEL_SERVICE_NAME", "");
        Ended::of(command)
    };

    let checked = with(&["config", "check"]);
    let doctor = with(&["doctor"]);

    let place =
        |line: &str| line.strip_prefix(&format!("error: {}:", file.display())).map(str::to_owned);
    let lines: Vec<u32> = checked
        .errors
        .lines()
        .filter_map(|line| place(line)?.split(':').next()?.parse().ok())
        .collect();
    // `key` is unknown, so that the account in line 8 has none.
    assert_eq!(lines, [3, 6, 8, 9, 12, 15, 16], "{checked:?}");
    assert!(checked.errors.contains("limits.calls_max: must be a whole number"), "{checked:?}");
    for command in [&["serve"][..], &["config", "print"], &["repair"]] {
        let ended = with(command);
        assert_eq!(ended.code, Some(2), "{command:?}: {ended:?}");
        assert_eq!(ended.errors, checked.errors, "{command:?}");
    }
    assert_eq!(doctor.code, Some(2), "{doctor:?}");
    assert_eq!(doctor.output.matches("failure: configuration: ").count(), 7, "{doctor:?}");
}

#[test]
fn a_flag_names_the_rule_for_an_address() {
    for flag in ["--listen", "--admin"] {
        let ended = Ended::of(bare(&["serve", "--ephemeral", flag, "host:99999"]));

        assert_eq!(ended.code, Some(2), "{ended:?}");
        let rule = "must be an address, as in 127.0.0.1:50051: value=`host:99999`";
        assert!(ended.errors.contains(flag) && ended.errors.contains(rule), "{ended:?}");
    }
}

#[test]
fn a_mistake_in_an_account_is_at_its_key_else_at_its_section() {
    let directory = tempdir().unwrap();
    let file = directory.path().join("wrong.toml");
    fs::write(
        &file,
        "[tls]\ncert_file = \"none.pem\"\n\n[accounts.acme]\nkey1 = \"short!\"\n\n\
         [accounts.other]\ndisabled = true\n",
    )
    .unwrap();

    let checked = Ended::of(bare(&["config", "check", "--config", file.to_str().unwrap()]));

    assert_eq!(checked.code, Some(2), "{checked:?}");
    for (line, problem) in [
        (2, "tls.key_file: required, since tls.cert_file is set"),
        (5, "accounts.acme.key1: "),
        (7, "accounts.other.key1: required, or key1_file"),
    ] {
        let text = format!("error: {}:{line}: {problem}", file.display());
        assert!(checked.errors.contains(&text), "{text}: {checked:?}");
    }
}

#[test]
fn the_file_is_found_and_sizes_have_units() {
    let directory = tempdir().unwrap();
    let other = directory.path().join("other.toml");
    fs::write(directory.path().join("trestle.toml"), "[storage]\ncache_bytes = \"64MiB\"\n")
        .unwrap();
    fs::write(&other, "[storage]\ncache_bytes = \"1.5 GiB\"\n").unwrap();
    let print = ["config", "print"];

    let found = Ended::of(at(directory.path(), &print)).output;
    let named = Ended::of({
        let mut command = at(directory.path(), &print);
        command.env("TRESTLE_CONFIG", &other);
        command
    });
    let variable = Ended::of({
        let mut command = at(directory.path(), &print);
        command.env("TRESTLE__STORAGE__CACHE_BYTES", "32mib");
        command
    });

    assert!(found.contains("cache_bytes = 67108864\n"), "{found}");
    assert!(named.output.contains("cache_bytes = 1610612736\n"), "{named:?}");
    assert!(variable.output.contains("cache_bytes = 33554432\n"), "{variable:?}");
}

#[test]
fn a_server_reports_its_configuration_file() {
    let directory = tempdir().unwrap();
    let (file, log) = (directory.path().join("server.toml"), directory.path().join("log"));
    fs::write(&file, "[storage]\nephemeral = true\n").unwrap();

    let server = Server::start_logging(&log, &[], &[("TRESTLE_CONFIG", file.to_str().unwrap())]);
    drop(server);

    let log = fs::read_to_string(&log).unwrap();
    assert!(log.contains(file.to_str().unwrap()), "{log}");
}
