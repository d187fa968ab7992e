//! Tests of the module.

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
