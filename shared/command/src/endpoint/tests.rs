//! Tests of the module.

use proptest::prelude::*;

use super::*;

#[test]
fn an_address_has_a_scheme_a_host_and_an_optional_port() {
    for (endpoint, encrypted) in [
        ("http://127.0.0.1:50051", false),
        ("HTTP://localhost", false),
        ("https://tables.example:65535/", true),
        ("http://[::1]:1", false),
    ] {
        assert_eq!(check(endpoint), Ok(encrypted), "{endpoint}");
    }
    for endpoint in ["", "http://", "localhost:1", "/path", "http://[::1]:65536", "https://a:b"] {
        assert!(check(endpoint).is_err(), "{endpoint}");
    }
}

#[test]
fn plain_text_leaves_the_machine_unless_the_host_is_loopback() {
    for (endpoint, expected) in [
        ("http://tables.example:50051", true),
        ("http://10.0.0.1:50051", true),
        ("http://0.0.0.0:1", true),
        ("http://[2001:db8::1]:1", true),
        ("http://localhost.example", true),
        ("https://tables.example", false),
        ("http://127.0.0.1:50051", false),
        ("http://127.8.9.1", false),
        ("http://[::1]:1", false),
        ("http://[::ffff:127.0.0.1]:1", false),
        ("HTTP://LocalHost:1", false),
        ("http://a.localhost", false),
        ("http://localhost.:1", false),
    ] {
        assert_eq!(is_exposed(endpoint), expected, "{endpoint}");
    }
}

#[test]
fn an_address_is_shown_without_passwords_and_signatures() {
    for (endpoint, expected) in [
        ("http://host:50051/path", "http://host:50051/path"),
        ("http://me:SECRET@host", "…@host"),
        ("http://host:50051/?sv=1&sig=SECRET", "http://host:50051/…"),
        ("http://host#sig=SECRET?", "http://host…"),
        ("http://me:SECRET@host/?sig=SECRET", "…@host/…"),
        ("http://me:SEC?RET@host/path", "…"),
        ("http://host?sig=SECRET@SECRET", "…"),
    ] {
        let rejected = is_encrypted(endpoint).map_err(|error| error.to_string());
        let expected = format!("value=`{expected}`");
        assert!(rejected.as_ref().is_err_and(|text| text.ends_with(&expected)), "{rejected:?}");
    }
}

#[test]
fn an_address_without_a_scheme_has_the_default_port_and_tls_where_files_are_given() {
    for (endpoint, has_tls, expected) in [
        ("store", false, "http://store:50051"),
        ("store", true, "https://store:50051"),
        ("store:1", true, "https://store:1"),
        ("[::1]", false, "http://[::1]:50051"),
        ("[::1]:1", false, "http://[::1]:1"),
        ("http://store", true, "http://store"),
        ("https://store", false, "https://store"),
    ] {
        assert_eq!(complete(endpoint, has_tls), expected);
        assert!(check(expected).is_ok(), "{expected}");
    }
    for rejected in ["", "::1", "me@store", "me:SECRET@store:1", "store/path", "store:", "a b"] {
        let completed = complete(rejected, false);
        assert!(check(&completed).is_err(), "{rejected} became {completed}");
    }
}

#[test]
fn a_malformed_port_is_rejected_with_its_rule_and_as_it_was_written() {
    for endpoint in ["host:99999", "host:0", "host:abc", "127.0.0.1:65536", "[::1]:99999"] {
        let completed = complete(endpoint, false);

        let rejected = is_encrypted(&completed).map_err(|error| error.to_string());

        let rule = "--endpoint (TRESTLE_ENDPOINT): port must be 1 to 65535";
        assert_eq!(rejected, Err(format!("{rule}: value=`{endpoint}`")));
    }
}

proptest! {
    #[test]
    fn a_complete_address_stays_as_it_is(
        endpoint in "[a-z0-9.:/@?#\\[\\]-]{0,20}",
        has_tls in any::<bool>(),
    ) {
        let completed = complete(&endpoint, has_tls);

        prop_assert_eq!(complete(&completed, !has_tls), completed.clone(), "{}", endpoint);
    }

    #[test]
    fn an_accepted_address_is_a_host_and_a_port(endpoint in "https?://[a-z0-9.:/@?#-]{0,16}") {
        if check(&endpoint).is_ok() {
            let (_, place) = endpoint.split_once("://").unwrap();
            let place = place.strip_suffix('/').unwrap_or(place);
            prop_assert!(!place.contains(['/', '@', '?', '#']), "{endpoint}");
            if let Some((_, port)) = place.split_once(':') {
                prop_assert!(port.parse::<u16>().is_ok_and(|port| port > 0), "{endpoint}");
            }
        }
    }

    #[test]
    fn a_password_is_never_shown(
        scheme in prop_oneof![Just(""), Just("http://"), Just("https://")],
        user in "[a-z:?#/]{0,6}",
        mark in "[?#/@:]?",
        rest in "[a-z@:?#/.]{0,12}",
    ) {
        let endpoint = format!("{scheme}{user}:SEC{mark}RET@{rest}");

        let shown = shown(&endpoint);

        prop_assert!(!shown.contains("SEC") && !shown.contains("RET"), "{endpoint}");
    }

    #[test]
    fn a_signature_in_a_query_is_never_shown(
        place in "[a-z@:/.]{0,12}",
        mark in prop_oneof![Just('?'), Just('#')],
        rest in "[a-z@:?#/&=.]{0,12}",
    ) {
        let endpoint = format!("http://{place}{mark}sig=SECRET{rest}");

        prop_assert!(!shown(&endpoint).contains("SECRET"), "{endpoint}");
    }
}

#[test]
fn files_for_tls_need_an_encrypted_address() {
    let rejected = reject_plain("http://h:1", true).unwrap_err().to_string();

    assert!(rejected.contains("must begin with https://"), "{rejected}");
    assert!(reject_plain("http://h:1", false).is_ok() && reject_plain("https://h:1", true).is_ok());
}

#[test]
fn an_address_is_shown_with_the_port_that_is_called() {
    for (endpoint, shown) in [
        ("http://host", "http://host:80"),
        ("http://[::1]/", "http://[::1]:80"),
        ("https://host", "https://host:443"),
        ("https://host:50051", "https://host:50051"),
        ("no address", "no address"),
    ] {
        assert_eq!(with_port(endpoint), shown);
    }
}

#[test]
fn the_address_of_a_source_is_checked_by_the_same_rules_under_its_own_name() {
    for (endpoint, has_tls, rule) in [
        ("there", false, "must be HOST:PORT, or begin with http:// or https://"),
        ("http://there:0", false, "port must be 1 to 65535"),
        ("http://there/path", false, "must have no path behind the host and the port"),
        ("http://there", true, "must begin with https:// where --source-ca-file is given"),
    ] {
        let error = check_source(endpoint, has_tls).unwrap_err().to_string();
        let text = format!("the address of the source: {rule}: value=`{endpoint}`");
        assert_eq!(error, text);
    }
    assert!(check_source("https://there", true).is_ok());
    assert!(check_source("http://there:1", false).is_ok());
    let secret = check_source("http://user:SECRET@there", false).unwrap_err().to_string();
    assert!(!secret.contains("SECRET"), "{secret}");
}
