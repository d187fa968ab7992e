//! Tests of the settings that only REST uses: the default version and the website.

use super::*;
use crate::api::parse::tests::assert_rejected;

fn website(index: &str, error: &str, default_index: &str) -> proto::StaticWebsite {
    proto::StaticWebsite {
        enabled: true,
        index_document: index.to_owned(),
        error_document_404_path: error.to_owned(),
        default_index_document_path: default_index.to_owned(),
    }
}

fn current() -> RestSettings {
    let website =
        Website { is_enabled: true, index_document: "i".to_owned(), ..Default::default() };
    RestSettings { default_version: "2019-12-12".to_owned(), website }
}

/// The names of the fields of the website that are rejected.
fn rejected_fields(stated: proto::StaticWebsite) -> Vec<String> {
    let Err(fault) = rest_settings(None, Some(stated)) else { return Vec::new() };
    assert_eq!(fault.reason, Reason::InvalidServiceProperty);
    let fields = fault.violations.iter();
    fields.map(|it| it.field.trim_start_matches("static_website.").to_owned()).collect()
}

#[test]
fn a_part_that_the_request_does_not_state_remains() {
    let unchanged = rest_settings(None, None).expect("valid");
    assert!(unchanged.is_empty());
    assert_eq!(unchanged.apply(current()), current());

    let version = rest_settings(Some("2021-12-02".to_owned()), None).expect("valid");
    assert!(!version.is_empty());
    let expected = RestSettings { default_version: "2021-12-02".to_owned(), ..current() };
    assert_eq!(version.apply(current()), expected);

    let stated = website("", "404.html", "app/index.html");
    let website = rest_settings(None, Some(stated)).expect("valid").apply(current()).website;
    let expected = Website {
        is_enabled: true,
        index_document: String::new(),
        error_document: "404.html".to_owned(),
        default_index_document: "app/index.html".to_owned(),
    };
    assert_eq!(website, expected, "a website is replaced as a whole");
}

#[test]
fn an_empty_version_removes_the_default_and_another_text_than_a_date_is_rejected() {
    let removed = rest_settings(Some(String::new()), None).expect("valid");
    assert!(!removed.is_empty());
    assert_eq!(removed.apply(current()).default_version, "");
    for text in ["latest", "2021-13-02", "2021-12-32", "2021-12-2", "2021/12/02", " 2021-12-02"] {
        let expected = [(Reason::InvalidServiceProperty, "default_service_version")];
        assert_rejected(rest_settings(Some(text.to_owned()), None), &expected);
    }
}

#[test]
fn documents_of_a_website_are_accepted_at_their_bounds_and_rejected_past_those() {
    let (none, long) = ("", "é".repeat(1024));
    for stated in [
        website(&"é".repeat(255), &long, none),
        website(none, &long, &long),
        website(none, "a//b/", "a/"),
        website(none, none, none),
    ] {
        assert_eq!(rejected_fields(stated), Vec::<String>::new());
    }
    let (index, error, default_index) =
        ("index_document", "error_document_404_path", "default_index_document_path");
    let longer = "é".repeat(1025);
    for (stated, fields) in [
        (website(&"a".repeat(256), none, none), vec![index]),
        (website("a/b", none, none), vec![index]),
        (website(none, "/404.html", none), vec![error]),
        (website(none, &longer, &longer), vec![error, default_index]),
        (website(none, none, "/"), vec![default_index]),
        (website("\u{1}", "\u{0}", none), vec![index, error]),
        (website(none, none, "\u{FFFE}"), vec![default_index]),
        (website("i", none, "d"), vec![default_index]),
    ] {
        assert_eq!(rejected_fields(stated), fields);
    }
}
