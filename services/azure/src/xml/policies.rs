//! Stored access policies: `SignedIdentifiers`.

use prost_types::Timestamp;
use trestle_model::fault::Fault;
use trestle_proto::service::v1::AccessPolicy;

use super::{element::Element, write::XmlWriter};
use crate::date::{DATE_RULE, precise_date, read_date};

/// Parses the policies of a resource; an empty body has none.
///
/// # Errors
/// A malformed document: its element and rule.
pub fn read_policies(body: &[u8]) -> Result<Vec<AccessPolicy>, Fault> {
    if body.is_empty() {
        return Ok(Vec::new());
    }
    let mut root = Element::root(body, "SignedIdentifiers")?;
    let mut policies = Vec::new();
    while let Some(identifier) = root.optional("SignedIdentifier") {
        policies.push(read_policy(identifier)?);
    }
    root.finish()?;
    Ok(policies)
}

fn read_policy(mut identifier: Element<'_>) -> Result<AccessPolicy, Fault> {
    let id = identifier.required("Id")?.into_text()?.into_owned();
    let mut policy = AccessPolicy { id, ..AccessPolicy::default() };
    if let Some(mut terms) = identifier.optional("AccessPolicy") {
        policy.start_time = time_of(terms.optional("Start"))?;
        policy.expiry_time = time_of(terms.optional("Expiry"))?;
        let permission = terms.optional("Permission").map(Element::into_text).transpose()?;
        policy.permissions =
            permission.filter(|letters| !letters.is_empty()).map(|letters| letters.into_owned());
        terms.finish()?;
    }
    identifier.finish()?;
    Ok(policy)
}

/// A time; an empty element counts as absent.
fn time_of(element: Option<Element<'_>>) -> Result<Option<Timestamp>, Fault> {
    let Some(element) = element else { return Ok(None) };
    element.value(DATE_RULE, |text| match text {
        "" => Some(None),
        _ => read_date(text).map(Some),
    })
}

/// The policies of a resource. Absent fields of a policy are omitted.
#[must_use]
pub fn write_policies(policies: &[AccessPolicy]) -> String {
    XmlWriter::document("SignedIdentifiers", |writer| {
        for policy in policies {
            writer.element("SignedIdentifier", |writer| {
                writer.text("Id", &policy.id);
                write_terms(writer, policy);
            });
        }
    })
}

fn write_terms(writer: &mut XmlWriter, policy: &AccessPolicy) {
    let date = |time: &Option<Timestamp>| time.as_ref().and_then(precise_date);
    let (start, expiry) = (date(&policy.start_time), date(&policy.expiry_time));
    let terms = [("Start", start), ("Expiry", expiry), ("Permission", policy.permissions.clone())];
    if terms.iter().all(|(_, term)| term.is_none()) {
        return;
    }
    writer.element("AccessPolicy", |writer| {
        for (name, term) in terms {
            if let Some(term) = term {
                writer.text(name, &term);
            }
        }
    });
}

#[cfg(test)]
mod tests {
    use trestle_model::fault::Reason;

    use super::*;

    fn at(seconds: i64, nanos: i32) -> Option<Timestamp> {
        Some(Timestamp { seconds, nanos })
    }

    #[test]
    fn policies_are_parsed_in_every_form_that_clients_send() {
        let body = "\u{feff}<?xml version='1.0' encoding='utf-8'?>\n<SignedIdentifiers>\n \
            <SignedIdentifier><Id>full</Id>\n<AccessPolicy><Start>2025-11-21T12:00:00Z</Start>\
            <Expiry>2025-11-21T12:00:00.1234567Z</Expiry><Permission>raup</Permission>\
            </AccessPolicy></SignedIdentifier><SignedIdentifier><Id>bare</Id></SignedIdentifier>\
            <SignedIdentifier><Id>empty</Id><AccessPolicy><Start/><Expiry></Expiry><Permission />\
            </AccessPolicy></SignedIdentifier></SignedIdentifiers>";

        let policies = read_policies(body.as_bytes()).expect("policies");

        let bare = |id: &str| AccessPolicy { id: id.to_owned(), ..Default::default() };
        let full = AccessPolicy {
            start_time: at(1_763_726_400, 0),
            expiry_time: at(1_763_726_400, 123_456_700),
            permissions: Some("raup".to_owned()),
            ..bare("full")
        };
        assert_eq!(policies, [full, bare("bare"), bare("empty")]);
        assert_eq!(read_policies(b""), Ok(Vec::new()));
        assert_eq!(read_policies(b"<SignedIdentifiers/>"), Ok(Vec::new()));
    }

    #[test]
    fn rejects_malformed_documents_of_policies_with_the_element() {
        let inside = |inside: &str| {
            let text = format!(
                "<SignedIdentifiers><SignedIdentifier>{inside}</SignedIdentifier>\
                 </SignedIdentifiers>"
            );
            let fault = read_policies(text.as_bytes()).expect_err(inside);
            (fault.reason, fault.message)
        };

        let (reason, message) = inside("");
        assert_eq!(reason, Reason::MissingRequiredXmlNode);
        assert!(message.contains("Id"), "{message}");
        let (reason, message) =
            inside("<Id>a</Id><AccessPolicy><Start>noon</Start></AccessPolicy>");
        assert_eq!(reason, Reason::InvalidXmlNodeValue);
        assert!(message.contains("Start") && message.contains("`noon`"), "{message}");
        for other in [
            "<Id>a</Id><Id>b</Id>",
            "<Id>a</Id><Policy/>",
            "<Id>a</Id><AccessPolicy><Begin/></AccessPolicy>",
            "<Id>a</Id><AccessPolicy>raup</AccessPolicy>",
            "<Id><b/></Id>",
        ] {
            assert_eq!(inside(other).0, Reason::InvalidXmlDocument, "{other}");
        }
        for body in [
            "<Policies/>",
            "<SignedIdentifiers>text</SignedIdentifiers>",
            "<SignedIdentifiers>&lt;SignedIdentifier&gt;</SignedIdentifiers>",
        ] {
            let fault = read_policies(body.as_bytes()).expect_err(body);
            assert_eq!(fault.reason, Reason::InvalidXmlDocument, "{body}");
        }
    }

    #[test]
    fn policies_survive_a_round_trip() {
        let policies = [
            AccessPolicy { id: "a<b".to_owned(), ..Default::default() },
            AccessPolicy {
                id: "some".to_owned(),
                start_time: at(1_763_726_400, 0),
                expiry_time: None,
                permissions: Some("r".to_owned()),
            },
        ];

        let text = write_policies(&policies);

        assert!(
            text.ends_with(
                "<SignedIdentifiers><SignedIdentifier><Id>a&lt;b</Id></SignedIdentifier>\
                 <SignedIdentifier><Id>some</Id><AccessPolicy>\
                 <Start>2025-11-21T12:00:00.0000000Z</Start><Permission>r</Permission>\
                 </AccessPolicy></SignedIdentifier></SignedIdentifiers>"
            ),
            "{text}"
        );
        assert_eq!(read_policies(text.as_bytes()).expect("policies"), policies);
        assert!(write_policies(&[]).ends_with("<SignedIdentifiers />"));
    }
}
