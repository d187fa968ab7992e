//! Variables without a value.

use super::*;

/// The variables of clients.
const VARIABLES: [&str; 14] = [
    "AZURE_STORAGE_CONNECTION_STRING",
    "TRESTLE_ACCOUNT",
    "TRESTLE_ACCOUNT_KEY",
    "TRESTLE_ACCOUNT_KEY_FILE",
    "TRESTLE_CA_FILE",
    "TRESTLE_CERT_FILE",
    "TRESTLE_CONFIG",
    "TRESTLE_CONNECTION_STRING",
    "TRESTLE_CONTEXT",
    "TRESTLE_ENDPOINT",
    "TRESTLE_KEY_FILE",
    "TRESTLE_SAS",
    "TRESTLE_SAS_FILE",
    "TRESTLE_SERVER_NAME",
];

#[test]
fn an_empty_variable_is_the_same_as_one_that_is_not_set() {
    let server = server();
    let all = VARIABLES.map(|variable| (variable, ""));
    let ended = |mut command: Command, variables: &[(&str, &str)]| {
        command.envs(variables.iter().copied());
        Ended::of(command)
    };

    for variable in all {
        let listed = ended(trestle(&server, &["table", "list"]), &[variable]);
        assert_eq!(listed.code, Some(0), "{variable:?}: {listed:?}");
    }
    let printed = ended(bare(&["config", "print"]), &all);
    let help = ended(bare(&["options"]), &all).output;
    let import = ended(bare(&["import", "azure", "--source-file", "/nosuch"]), &all);
    let given = ended(bare(&["table", "list", "--ca-file", ""]), &[]);

    assert_eq!(printed.code, Some(0), "{printed:?}");
    let settings = [
        "TRESTLE__SERVER__LISTEN",
        "TRESTLE__SERVER__ROLES",
        "TRESTLE__STORAGE__DATA_DIR",
        "TRESTLE__STORAGE__MIN_FREE_BYTES",
        "TRESTLE__TLS__CERT_FILE",
        "TRESTLE__ACCOUNTS__ACME__KEY1",
        "OTEL_EXPORTER_OTLP_ENDPOINT",
    ];
    let checked = ended(bare(&["config", "check"]), &settings.map(|variable| (variable, "")));
    assert_eq!(checked.code, Some(0), "{checked:?}");
    assert!(help.contains("[env: TRESTLE_CA_FILE=]"), "{help}");
    assert!(import.errors.contains("/nosuch"), "{import:?}");
    assert_eq!(given.code, Some(2), "an empty argument is a mistake: {given:?}");
}
