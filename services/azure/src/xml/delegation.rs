//! The request for a user delegation key, and the key.

use prost_types::Timestamp;
use trestle_model::fault::Fault;

use super::{element::Element, write::XmlWriter};
use crate::date::{DATE_RULE, read_date};

/// The times that a request for a key states.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyInfo {
    /// The start; none: at once.
    pub start: Option<Timestamp>,
    /// The expiry.
    pub expiry: Timestamp,
}

/// A key, as a response has it.
#[derive(Clone, Copy)]
pub struct DelegationKeyDocument<'a> {
    /// The user.
    pub user: &'a str,
    /// The issuer of its token.
    pub issuer: &'a str,
    /// The start.
    pub start: &'a str,
    /// The expiry.
    pub expiry: &'a str,
    /// The letter of the service.
    pub service: &'a str,
    /// The version of the request.
    pub version: &'a str,
    /// The key in base64, a secret.
    pub value: &'a str,
}

/// Reads a request for a key.
///
/// # Errors
/// A malformed document, or a time that is none. A key for a user of another tenant is not supported.
pub fn read_key_info(document: &[u8]) -> Result<KeyInfo, Fault> {
    let mut root = Element::root(document, "KeyInfo")?;
    let start = root.optional("Start").filter(|start| !start.text.trim_ascii().is_empty());
    let start = start.map(|start| start.value(DATE_RULE, read_date)).transpose()?;
    let expiry = root.required("Expiry")?.value(DATE_RULE, read_date)?;
    if let Some(tenant) = root.optional("DelegatedUserTid") {
        tenant
            .value("is not supported: a key is for the user of its bearer token only", |text| {
                text.is_empty().then_some(())
            })?;
    }
    root.finish()?;
    Ok(KeyInfo { start, expiry })
}

/// Writes a key.
#[must_use]
pub fn write_delegation_key(key: &DelegationKeyDocument<'_>) -> String {
    XmlWriter::document("UserDelegationKey", |writer| {
        writer.text("SignedOid", key.user);
        writer.text("SignedTid", key.issuer);
        writer.text("SignedStart", key.start);
        writer.text("SignedExpiry", key.expiry);
        writer.text("SignedService", key.service);
        writer.text("SignedVersion", key.version);
        writer.text("Value", key.value);
    })
}

#[cfg(test)]
mod tests {
    use trestle_model::fault::Reason;

    use super::*;

    const AT: &str = "2025-11-21T12:00:00Z";

    #[test]
    fn a_request_has_an_expiry_and_may_have_a_start() {
        let at = Timestamp { seconds: 1_763_726_400, nanos: 0 };
        for (start, expected) in [
            (format!("<Start>{AT}</Start>"), Some(at)),
            (" <Start>2025-11-21T13:00:00+01:00</Start>".to_owned(), Some(at)),
            ("<Start />".to_owned(), None),
            (String::new(), None),
            ("<DelegatedUserTid></DelegatedUserTid>".to_owned(), None),
        ] {
            let document = format!("<KeyInfo>{start}<Expiry>{AT}</Expiry></KeyInfo>");
            let read = read_key_info(document.as_bytes()).expect("a request");
            assert_eq!(read, KeyInfo { start: expected, expiry: at }, "{document}");
        }
    }

    #[test]
    fn other_requests_are_rejected_by_name() {
        let expiry = format!("<Expiry>{AT}</Expiry>");
        for (inside, field, reason) in [
            (String::new(), "KeyInfo", Reason::MissingRequiredXmlNode),
            ("<Expiry />".to_owned(), "Expiry", Reason::InvalidXmlNodeValue),
            ("<Expiry>tomorrow</Expiry>".to_owned(), "Expiry", Reason::InvalidXmlNodeValue),
            (format!("{expiry}<Start>0</Start>"), "Start", Reason::InvalidXmlNodeValue),
            (format!("{expiry}{expiry}"), "Expiry", Reason::InvalidXmlDocument),
            (format!("{expiry}<Role>owner</Role>"), "Role", Reason::InvalidXmlDocument),
            (
                format!("{expiry}<DelegatedUserTid>t</DelegatedUserTid>"),
                "DelegatedUserTid",
                Reason::InvalidXmlNodeValue,
            ),
        ] {
            let document = format!("<KeyInfo>{inside}</KeyInfo>");
            let fault = read_key_info(document.as_bytes()).expect_err("rejected");
            assert_eq!(fault.reason, reason, "{document}");
            assert!(fault.message.starts_with(field), "{document}: {}", fault.message);
        }
        let other = read_key_info(b"<Key/>").expect_err("rejected");
        assert_eq!(other.reason, Reason::InvalidXmlDocument);
    }

    #[test]
    fn a_key_has_its_elements_in_the_order_of_azure() {
        let key = DelegationKeyDocument {
            user: "u",
            issuer: "https://a?b&c",
            start: "s",
            expiry: "e",
            service: "b",
            version: "v",
            value: "k=",
        };
        assert!(write_delegation_key(&key).ends_with(
            "<UserDelegationKey><SignedOid>u</SignedOid><SignedTid>https://a?b&amp;c</SignedTid>\
             <SignedStart>s</SignedStart><SignedExpiry>e</SignedExpiry><SignedService>b</SignedService>\
             <SignedVersion>v</SignedVersion><Value>k=</Value></UserDelegationKey>"
        ));
    }
}
