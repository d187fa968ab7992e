//! Signatures of the command line: their times, their terms, and what the explanation of one shows.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use clap::Parser;
use proptest::prelude::*;
use trestle_identity::{
    account::Account,
    sas::{Explanation, NamedResource, explain},
    spec::QUEUE,
};

use super::*;

/// 2026-01-31T08:00:00Z.
const NOW_SECONDS: i64 = 1_769_846_400;

#[derive(Debug, Parser)]
struct SasTestCli {
    #[command(flatten)]
    sas: SasArgs,
}

fn now() -> Ticks {
    Ticks::from_unix(NOW_SECONDS, 0).unwrap()
}

fn at(seconds: i64) -> Ticks {
    Ticks::from_unix(NOW_SECONDS + seconds, 0).unwrap()
}

fn account() -> Account {
    Account {
        name: AccountName::parse("acme").unwrap(),
        keys: vec![AccountKey::decode(&STANDARD.encode([7; 64])).unwrap()],
        is_disabled: false,
        allows_public_access: false,
    }
}

/// The terms of `sas queue orders` with these flags.
fn terms(flags: &str) -> Result<Terms, Malformed> {
    let words = ["sas", "queue", "orders"].into_iter().chain(flags.split_whitespace());
    match SasTestCli::try_parse_from(words).unwrap().sas.command {
        SasCommand::Queue { name, grant } => {
            grant.grant.terms(Scope::of_queue(name), grant.policy, now())
        }
        other => panic!("{other:?}"),
    }
}

fn token(flags: &str) -> String {
    let account = account();
    mint(terms(flags).unwrap(), account.name.as_str(), &account.keys[0]).unwrap().to_query()
}

fn explained(token: &str, queue: &str, moment: Ticks) -> Explanation {
    explain(token, Some(NamedResource::new(&QUEUE, queue)), Some(&account()), moment, None)
}

fn is_rejected(token: &str, queue: &str, moment: Ticks) -> bool {
    explained(token, queue, moment).first_failed().is_some()
}

#[test]
fn a_time_is_absolute_or_from_now_on() {
    for (text, expected) in [
        ("30m", "2026-01-31T08:30:00Z"),
        ("7d", "2026-02-07T08:00:00Z"),
        ("90", "2026-01-31T08:01:30Z"),
        ("1500ms", "2026-01-31T08:00:01Z"),
        ("2027-01-01", "2027-01-01"),
        ("2027-01-01T08:00Z", "2027-01-01T08:00Z"),
    ] {
        let found = moment("se", text.to_owned(), now()).unwrap();
        assert_eq!(found.as_str(), expected, "{text}");
    }
}

#[test]
fn rejects_a_time_that_is_zero_malformed_or_too_late() {
    let largest = format!("{}d", u64::MAX / 86_400_000);
    for text in ["", "0s", "-1h", "tomorrow", "2027-13-01", "36501d", &largest] {
        let error = moment("se", text.to_owned(), now()).unwrap_err();

        assert_eq!(error.field, "se", "{text}");
        let shown = usage_of_flag(&error).to_string();
        assert!(
            shown
                .starts_with("--expiry: must be 30m, 8h or 7d from now on, or a time such as 2026"),
            "{text}: {shown}"
        );
    }
}

proptest! {
    #[test]
    fn a_time_from_now_on_is_that_much_later(seconds in 1..=3_153_600_000_u32) {
        let found = moment("se", format!("{seconds}s"), now()).unwrap();

        prop_assert_eq!(found.ticks(), at(seconds.into()));
    }

    #[test]
    fn no_text_of_a_time_panics(text in "[0-9a-zT:.+-]{0,24}") {
        let _ = moment("st", text, now());
    }
}

#[test]
fn an_error_names_the_flag_and_not_the_field_of_the_signature() {
    for (flags, expected) in [
        ("--ip nowhere", "--ip: "),
        ("--start never", "--start: "),
        ("--sas-version 1", "--sas-version: "),
    ] {
        let error = terms(flags).unwrap_err();

        assert!(usage_of_flag(&error).to_string().starts_with(expected), "{flags}: {error}");
    }
    let other = Malformed::new("sig", "must be base64");
    assert_eq!(usage_of_flag(&other).to_string(), other.to_string());
}

#[test]
fn a_signature_grants_within_its_time_only() {
    let token = token("--permissions rp --start 1h --expiry 2h");

    for (seconds, is_granted) in [(0, false), (3600, true), (7199, true), (7201, false)] {
        let found = explained(&token, "orders", at(seconds));
        assert_eq!(found.first_failed().is_none(), is_granted, "after {seconds} s: {found:?}");
    }
}

#[test]
fn a_signature_is_for_one_queue_and_its_unchanged_terms() {
    let token = token("--permissions r --expiry 1h");
    assert!(!is_rejected(&token, "orders", now()));

    assert!(is_rejected(&token, "other", now()));
    let changed = token.replace("sp=r", "sp=rp");
    assert_ne!(changed, token);
    assert!(is_rejected(&changed, "orders", now()));
}

#[test]
fn flags_become_fields_of_the_signature() {
    let flags = "--permissions rap --expiry 1h --ip 10.0.0.1-10.0.0.9 --https-only --policy daily";
    let token = token(flags);

    let fields: Vec<_> = token.split('&').collect();
    for field in ["sp=rap", "spr=https", "sip=10.0.0.1-10.0.0.9", "si=daily"] {
        assert!(fields.contains(&field), "{field} in {token}");
    }
}

#[test]
fn half_a_range_of_entities_is_rejected() {
    for (flags, is_valid) in [
        ("", true),
        ("--start-partition-key a --end-partition-key b", true),
        ("--start-partition-key a --start-row-key b", true),
        ("--start-row-key b", false),
        ("--end-row-key b", false),
        ("--start-partition-key a --end-row-key b", false),
    ] {
        let words = ["sas", "table", "t"].into_iter().chain(flags.split_whitespace());
        assert_eq!(SasTestCli::try_parse_from(words).is_ok(), is_valid, "{flags}");
    }
}

#[test]
fn a_resource_that_cannot_exist_is_rejected_with_the_rule_of_its_name() {
    let check = |words: &[&str]| {
        let words = [&["sas"], words].concat();
        let command = SasTestCli::try_parse_from(words).unwrap().sas.command;
        check_names(&command).map_err(|error| error.to_string())
    };
    let long = format!("photos/{}", "a".repeat(1025));

    for words in [
        &["table", "Orders"][..],
        &["queue", "jobs"],
        &["container", "$root"],
        &["blob", "photos/a b"],
        &["account"],
    ] {
        assert_eq!(check(words), Ok(()), "{words:?}");
    }
    for (words, rule) in [
        (
            &["table", "my-table"][..],
            "table: must be an ASCII letter, then ASCII letters and digits",
        ),
        (&["queue", "Jobs"], "queue: must be lower-case ASCII letters, digits and single `-`"),
        (&["container", "ab"], "container: must have 3 to 63 characters"),
        (&["blob", "Photos/a"], "container: must be lower-case"),
        (&["blob", &long], "blob: must have at most 1,024 characters"),
    ] {
        let error = check(words).unwrap_err();
        assert!(error.starts_with(rule), "{rule}: {error}");
    }
}

#[test]
fn a_token_is_text_or_the_content_of_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("sas");
    std::fs::write(&file, "  sv=1&sig=2\n").unwrap();

    assert_eq!(token_of(" sig=1 ", None).unwrap(), "sig=1");
    assert_eq!(token_of("", Some(&file)).unwrap(), "sv=1&sig=2");
    let size = usize::try_from(TOKEN_BYTES_MAX).unwrap() + 1;
    std::fs::write(&file, "x".repeat(size)).unwrap();
    assert!(matches!(token_of("", Some(&file)).unwrap_err(), CliError::Usage(_)));
}

#[test]
fn the_help_of_permissions_has_the_letters_of_the_service() {
    use clap::CommandFactory as _;
    let command = SasTestCli::command();

    for (name, expected) in [
        ("table", "Letters: r read, a add, u update, d delete; in this order"),
        ("queue", "Letters: r read, a add, u update, p process"),
        ("blob", "Letters: r read, a add, c create, w write"),
        ("log", "Letters: r read, a append, c create"),
        ("account", "Letters: r read, a add, u update, d delete, l list"),
    ] {
        let inner = command.find_subcommand(name).unwrap();
        let argument = inner.get_arguments().find(|arg| arg.get_id() == "permissions").unwrap();
        let help = argument.get_help().unwrap().to_string();
        assert!(help.starts_with(expected), "{help}");
        let lists = matches!(name, "account" | "blob");
        assert_eq!(help.contains("list"), lists, "{help}");
    }
}

#[test]
fn signing_needs_an_account_and_its_key() {
    let given = |account: Option<&str>, key: Option<&str>| CredentialArgs {
        account: account.map(str::to_owned),
        account_key: key.map(|key| key.parse().unwrap()),
        ..CredentialArgs::default()
    };
    let key = STANDARD.encode([7; 64]);

    assert!(signer(&given(Some("acme"), Some(&key))).is_ok());
    for args in [given(None, None), given(Some("acme"), None), given(None, Some(&key))] {
        let error = signer(&args).unwrap_err().to_string();
        assert!(error.contains("--account") && !error.contains(&key), "{error}");
    }
}
