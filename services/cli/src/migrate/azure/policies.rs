//! Stored access policies of a table or a queue of an account.

use trestle_proto::service::v1::AccessPolicy;

use super::{
    connection::Authority,
    http::{Ask, Http, Service},
    xml::{self, Fields},
};
use crate::{
    datetime,
    errors::CliError,
    migrate::{notes::Left, plan::Plan},
};

/// Reads the policies; what cannot be read is left in the plan.
///
/// # Errors
/// A source that fails.
pub(super) async fn read(
    http: &Http,
    service: Service,
    path: String,
    whose: &str,
    plan: &mut Plan,
) -> Result<Vec<AccessPolicy>, CliError> {
    let mut leave = |why: String| {
        let (whose, which) = (whose.to_owned(), "access policies".to_owned());
        plan.left.push(Left { whose, which, why });
        Ok(Vec::new())
    };
    if matches!(http.connection().authority, Authority::Signature(_)) {
        return leave("a signature may not read them: set them here, or give a key".to_owned());
    }
    let ask = Ask::get(service, path, "comp=acl".to_owned());
    let answer =
        http.ask(&ask).await.map_err(|failure| failure.of(&format!("policies of {whose}")))?;
    let read = xml::parse(&answer.body, "SignedIdentifier")
        .and_then(|answer| answer.records.iter().map(policy).collect::<Result<Vec<_>, _>>());
    read.or_else(leave)
}

fn policy(fields: &Fields) -> Result<AccessPolicy, String> {
    let id = fields.get("Id").unwrap_or_default().to_owned();
    let text = |name: &str| {
        let text = fields.get(name).map(str::trim).filter(|text| !text.is_empty());
        text.map(str::to_owned)
    };
    let time = |name: &str| {
        let read = |text: String| {
            let rule = || format!("policy `{id}`: time `{text}`: {}", datetime::RULE);
            datetime::parse(&full(&text)).ok_or_else(rule)
        };
        text(name).map(read).transpose()
    };
    let (start_time, expiry_time) = (time("AccessPolicy/Start")?, time("AccessPolicy/Expiry")?);
    let permissions = text("AccessPolicy/Permission");
    Ok(AccessPolicy { start_time, expiry_time, permissions, id: id.clone() })
}

/// A time with all its parts: policies may leave out the seconds, or the time of the day.
fn full(text: &str) -> String {
    match text.len() {
        10 => format!("{text}T00:00:00Z"),
        17 if text.ends_with('Z') => {
            let minutes = text.trim_end_matches('Z');
            format!("{minutes}:00Z")
        }
        _ => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

    use super::*;

    #[test]
    fn policies_keep_what_they_say_and_what_they_leave_out() {
        let xml = "<SignedIdentifiers><SignedIdentifier><Id>a</Id><AccessPolicy>\
            <Start>2026-01-02</Start><Expiry>2026-01-02T03:04Z</Expiry>\
            <Permission>raud</Permission></AccessPolicy></SignedIdentifier>\
            <SignedIdentifier><Id>bare</Id></SignedIdentifier></SignedIdentifiers>";
        let records = xml::parse(xml.as_bytes(), "SignedIdentifier").unwrap().records;

        let read: Vec<_> = records.iter().map(|record| policy(record).unwrap()).collect();

        let shown = |at: &Option<prost_types::Timestamp>| datetime::format(&at.unwrap()).unwrap();
        assert_eq!(shown(&read[0].start_time), "2026-01-02T00:00:00Z");
        assert_eq!(shown(&read[0].expiry_time), "2026-01-02T03:04:00Z");
        assert_eq!(read[0].permissions.as_deref(), Some("raud"));
        assert_eq!(read[1], AccessPolicy { id: "bare".to_owned(), ..AccessPolicy::default() });
    }
}
