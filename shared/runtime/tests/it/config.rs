//! The priority of the layers, and rejected configuration.

use std::{collections::HashMap, path::Path};

use serde::{Deserialize, Serialize};
use trestle_runtime::config::{ConfigError, Sources, load, print};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Settings {
    server: Server,
    limits: Limits,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Server {
    listen: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    threads: Option<usize>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Limits {
    calls_max: u32,
    strict: bool,
}

fn defaults() -> Settings {
    Settings {
        server: Server { listen: "default".to_owned(), threads: None },
        limits: Limits { calls_max: 1, strict: false },
    }
}

fn environment(variables: &[(&str, &str)]) -> HashMap<String, String> {
    let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
    variables.iter().map(owned).collect()
}

fn write(text: &str) -> tempfile::NamedTempFile {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), text).unwrap();
    file
}

fn from(
    file: Option<&Path>,
    variables: &[(&str, &str)],
    flags: &[(&'static str, &str)],
) -> Result<Settings, ConfigError> {
    let flags = flags.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
    let sources = Sources {
        file,
        environment: environment(variables),
        exclusive: &[],
        foreign: &[("STANDARD_LISTEN", "server.listen")],
        flags: flags.collect(),
        range: None,
    };
    load(&defaults(), sources)
}

#[test]
fn flags_override_the_environment_the_file_and_the_defaults() {
    let file = write("[server]\nlisten = \"file\"\n[limits]\ncalls_max = 2\nstrict = true\n");
    let path = Some(file.path());
    let variables =
        [("TRESTLE__SERVER__LISTEN", "environment"), ("TRESTLE__LIMITS__CALLS_MAX", "3")];

    let listen = |settings: Settings| settings.server.listen;
    assert_eq!(from(None, &[], &[]).unwrap(), defaults());
    assert_eq!(listen(from(path, &[], &[]).unwrap()), "file");
    assert_eq!(listen(from(path, &variables, &[]).unwrap()), "environment");
    let all = from(path, &variables, &[("server.listen", "flag")]).unwrap();
    assert_eq!(all.server.listen, "flag");
    assert_eq!(all.limits, Limits { calls_max: 3, strict: true });
}

#[test]
fn configuration_overrides_standard_variables() {
    let file = write("[server]\nlisten = \"file\"\n");
    let standard = [("STANDARD_LISTEN", "standard")];

    assert_eq!(from(None, &standard, &[]).unwrap().server.listen, "standard");
    assert_eq!(from(Some(file.path()), &standard, &[]).unwrap().server.listen, "file");
}

#[test]
fn ignores_other_variables() {
    let variables = [("TRESTLE_ENDPOINT", "http://x"), ("PATH", "/bin"), ("TRESTLE", "x")];

    assert_eq!(from(None, &variables, &[]).unwrap(), defaults());
}

#[test]
fn reports_every_unknown_key() {
    let file = write("[server]\nlistn = \"x\"\n[nothing]\nkey = 0.5\n");

    let error = from(Some(file.path()), &[("TRESTLE__LIMITS__CALL_MAX", "3")], &[]).unwrap_err();

    let ConfigError::UnknownKeys { mut keys } = error else {
        panic!("{error}");
    };
    keys.sort();
    assert_eq!(keys, ["limits.call_max", "nothing", "server.listn"]);
}

#[test]
fn reports_the_key_of_a_malformed_value() {
    let error = from(None, &[("TRESTLE__LIMITS__CALLS_MAX", "many")], &[]).unwrap_err();

    assert!(error.to_string().contains("limits.calls_max"), "{error}");
}

#[test]
fn a_number_beyond_64_bits_is_a_malformed_value_of_its_key() {
    for number in ["18446744073709551616", "-9223372036854775809", "1e400", "-1"] {
        let text = format!("[limits]\nstrict = true\ncalls_max = {number}\n");
        let error = from(Some(write(&text).path()), &[], &[]).unwrap_err().to_string();
        let rule = "limits.calls_max: must be a whole number, 0 to 18446744073709551615";
        assert!(error.contains(rule), "{number}: {error}");
        assert!(error.contains(&format!("value=`{number}`")), "{error}");
    }
}

#[test]
fn reports_a_missing_or_malformed_file() {
    let malformed = write("[server\n");

    let error = from(Some(malformed.path()), &[], &[]).unwrap_err();
    assert!(matches!(error, ConfigError::Malformed(_)), "{error:?}");
    assert!(error.to_string().contains(malformed.path().to_str().unwrap()), "{error}");
    let error = from(Some(Path::new("/nowhere/at-all.toml")), &[], &[]).unwrap_err();
    assert!(error.to_string().contains("/nowhere/at-all.toml"), "{error}");
}

#[test]
fn errors_do_not_contain_values_that_may_be_secrets() {
    for text in [
        "[server]\nlisten = \"x\"\nthreads = \"a key of thirty-two bytes, hunter2\"\n",
        "[limits]\nstrict = \"hunter2\\\", expected hunter2\"\n",
        "server = \"hunter2\"\n",
        "[server]\nlisten = \"hunter2\n",
        "[server]\nlisten = hunter2\n",
        "[server]\nlisten = \"x\" \"hunter2\"\n",
    ] {
        let error = from(Some(write(text).path()), &[], &[]).unwrap_err().to_string();
        assert!(!error.contains("hunter2"), "{error}");
        assert!(error.contains("server") || error.contains("limits") || error.contains("line 2"));
    }
    let error = from(None, &[("TRESTLE__SERVER", "hunter2")], &[]).unwrap_err().to_string();
    assert!(!error.contains("hunter2") && error.contains("server"), "{error}");
}

#[test]
fn printed_settings_parse_to_the_same_settings() {
    let settings = from(None, &[("TRESTLE__SERVER__THREADS", "2")], &[]).unwrap();

    let file = write(&print(&settings).unwrap());

    assert_eq!(from(Some(file.path()), &[], &[]).unwrap(), settings);
}

#[test]
fn a_list_is_no_section() {
    for (text, rule) in [
        ("[[limits]]\ncalls_max = 2\n", "limits: must be a section with calls_max, strict"),
        ("limits = [2, true]\n", "limits: must be a section with calls_max, strict"),
        ("server = [\"hunter2\"]\n", "server: must be a section with listen, threads"),
        ("server = \"hunter2, expected x\"\n", "server: must be a section with listen, threads"),
    ] {
        let file = write(text);

        let error = from(Some(file.path()), &[], &[]).unwrap_err().to_string();

        assert_eq!(error, format!("configuration is malformed: {rule}"));
    }
}
