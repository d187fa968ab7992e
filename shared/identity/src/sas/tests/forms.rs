//! Every malformed token, and the field in its error.

use proptest::prelude::*;

use crate::sas::{Token, fields::TOKEN_BYTES_MAX};

/// Of 32 zero bytes.
const SIGNATURE: &str = "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA%3D";
const TABLE: &str = "sv=2019-02-02&tn=orders&sp=raud&se=2036-01-01";
const ACCOUNT: &str = "sv=2019-02-02&ss=t&srt=sco&sp=rl&se=2036-01-01";

/// The field in the error of a token; none if it is well formed.
fn rejected(token: &str) -> Option<&'static str> {
    Token::parse(token, None).err().map(|malformed| malformed.field)
}

fn table(more: &str) -> Option<&'static str> {
    rejected(&format!("{TABLE}{more}&sig={SIGNATURE}"))
}

/// The token of a table with a part of it replaced.
fn but(old: &str, new: &str) -> Option<&'static str> {
    assert!(TABLE.contains(old), "{old}");
    rejected(&format!("{}&sig={SIGNATURE}", TABLE.replace(old, new)))
}

#[test]
fn parses_well_formed_tokens_with_any_escapes() {
    assert_eq!(table(""), None);
    assert_eq!(rejected(&format!("?{ACCOUNT}&sig={SIGNATURE}")), None);
    assert_eq!(table("&spk=a%26b%3D%25+c&srk=&epk=%c3%a9"), None);
    assert_eq!(table("&st=&si=&sip=&spr="), None, "empty is absent");
    assert_eq!(but("sp=raud&se=2036-01-01", "si=readers"), None);
    let escaped = format!("{TABLE}&spk=a%26b%3D%25+c&sig={SIGNATURE}");
    let token = Token::parse(&escaped, None).expect("a token");
    assert!(string_of(&token).contains("a&b=% c"), "{}", string_of(&token));
}

fn string_of(token: &Token) -> String {
    crate::sas::string_to_sign(&token.terms, "acme")
}

#[test]
fn rejects_a_token_with_unsupported_fields() {
    for token in ["", "?", "&", "sig", "sv=2019-02-02&&sig=", "no token", "SV=2019-02-02", "é=1"] {
        assert_eq!(rejected(token), Some("token"), "{token}");
    }
    assert_eq!(table("&unknown=1"), Some("token"));
    assert_eq!(table(&format!("&spk={}", "a".repeat(TOKEN_BYTES_MAX))), Some("token"));
    assert_eq!(
        rejected(&format!("sv=2019-02-02&sp=r&se=2036-01-01&sig={SIGNATURE}")),
        Some("token")
    );
}

#[test]
fn rejects_a_repeated_field_with_any_value() {
    for field in ["sv=2019-02-02", "tn=orders", "sp=raud", "sp=r", "se=2036-01-01"] {
        let name = field.split('=').next();
        assert_eq!(table(&format!("&{field}")), name, "{field}");
    }
    assert_eq!(table(&format!("&sig={SIGNATURE}")), Some("sig"));
    assert_eq!(table("&spk=&spk="), Some("spk"));
}

#[test]
fn rejects_escapes_that_are_malformed_or_not_utf8() {
    for value in ["%", "%4", "%zz", "a%2", "%%41", "%ff", "%c3%28", "%+1"] {
        assert_eq!(table(&format!("&spk={value}")), Some("spk"), "{value}");
    }
}

#[test]
fn rejects_control_characters_because_line_breaks_separate_signed_fields() {
    for value in ["a%0A1", "%0d", "%00", "a\nb", "%7f", "%c2%85"] {
        assert_eq!(table(&format!("&spk={value}")), Some("spk"), "{value}");
        assert_eq!(table(&format!("&si={value}")), Some("si"), "{value}");
    }
}

#[test]
fn rejects_unsupported_versions() {
    for version in ["", "2019", "2019-2-2", "2019-13-01", "2019-02-30", "20190202", "next"] {
        assert_eq!(but("2019-02-02", version), Some("sv"), "{version}");
    }
    assert_eq!(but("2019-02-02", "2012-02-11"), Some("sv"));
    assert_eq!(but("sv=2019-02-02&", ""), Some("sv"));
    assert_eq!(but("2019-02-02", "2012-02-12"), None);
    assert_eq!(but("2019-02-02", "2026-10-06"), None, "newer than supported");
    let old = ACCOUNT.replace("2019-02-02", "2015-02-21");
    assert_eq!(rejected(&format!("{old}&sig={SIGNATURE}")), Some("sv"));
}

#[test]
fn accepts_times_with_fractions_and_offsets_and_rejects_other_forms() {
    for time in [
        "2036-01-01",
        "2036-01-01T08:00Z",
        "2036-02-29T23:59:59Z",
        "2036-01-01T08:00:00.0Z",
        "2036-01-01T08:00:00.1234567Z",
        "2036-01-01T08:00%2B00:00",
        "2036-01-01T08:00:00.5-05:30",
    ] {
        assert_eq!(but("2036-01-01", time), None, "{time}");
    }
    for time in [
        "2036",
        "2036-1-1",
        "2036-02-30",
        "2036-01-01T08:00",
        "2036-01-01T08Z",
        "2036-01-01T08:00:00",
        "2036-01-01T08:00:00.",
        "2036-01-01T08:00:00.Z",
        "2036-01-01T08:00:00.12345678Z",
        "2036-01-01T08:00:00.1e1Z",
        "2036-01-01T08:00.5Z",
        "2036-01-01T08:00:00 00:00",
        "2036-01-01T08:00:00+0000",
        "2036-01-01T08:00:00+1:00",
        "2036-01-01T08:00:00+15:00",
        "2036-01-01T08:00:00+01:60",
        "2036-01-01T08:00:00+01:00Z",
        "2036-01-01+01:00",
        "2036-01-01T24:00Z",
        "2036-01-01T08:60Z",
        "2036-01-01T08:00:60Z",
        "2036-01-01T08:00:00:00Z",
        "2036-01-01t08:00z",
        "2036-01-01 08:00Z",
        "-2036-01-01",
        "+2036-01-01",
        "0000-01-01",
        "tomorrow",
    ] {
        assert_eq!(but("2036-01-01", time), Some("se"), "{time}");
        assert_eq!(table(&format!("&st={}", time.replace('+', "%2B"))), Some("st"), "{time}");
    }
}

#[test]
fn a_time_is_compared_as_an_instant_and_signed_as_written() {
    let read = |text: &str| crate::sas::Time::parse("se", text.to_owned()).expect(text);
    let utc = read("2036-01-01T08:00:00Z");

    for same in ["2036-01-01T09:30+01:30", "2036-01-01T03:00:00.0-05:00", "2036-01-01T08:00Z"] {
        assert_eq!(read(same).ticks(), utc.ticks(), "{same}");
        assert_eq!(read(same).as_str(), same);
    }
    let later = read("2036-01-01T08:00:00.0000012Z").ticks().get();
    assert_eq!(later - utc.ticks().get(), 12, "in ticks");
}

#[test]
fn an_account_sas_may_have_fields_that_it_ignores() {
    let account = |more: &str| rejected(&format!("{ACCOUNT}&{more}&sig={SIGNATURE}"));
    for more in ["sr=c", "sr=", "si=", "rscc=", "rsct=text/plain", "rscd=a&rsce=b&rscl=c&sr=b"] {
        assert_eq!(account(more), None, "{more}");
    }
    let plain = Token::parse(&format!("{ACCOUNT}&sig={SIGNATURE}"), None).expect("a token");
    let more = Token::parse(&format!("{ACCOUNT}&sr=c&si=&sig={SIGNATURE}"), None);
    assert_eq!(more.expect("a token"), plain);
}

#[test]
fn a_field_of_user_delegation_belongs_to_no_other_token() {
    for field in ["sktid", "skt", "ske", "sks", "skv", "saoid", "suoid", "scid", "skdutid", "srh"] {
        assert!(crate::sas::is_field(field), "{field}: part of a token, also in a query");
        let token = format!("{ACCOUNT}&{field}=x&sig={SIGNATURE}");
        let malformed = Token::parse(&token, None).expect_err("rejected");
        assert_eq!(malformed.field, field);
        assert!(malformed.rule.starts_with("does not belong to such a token"), "{malformed}");
    }
}

#[test]
fn rejects_unsupported_repeated_or_unordered_letters() {
    for letters in ["", "R", "rr", "rx", "ar", "dr", "r,a", "r a", "é"] {
        assert_eq!(but("sp=raud", &format!("sp={letters}")), Some("sp"), "{letters}");
    }
    let account =
        |old: &str, new: &str| rejected(&format!("{}&sig={SIGNATURE}", ACCOUNT.replace(old, new)));
    assert_eq!(account("sp=rl", "sp=lr"), None, "an account SAS has no order");
    for (old, new, field) in [
        ("ss=t", "ss=", "ss"),
        ("ss=t", "ss=x", "ss"),
        ("ss=t", "ss=tt", "ss"),
        ("ss=t&", "", "ss"),
        ("srt=sco", "srt=", "srt"),
        ("srt=sco", "srt=oo", "srt"),
        ("&srt=sco", "", "srt"),
        ("sp=rl", "sp=rz", "sp"),
    ] {
        assert_eq!(account(old, new), Some(field), "{new}");
    }
}

#[test]
fn addresses_are_ipv4_in_ascending_ranges() {
    assert_eq!(table("&sip=10.0.0.1"), None);
    assert_eq!(table("&sip=10.0.0.1-10.0.1.0"), None);
    for address in [
        "10.0.0",
        "10.0.0.256",
        "10.0.0.1-",
        "-10.0.0.1",
        "10.0.0.2-10.0.0.1",
        "10.0.0.0/8",
        "::1",
        "10.0.0.1-10.0.0.2-10.0.0.3",
        "010.0.0.1",
        "localhost",
    ] {
        assert_eq!(table(&format!("&sip={address}")), Some("sip"), "{address}");
    }
}

#[test]
fn accepts_two_protocols_and_rejects_http_alone() {
    assert_eq!(table("&spr=https"), None);
    assert_eq!(table("&spr=https,http"), None);
    assert_eq!(table("&spr=http,https"), None);
    for protocol in ["http", "http,http", "HTTPS", "https,", "grpc"] {
        assert_eq!(table(&format!("&spr={protocol}")), Some("spr"), "{protocol}");
    }
}

#[test]
fn rejects_fields_that_the_version_does_not_sign() {
    let old = TABLE.replace("2019-02-02", "2015-02-21");
    for (field, name) in [("sip=10.0.0.1", "sip"), ("spr=https", "spr")] {
        assert_eq!(rejected(&format!("{old}&{field}&sig={SIGNATURE}")), Some(name));
    }
    let account = |version: &str| {
        let account = ACCOUNT.replace("2019-02-02", version);
        rejected(&format!("{account}&ses=scope&sig={SIGNATURE}"))
    };
    assert_eq!(account("2020-10-02"), Some("ses"));
    assert_eq!(account("2020-12-06"), None);
}

#[test]
fn rejects_fields_of_other_tokens() {
    for field in ["sr=c", "rsct=a", "ses=scope"] {
        let name = field.split('=').next();
        assert_eq!(table(&format!("&{field}")), name, "{field}");
    }
    let account = |more: &str| rejected(&format!("{ACCOUNT}&{more}&sig={SIGNATURE}"));
    assert_eq!(account("si=readers"), Some("si"));
    assert_eq!(account("tn=orders"), Some("tn"));
    assert_eq!(account("spk=a"), Some("spk"));
}

#[test]
fn rejects_missing_required_fields_unless_a_policy_may_set_them() {
    assert_eq!(but("&se=2036-01-01", ""), Some("se"));
    assert_eq!(but("&sp=raud", ""), Some("sp"));
    assert_eq!(but("&se=2036-01-01", "&si=readers"), None);
    assert_eq!(but("&sp=raud", "&si=readers"), None);
    assert_eq!(rejected(TABLE), Some("sig"));
    assert_eq!(table(&format!("&si={}", "é".repeat(64))), None);
    assert_eq!(table(&format!("&si={}", "é".repeat(65))), Some("si"));
    for name in ["", "ab", "1abc", "a-bc", "tables", "$MetricsX"] {
        assert_eq!(but("tn=orders", &format!("tn={name}")), Some("tn"), "{name}");
    }
}

#[test]
fn signatures_are_base64_of_32_bytes_and_never_repeated_in_an_error() {
    for signature in ["", "AAAA", "****", "c2VjcmV0LXNpZ25hdHVyZQ%3D%3D", "a b"] {
        let error = Token::parse(&format!("{TABLE}&sig={signature}"), None).expect_err(signature);
        assert_eq!(error.field, "sig");
        let text = error.to_string();
        assert!(signature.is_empty() || !text.contains(signature), "{text}");
    }
    let token = Token::parse(&format!("{TABLE}&sig={SIGNATURE}"), None).expect("a token");
    assert!(!format!("{token:?}").contains("signature"), "{token:?}");
    // A signature alone, without its field name, is not repeated either.
    let error = Token::parse("V+Pw4sMiRz+Rn85tY8GqS7W2A40isFItVAjCjzruwO0=", None).expect_err("no");
    assert!(!error.to_string().contains("V+Pw"), "{error}");
}

#[test]
fn rejects_empty_ends_of_a_range_that_could_be_removed_unnoticed() {
    // The signature of an empty end is that of an absent one, which would be a wider range.
    assert_eq!(table("&epk="), Some("epk"));
    assert_eq!(table("&epk=b&erk="), Some("erk"));
    assert_eq!(table("&srk=1"), Some("srk"));
    assert_eq!(table("&erk=1"), Some("erk"));
    assert_eq!(table("&spk=&srk=1&epk=&erk=9"), None, "rows of the empty partition");
    assert_eq!(table("&spk="), None, "the same as no start");
}

#[test]
fn an_empty_start_of_a_range_is_that_of_a_token_without_it() {
    let scope = |more: &str| {
        let token = Token::parse(&format!("{TABLE}{more}&sig={SIGNATURE}"), None);
        token.expect("a token").terms.scope
    };

    assert_eq!(scope("&spk="), scope(""));
    assert_eq!(scope("&spk=&srk="), scope(""));
    assert_eq!(scope("&spk=a&srk="), scope("&spk=a"));
    assert_ne!(scope("&spk=&srk=1"), scope(""), "rows of the first partition");
}

proptest! {
    #[test]
    fn any_text_is_parsed_or_rejected(text in ".{0,200}") {
        let _ = Token::parse(&text, None);
    }

    #[test]
    fn any_keys_survive_minting_and_parsing(
        start in r"\PC{1,20}",
        start_row in r"\PC{0,20}",
        end in r"\PC{1,20}",
        end_row in r"\PC{1,20}",
    ) {
        use crate::{account::AccountKey, caller::KeyRange, sas::{Scope, mint}};
        let token = Token::parse(&format!("{TABLE}&sig={SIGNATURE}"), None).expect("a token");
        let range = KeyRange {
            start_partition_key: Some(start),
            start_row_key: Some(start_row),
            end_partition_key: Some(end),
            end_row_key: Some(end_row),
        };
        let mut terms = token.terms;
        terms.scope = Scope::of_table("orders", &range);
        let minted = mint(terms, "acme", &AccountKey::development()).expect("terms");
        let text = minted.to_query();
        prop_assume!(text.len() <= TOKEN_BYTES_MAX);
        prop_assert_eq!(Token::parse(&text, None).expect("a token"), minted);
    }
}
