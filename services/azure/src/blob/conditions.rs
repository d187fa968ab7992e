//! The conditions of a request: its headers as those of a call.

use http::{HeaderName, header};
use trestle_model::fault::{Fault, Reason};
use trestle_proto::blob::v1 as proto;

use super::header::{
    self as names, BLOB_IF_MATCH, BLOB_IF_MODIFIED_SINCE, BLOB_IF_NONE_MATCH,
    BLOB_IF_UNMODIFIED_SINCE, IF_SEQUENCE_AT_MOST, IF_SEQUENCE_EQUAL, IF_SEQUENCE_LESS, IF_TAGS,
    LEASE_ID, SOURCE_IF_MATCH, SOURCE_IF_MODIFIED_SINCE, SOURCE_IF_NONE_MATCH, SOURCE_IF_TAGS,
    SOURCE_IF_UNMODIFIED_SINCE, SOURCE_LEASE_ID, TAG_CONDITIONS,
};
use crate::head::RequestHead;

/// The names of the headers of one set of conditions.
struct ConditionHeaders {
    if_match: HeaderName,
    if_none_match: HeaderName,
    if_modified_since: HeaderName,
    if_unmodified_since: HeaderName,
    if_tags: HeaderName,
    lease_id: HeaderName,
}

/// The conditions on the blob.
///
/// # Errors
/// A malformed time.
pub(super) fn conditions(head: &RequestHead) -> Result<Option<proto::BlobConditions>, Fault> {
    let names = ConditionHeaders {
        if_match: header::IF_MATCH,
        if_none_match: header::IF_NONE_MATCH,
        if_modified_since: header::IF_MODIFIED_SINCE,
        if_unmodified_since: header::IF_UNMODIFIED_SINCE,
        if_tags: IF_TAGS,
        lease_id: LEASE_ID,
    };
    read(head, &names)
}

/// The conditions of an operation on tags: by headers of its own, or those of HTTP.
///
/// # Errors
/// A malformed time, or headers of both kinds.
pub(super) fn tag_conditions(head: &RequestHead) -> Result<Option<proto::BlobConditions>, Fault> {
    let has = |name: &HeaderName| head.headers.contains_key(name);
    let Some(own) = TAG_CONDITIONS.into_iter().find(has) else { return conditions(head) };
    let others = [
        header::IF_MATCH,
        header::IF_NONE_MATCH,
        header::IF_MODIFIED_SINCE,
        header::IF_UNMODIFIED_SINCE,
    ];
    if let Some(other) = others.into_iter().find(has) {
        let rule = format!("must not be combined with {other}");
        let reason = Reason::MultipleConditionHeadersNotSupported;
        return Err(Fault::violation(reason, own.as_str(), rule));
    }
    let names = ConditionHeaders {
        if_match: BLOB_IF_MATCH,
        if_none_match: BLOB_IF_NONE_MATCH,
        if_modified_since: BLOB_IF_MODIFIED_SINCE,
        if_unmodified_since: BLOB_IF_UNMODIFIED_SINCE,
        if_tags: IF_TAGS,
        lease_id: LEASE_ID,
    };
    read(head, &names)
}

/// The conditions on the source of a copy.
///
/// # Errors
/// A malformed time.
pub(super) fn source_conditions(
    head: &RequestHead,
) -> Result<Option<proto::BlobConditions>, Fault> {
    let names = ConditionHeaders {
        if_match: SOURCE_IF_MATCH,
        if_none_match: SOURCE_IF_NONE_MATCH,
        if_modified_since: SOURCE_IF_MODIFIED_SINCE,
        if_unmodified_since: SOURCE_IF_UNMODIFIED_SINCE,
        if_tags: SOURCE_IF_TAGS,
        lease_id: SOURCE_LEASE_ID,
    };
    read(head, &names)
}

fn read(
    head: &RequestHead,
    names: &ConditionHeaders,
) -> Result<Option<proto::BlobConditions>, Fault> {
    let text = |name| names::text(head, name).unwrap_or_default().to_owned();
    let conditions = proto::BlobConditions {
        if_match: etags(head, &names.if_match)?,
        if_none_match: etags(head, &names.if_none_match)?,
        if_modified_since: names::time(head, &names.if_modified_since)?,
        if_unmodified_since: names::time(head, &names.if_unmodified_since)?,
        lease_id: text(&names.lease_id),
        if_tags: text(&names.if_tags),
    };
    Ok((conditions != proto::BlobConditions::default()).then_some(conditions))
}

/// The etags in a header. One that is there and has none would be no condition at all.
fn etags(head: &RequestHead, name: &HeaderName) -> Result<Vec<String>, Fault> {
    let Some(text) = head.header(name) else { return Ok(Vec::new()) };
    let etags = text.split(',').map(str::trim_ascii);
    if etags.clone().any(str::is_empty) {
        let rule = "must have an etag before and after each comma";
        return Err(names::invalid(name, text, rule));
    }
    Ok(etags.map(str::to_owned).collect())
}

/// The lease id of a request.
pub(super) fn lease_id(head: &RequestHead) -> String {
    names::text(head, &LEASE_ID).unwrap_or_default().to_owned()
}

/// The conditions on a container, which has no others.
///
/// # Errors
/// A malformed time.
pub(super) fn container_conditions(
    head: &RequestHead,
) -> Result<Option<proto::ContainerConditions>, Fault> {
    let conditions = proto::ContainerConditions {
        if_modified_since: names::time(head, &header::IF_MODIFIED_SINCE)?,
        if_unmodified_since: names::time(head, &header::IF_UNMODIFIED_SINCE)?,
        lease_id: lease_id(head),
    };
    Ok((conditions != proto::ContainerConditions::default()).then_some(conditions))
}

/// The conditions on the sequence number of a page blob.
///
/// # Errors
/// Another value than a number.
pub(super) fn sequence_conditions(
    head: &RequestHead,
) -> Result<Option<proto::SequenceConditions>, Fault> {
    let conditions = proto::SequenceConditions {
        at_most: names::number(head, &IF_SEQUENCE_AT_MOST)?,
        less_than: names::number(head, &IF_SEQUENCE_LESS)?,
        equal: names::number(head, &IF_SEQUENCE_EQUAL)?,
    };
    Ok((conditions != proto::SequenceConditions::default()).then_some(conditions))
}

#[cfg(test)]
mod tests {
    use prost_types::Timestamp;

    use super::*;
    use crate::blob::fixture::head;

    #[test]
    fn the_headers_of_a_request_are_its_conditions() {
        let read = conditions(&head(
            "/c/b",
            &[
                ("if-match", "\"a\", b"),
                ("if-none-match", "*"),
                ("if-modified-since", "Fri, 21 Nov 2025 12:00:00 GMT"),
                ("x-ms-lease-id", "id"),
                ("x-ms-if-tags", "\"a\" = 'b'"),
            ],
        ));

        let expected = proto::BlobConditions {
            if_match: vec!["\"a\"".to_owned(), "b".to_owned()],
            if_none_match: vec!["*".to_owned()],
            if_modified_since: Some(Timestamp { seconds: 1_763_726_400, nanos: 0 }),
            if_unmodified_since: None,
            lease_id: "id".to_owned(),
            if_tags: "\"a\" = 'b'".to_owned(),
        };
        assert_eq!(read, Ok(Some(expected)));
        assert_eq!(conditions(&head("/c/b", &[])), Ok(None));
    }

    #[test]
    fn rejects_a_list_without_an_etag() {
        for value in ["", ",", "a,", "a,,b"] {
            let fault = conditions(&head("/c/b", &[("if-match", value)])).expect_err(value);
            assert_eq!(fault.reason, Reason::InvalidHeaderValue);
        }
    }

    #[test]
    fn the_source_of_a_copy_has_headers_of_its_own() {
        let head = head("/c/b", &[("x-ms-source-if-match", "a"), ("if-match", "b")]);
        let of = |conditions: Result<Option<proto::BlobConditions>, Fault>| {
            conditions.expect("valid").expect("some").if_match
        };
        assert_eq!(of(source_conditions(&head)), ["a"]);
        assert_eq!(of(conditions(&head)), ["b"]);
    }

    #[test]
    fn operations_on_tags_have_headers_of_their_own_or_those_of_http() {
        let own = ("x-ms-blob-if-match", "a");
        let of = |headers: &[(&str, &str)]| tag_conditions(&head("/c/b", headers));
        let if_match = vec!["a".to_owned()];
        let expected = proto::BlobConditions { if_match, ..proto::BlobConditions::default() };
        assert_eq!(of(&[own]), Ok(Some(expected.clone())));
        assert_eq!(of(&[("if-match", "a")]), Ok(Some(expected)));
        let fault = of(&[own, ("if-none-match", "b")]).expect_err("both");
        assert_eq!(fault.reason, Reason::MultipleConditionHeadersNotSupported);
    }

    #[test]
    fn rejects_another_form_of_a_time_with_the_header() {
        for value in [
            "2025-11-21",
            "Fri, 21 Nov 2025 12:00:00 +0100",
            "1763726400",
            "Thu, 21 Nov 2025 12:00:00 GMT x",
        ] {
            let head = head("/c/b", &[("if-unmodified-since", value)]);
            let fault = conditions(&head).expect_err(value);
            assert_eq!(fault.reason, Reason::InvalidHeaderValue);
            assert!(fault.message.starts_with("if-unmodified-since: "), "{}", fault.message);
            assert!(container_conditions(&head).is_err());
        }
    }

    #[test]
    fn sequence_numbers_are_compared_by_three_headers() {
        let head = head(
            "/c/b",
            &[("x-ms-if-sequence-number-le", "7"), ("x-ms-if-sequence-number-eq", "0")],
        );
        let expected =
            proto::SequenceConditions { at_most: Some(7), less_than: None, equal: Some(0) };
        assert_eq!(sequence_conditions(&head), Ok(Some(expected)));
    }
}
