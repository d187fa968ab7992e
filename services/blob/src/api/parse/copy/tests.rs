//! Tests of the source of a copy: what names it, whose it is, and where a violation is reported.

use super::*;
use crate::api::parse::tests::assert_rejected;
use trestle_model::fault::Fault;

const SNAPSHOT: &str = "2019-08-28T17:07:35.2821851Z";

fn hosts() -> CopyHosts {
    CopyHosts {
        own: "blob.example.com".parse().expect("hosts"),
        others: "https://archive.example.com".parse().expect("servers"),
    }
}

fn account() -> AccountName {
    AccountName::parse("team").expect("a name")
}

fn blob(container: &str, blob: &str, snapshot: &str, version_id: &str) -> proto::BlobSource {
    let text = str::to_owned;
    proto::BlobSource {
        container: text(container),
        blob: text(blob),
        snapshot: text(snapshot),
        version_id: text(version_id),
    }
}

/// The source in words.
fn source(blob: Option<proto::BlobSource>, url: &str) -> Result<String, Fault> {
    let mut parser = RequestParser::default();
    let source = parser.copy_source((blob, url), (&hosts(), &account()));
    parser.finish(source.map(|source| source.to_string()))
}

fn data(stated: StatedSource) -> Result<Option<(String, Option<RequestedRange>)>, Fault> {
    let mut parser = RequestParser::default();
    let source = parser.data_source(stated, (&hosts(), &account()));
    parser.finish(Some(source.map(|source| (source.from.to_string(), source.range))))
}

#[test]
fn a_blob_is_named_by_its_parts_or_by_its_url() {
    let snapshot = format!("logs/a/b?snapshot={SNAPSHOT}");
    let version = format!("logs/a/b?versionid={SNAPSHOT}");
    for (parts, query, expected) in [
        (blob("logs", "a/b", "", ""), String::new(), "logs/a/b"),
        (blob("logs", "a/b", SNAPSHOT, ""), format!("?snapshot={SNAPSHOT}"), &snapshot),
        (blob("logs", "a/b", "", SNAPSHOT), format!("?versionid={SNAPSHOT}"), &version),
    ] {
        assert_eq!(source(Some(parts), "").as_deref().ok(), Some(expected));
        for server in ["https://team.blob.example.com", "http://blob.example.com/team"] {
            let url = format!("{server}/logs/a/b{query}");
            assert_eq!(source(None, &url).as_deref().ok(), Some(expected), "{url}");
        }
    }
}

#[test]
fn the_words_for_another_server_withhold_the_query() {
    let url = "https://archive.example.com:443/a/b?sig=secret";
    let expected = "https://archive.example.com:443/a/b";
    assert_eq!(source(None, url).as_deref().ok(), Some(expected));
}

#[test]
fn a_copy_has_one_source() {
    let url = "https://archive.example.com/a";
    assert_rejected(source(None, ""), &[(Reason::MissingRequiredHeader, "source")]);
    let both = source(Some(blob("logs", "a", "", "")), url);
    assert_rejected(both, &[(Reason::InvalidHeaderValue, "source_url")]);
}

#[test]
fn parts_that_are_rejected_are_reported_in_the_field_that_states_them() {
    let invalid = blob("UPPER", "", "now", "then");
    let expected = [
        (Reason::InvalidQueryParameterValue, "source.version_id"),
        (Reason::InvalidQueryParameterValue, "source.snapshot"),
        (Reason::InvalidResourceName, "source.container"),
        (Reason::InvalidUri, "source.blob"),
    ];
    assert_rejected(source(Some(invalid), ""), &expected);

    let url = "https://team.blob.example.com/UPPER/a?snapshot=now";
    let expected = [
        (Reason::InvalidQueryParameterValue, "source_url"),
        (Reason::InvalidResourceName, "source_url"),
    ];
    assert_rejected(source(None, url), &expected);
}

#[test]
fn a_url_is_of_the_account_of_the_call_or_of_a_listed_server() {
    for (url, reason) in [
        ("https://other.blob.example.com/logs/a", Reason::CopyAcrossAccountsNotSupported),
        ("https://blob.example.com/other/logs/a", Reason::CopyAcrossAccountsNotSupported),
        ("https://evil.example.com/logs/a", Reason::CannotVerifyCopySource),
        ("http://169.254.169.254/latest", Reason::CannotVerifyCopySource),
        ("not a url", Reason::InvalidHeaderValue),
        ("https://user@archive.example.com/a", Reason::InvalidHeaderValue),
    ] {
        assert_rejected(source(None, url), &[(reason, "source_url")]);
    }
}

#[test]
fn a_url_and_the_text_of_a_source_have_at_most_2048_bytes() {
    let server = "https://archive.example.com/";
    let url = |length: usize| format!("{server}{}", "a".repeat(length - server.len()));
    assert!(source(None, &url(2048)).is_ok());
    let expected = [(Reason::InvalidHeaderValue, "source_url")];
    assert_rejected(source(None, &url(2049)), &expected);

    let text = |length: usize| {
        let mut parser = RequestParser::default();
        let text = parser.copy_source_text("a".repeat(length));
        parser.finish(Some(text))
    };
    assert_eq!(text(0).ok(), Some(None));
    assert_eq!(text(2048).ok().flatten().map(|it| it.len()), Some(2048));
    assert_rejected(text(2049), &[(Reason::InvalidHeaderValue, "source_text")]);
}

#[test]
fn a_call_without_any_part_of_a_source_has_data_of_its_own() {
    assert_eq!(data(StatedSource::default()).ok(), Some(None));
    // A range or conditions alone are of a source that is missing.
    let range = Some(proto::ByteRange { offset: 1, length: Some(2) });
    let conditions = Some(proto::BlobConditions::default());
    let missing = [(Reason::MissingRequiredHeader, "source")];
    assert_rejected(data(StatedSource { range, ..Default::default() }), &missing);
    assert_rejected(data(StatedSource { conditions, ..Default::default() }), &missing);

    let blob = Some(blob("logs", "a", "", ""));
    let found = data(StatedSource { blob: blob.clone(), range, ..Default::default() });
    let requested = RequestedRange { offset: 1, length: Some(2) };
    assert_eq!(found.ok().flatten(), Some(("logs/a".to_owned(), Some(requested))));
    let range = Some(proto::ByteRange { offset: 1, length: Some(0) });
    let empty = [(Reason::InvalidInput, "source_range.length")];
    assert_rejected(data(StatedSource { blob, range, ..Default::default() }), &empty);
}

#[test]
fn conditions_that_another_server_cannot_check_are_rejected_for_it_alone() {
    let conditions = Some(proto::BlobConditions {
        if_tags: "a = '1'".to_owned(),
        lease_id: "1f812371-a41d-49e6-b123-f4b542e851c5".to_owned(),
        ..Default::default()
    });
    let own = Some(blob("logs", "a", "", ""));
    let found =
        data(StatedSource { blob: own, conditions: conditions.clone(), ..Default::default() });
    assert!(found.is_ok(), "{found:?}");

    let url = "https://archive.example.com/a".to_owned();
    let fields = ["source_conditions.if_tags", "source_conditions.lease_id"];
    let expected = fields.map(|field| (Reason::InvalidHeaderValue, field));
    assert_rejected(data(StatedSource { url, conditions, ..Default::default() }), &expected);
}
