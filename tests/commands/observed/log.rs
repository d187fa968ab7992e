//! The log of a server: banner, escapes, reload.

use std::io::Write as _;

use super::*;
use crate::client::pipe;

#[test]
fn the_log_begins_with_a_banner_and_ends_with_how_long_the_stop_took() {
    let directory = tempdir().unwrap();
    let (log, file) = (directory.path().join("log"), directory.path().join("own.toml"));
    fs::write(&file, "[storage]\ndurability = \"interval\"\n").unwrap();
    let data = directory.path().join("data");
    let args = ["--config", file.to_str().unwrap(), "--data-dir", data.to_str().unwrap()];

    let server = Server::start_logging(&log, &args, &[]);
    let grpc = format!("grpc={}", server.address("grpc"));
    let banner = logged(&log, &["serving"]);
    assert_eq!(server.terminate(), Some(0));

    for part in [
        concat!("version=\"", env!("CARGO_PKG_VERSION"), "\""),
        &format!("data_dir=\"{}\"", data.display()),
        "durability=\"interval\"",
        "recovery_ms=",
        &grpc,
        "admin=127.0.0.1:",
        "development_account=\"on\"",
        &format!("config=\"{}\"", file.display()),
    ] {
        assert!(banner.contains(part), "{part}: {banner}");
    }
    let text = fs::read_to_string(&log).unwrap();
    let last = text.lines().last().unwrap();
    let took = last.split("stopped cleanly in ").nth(1).and_then(|rest| rest.strip_suffix(" ms"));
    assert!(took.is_some_and(|ms| ms.parse::<u64>().is_ok()), "{text}");
}

#[test]
fn a_recovery_of_more_than_two_seconds_is_logged_before_the_banner() {
    let directory = tempdir().unwrap();
    let (log, data) = (directory.path().join("log"), directory.path().join("data"));
    let args = ["--data-dir", data.to_str().unwrap()];
    let server = Server::start(&args, &[]);
    succeeds(&server, &["table", "create", "orders"]);
    assert_eq!(server.terminate(), Some(0));
    fs::write(&log, "").unwrap();
    // A start reads the marker of the clean shutdown first: from a pipe, it waits for its content.
    let (marker, kept) = (data.join("kv/CLOSED"), directory.path().join("CLOSED"));
    fs::rename(&marker, &kept).unwrap();
    pipe(&marker);

    let (server, line) = std::thread::scope(|scope| {
        let mut held = fs::File::options().read(true).write(true).open(&marker).unwrap();
        let started = scope.spawn(|| Server::start_logging(&log, &args, &[]));
        let line = logged(&log, &["recovering the store"]);
        held.write_all(&fs::read(&kept).unwrap()).unwrap();
        fs::rename(&kept, &marker).unwrap();
        drop(held);
        (started.join().unwrap(), line)
    });

    logged(&log, &["serving"]);
    assert_eq!(server.terminate(), Some(0));
    assert!(line.contains(&format!("data_dir=\"{}\"", data.display())), "{line}");
    let bytes = line.split("journal_bytes=").nth(1).and_then(|rest| rest.parse::<u64>().ok());
    assert!(bytes.is_some_and(|bytes| (1..1024 * 1024).contains(&bytes)), "{line}");
    let text = fs::read_to_string(&log).unwrap();
    assert!(text.find("recovering the store") < text.find("serving"), "{text}");
}

#[test]
fn a_log_in_a_file_has_no_escapes_of_a_terminal() {
    let directory = tempdir().unwrap();
    let log = directory.path().join("log");
    let variables = [("TRESTLE__TELEMETRY__LOG_FILTER", "debug")];

    let server = Server::start_logging(&log, &["--ephemeral"], &variables);
    succeeds(&server, &["table", "create", "orders"]);
    // A line of HTTP/2, which has the fields of its spans.
    logged(&log, &["Connection{peer="]);
    assert_eq!(server.terminate(), Some(0));

    let text = fs::read_to_string(&log).unwrap();
    assert!(!text.contains('\u{1b}'), "{text}");
}

#[test]
fn a_reload_names_what_changed_and_what_needs_a_restart_but_no_secret() {
    let directory = tempdir().unwrap();
    let (log, file) = (directory.path().join("log"), directory.path().join("own.toml"));
    let first = format!("[accounts.acme]\nkey1 = \"{KEY}\"\n[limits]\nconnections_max = 50\n");
    fs::write(&file, first).unwrap();
    let server =
        Server::start_logging(&log, &["--ephemeral", "--config", file.to_str().unwrap()], &[]);

    let changed = format!(
        "[accounts.other]\nkey1 = \"{KEY}\"\n[quotas]\naccount_entities_per_second = 1000\n\
         [limits]\ncalls_max = 77\nconnections_max = 60\n"
    );
    replace_file(&file, &changed);
    server.hang_up();

    logged(&log, &["reloaded", "what=\"accounts\"", "changed=\"acme, other\""]);
    logged(&log, &["what=\"quotas\"", "changed=\"quotas.account_entities_per_second\""]);
    let keys = "needs_restart=\"limits.calls_max, limits.connections_max\"";
    let line = logged(&log, &["applies at the next start", keys]);
    assert!(line.contains("WARN"), "{line}");
    replace_file(&file, "[accounts.other\n");
    server.hang_up();
    logged(&log, &["reload failed", "what=\"settings\""]);
    let text = fs::read_to_string(&log).unwrap();
    assert!(!text.contains(KEY), "{text}");

    let runtime = tokio::runtime::Runtime::new().unwrap();
    let page = runtime.block_on(server.page("/metrics"));
    let of = |subject: &str, result: &str| {
        let labels = format!(
            "trestle_config_reloads_total{{trestle_reload_result=\"{result}\",\
             trestle_reload_subject=\"{subject}\""
        );
        let swapped = format!(
            "trestle_config_reloads_total{{trestle_reload_subject=\"{subject}\",\
             trestle_reload_result=\"{result}\""
        );
        metric(&page, &labels).or_else(|| metric(&page, &swapped))
    };
    assert_eq!(of("accounts", "applied"), Some(1.0), "{page}");
    assert_eq!(of("accounts", "failed"), Some(0.0), "{page}");
    assert_eq!(of("settings", "failed"), Some(1.0), "{page}");
    assert_eq!(of("settings", "needs_restart"), Some(1.0), "{page}");
    assert_eq!(of("settings", "applied"), Some(0.0), "{page}");
}

#[tokio::test]
async fn a_rejected_reload_is_one_error_with_the_text_of_a_check() {
    let directory = tempdir().unwrap();
    let (log, file) = (directory.path().join("log"), directory.path().join("own.toml"));
    let key = directory.path().join("acme.key");
    let text = format!("[accounts.acme]\nkey1_file = \"{}\"\n", key.display());
    fs::write(&key, KEY).unwrap();
    fs::write(&file, &text).unwrap();
    let server =
        Server::start_logging(&log, &["--ephemeral", "--config", file.to_str().unwrap()], &[]);

    replace_file(&file, &format!("{text}keey = 1\n"));
    server.hang_up();
    let unknown = format!("{}:3: accounts.acme.keey: unknown key", file.display());
    logged(&log, &["ERROR", "reload failed", &unknown]);
    replace_file(&file, &text);
    server.hang_up();
    logged(&log, &["readable again"]);
    fs::remove_file(&key).unwrap();
    server.hang_up();
    let missing = format!(
        "{}:2: accounts.acme.key1_file: No such file or directory: file=`{}`",
        file.display(),
        key.display()
    );
    logged(&log, &["ERROR", "what=\"accounts\"", &missing]);

    // Longer than every task takes to read the files again.
    tokio::time::sleep(Duration::from_secs(3)).await;
    let log = fs::read_to_string(&log).unwrap();
    assert_eq!(log.matches("ERROR").count(), 2, "{log}");
    assert!(!log.contains("os error"), "{log}");
}
