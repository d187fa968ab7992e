use base64::{Engine as _, engine::general_purpose::STANDARD};
use http::{HeaderMap, HeaderName, HeaderValue};
use trestle_model::time::Ticks;

use super::word_order;
use crate::{
    account::{Account, AccountKey, AccountSet},
    shared_key::{Scheme, SignedRequest},
    spec::QUEUE,
};

const DATE: &str = "Fri, 21 Nov 2025 12:00:00 GMT";
const ACCOUNT: &str = "devstoreaccount1";

fn now(seconds: i64) -> Ticks {
    // The date above.
    Ticks::from_unix(1_763_726_400 + seconds, 0).expect("in range")
}

fn headers(of: &[(&'static str, &'static str)]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (name, value) in of {
        headers.append(HeaderName::from_static(name), HeaderValue::from_static(value));
    }
    headers
}

/// The headers of every request of the worked examples, and more.
fn dated(more: &[(&'static str, &'static str)]) -> HeaderMap {
    let mut all = headers(&[("x-ms-version", "2021-12-02"), ("x-ms-date", DATE)]);
    all.extend(headers(more));
    all
}

fn signed<'a>(method: &'a str, headers: &'a HeaderMap, target: &'a str) -> SignedRequest<'a> {
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    SignedRequest { service: &QUEUE, scheme: Scheme::Full, method, headers, path, query }
}

fn accounts() -> AccountSet {
    [Account::development()].into_iter().collect()
}

/// Whether the text, signed with the development key, is accepted as the signature of the request.
fn passes(request: &SignedRequest<'_>, text: &str) -> bool {
    let signature = AccountKey::development().sign(text);
    request.verify(ACCOUNT, &signature, &accounts(), now(0)).is_ok()
}

/// Method, target, further headers, the text that is signed and its signature.
type Vector = (
    &'static str,
    &'static str,
    &'static [(&'static str, &'static str)],
    &'static str,
    &'static str,
);

const QUEUES: [Vector; 3] = [
    (
        "POST",
        "/devstoreaccount1/orders/messages?visibilitytimeout=30&messagettl=3600",
        &[
            ("content-type", "application/xml"),
            ("content-length", "103"),
            ("x-ms-client-request-id", "11111111-2222-3333-4444-555555555555"),
        ],
        "POST\n\n\n103\n\napplication/xml\n\n\n\n\n\n\n\
         x-ms-client-request-id:11111111-2222-3333-4444-555555555555\n\
         x-ms-date:Fri, 21 Nov 2025 12:00:00 GMT\nx-ms-version:2021-12-02\n\
         /devstoreaccount1/devstoreaccount1/orders/messages\nmessagettl:3600\n\
         visibilitytimeout:30",
        "czTjPjPHq5FsGXugGgPnBu02mTVgORgnoZkVCcwb+dI=",
    ),
    (
        "PUT",
        "/devstoreaccount1/orders/messages/db200fca-7c77-4227-ad11-ccec0ff6c50b\
         ?popreceipt=AgAAAAMAAAAAAAAANcCsz5Yr1QE%3D&visibilitytimeout=0",
        &[("content-type", "application/xml"), ("content-length", "98")],
        "PUT\n\n\n98\n\napplication/xml\n\n\n\n\n\n\nx-ms-date:Fri, 21 Nov 2025 12:00:00 GMT\n\
         x-ms-version:2021-12-02\n/devstoreaccount1/devstoreaccount1/orders/messages/\
         db200fca-7c77-4227-ad11-ccec0ff6c50b\npopreceipt:AgAAAAMAAAAAAAAANcCsz5Yr1QE=\n\
         visibilitytimeout:0",
        "qXu0dL16IQYYr5AO89VOXpolk1EuakAB/R9IxmKnfpg=",
    ),
    (
        "GET",
        "/devstoreaccount1/?comp=list&include=metadata&prefix=q",
        &[],
        "GET\n\n\n\n\n\n\n\n\n\n\n\nx-ms-date:Fri, 21 Nov 2025 12:00:00 GMT\n\
         x-ms-version:2021-12-02\n/devstoreaccount1/devstoreaccount1/\ncomp:list\n\
         include:metadata\nprefix:q",
        "T6HQruSlZHw+RHL9UXw1e6NhR7f8A03h7d8zw2nanTY=",
    ),
];

const BLOBS: [Vector; 4] = [
    (
        "PUT",
        "/devstoreaccount1/logs/dir/a%20b.txt",
        &[
            ("content-length", "5"),
            ("content-type", "application/octet-stream"),
            ("if-none-match", "*"),
            ("x-ms-blob-type", "BlockBlob"),
            ("x-ms-blob-content-type", "text/plain"),
            ("x-ms-meta-k", "v"),
        ],
        "PUT\n\n\n5\n\napplication/octet-stream\n\n\n\n*\n\n\nx-ms-blob-content-type:text/plain\n\
         x-ms-blob-type:BlockBlob\nx-ms-date:Fri, 21 Nov 2025 12:00:00 GMT\nx-ms-meta-k:v\n\
         x-ms-version:2021-12-02\n/devstoreaccount1/devstoreaccount1/logs/dir/a%20b.txt",
        "cw92UWfGsHgmxrtE9w8ai023KEhycrioiLemAq2siec=",
    ),
    (
        "GET",
        "/devstoreaccount1/logs/dir/a%20b.txt",
        &[("x-ms-range", "bytes=0-31")],
        "GET\n\n\n\n\n\n\n\n\n\n\n\nx-ms-date:Fri, 21 Nov 2025 12:00:00 GMT\n\
         x-ms-range:bytes=0-31\nx-ms-version:2021-12-02\n\
         /devstoreaccount1/devstoreaccount1/logs/dir/a%20b.txt",
        "4rkNJvS3dTBUuOyTxLs+okyjaefMfxcfv8UNvizhifE=",
    ),
    (
        "PUT",
        "/devstoreaccount1/logs?restype=container",
        &[("content-length", "0")],
        "PUT\n\n\n\n\n\n\n\n\n\n\n\nx-ms-date:Fri, 21 Nov 2025 12:00:00 GMT\n\
         x-ms-version:2021-12-02\n/devstoreaccount1/devstoreaccount1/logs\nrestype:container",
        "NI6pGOWhwXrAwN9GmEAEzVLB6wdJ6Xg4cfXMYaBBUYU=",
    ),
    (
        "GET",
        "/devstoreaccount1/logs?restype=container&comp=list&prefix=a%20b%2F&delimiter=%2F",
        &[],
        "GET\n\n\n\n\n\n\n\n\n\n\n\nx-ms-date:Fri, 21 Nov 2025 12:00:00 GMT\n\
         x-ms-version:2021-12-02\n/devstoreaccount1/devstoreaccount1/logs\ncomp:list\n\
         delimiter:/\nprefix:a b/\nrestype:container",
        "ASSKNPdNjhyCX62P+JnY+ehpFyOqYXakW5wr9i92AAc=",
    ),
];

#[test]
fn requests_are_signed_as_azure_signs_them() {
    for (method, target, more, text, signature) in QUEUES.into_iter().chain(BLOBS) {
        let headers = dated(more);
        let request = signed(method, &headers, target);
        assert_eq!(request.string_to_sign(ACCOUNT), text);
        let made = request.sign(ACCOUNT, &AccountKey::development());
        assert_eq!(STANDARD.encode(made), signature, "{text}");
        assert!(request.verify(ACCOUNT, &made, &accounts(), now(0)).is_ok(), "{text}");

        let elsewhere = SignedRequest { path: "/devstoreaccount1/other", ..request };
        assert!(elsewhere.verify(ACCOUNT, &made, &accounts(), now(0)).is_err(), "{text}");
        let otherwise = SignedRequest { query: "comp=acl", ..request };
        assert!(otherwise.verify(ACCOUNT, &made, &accounts(), now(0)).is_err(), "{text}");
        let mut extended = headers.clone();
        extended.insert("x-ms-meta-added", HeaderValue::from_static("v"));
        let added = SignedRequest { headers: &extended, ..request };
        assert!(added.verify(ACCOUNT, &made, &accounts(), now(0)).is_err(), "{text}");
        assert!(request.verify("absent", &made, &accounts(), now(0)).is_err(), "{text}");
    }
}

#[test]
fn accepts_the_date_in_the_standard_header() {
    let headers =
        headers(&[("date", DATE), ("range", "bytes=1-2"), ("x-ms-version", "2023-11-03")]);
    let request = signed("GET", &headers, "/devstoreaccount1/logs/dir/a%20b.txt");

    let made = request.sign(ACCOUNT, &AccountKey::development());

    assert_eq!(STANDARD.encode(made), "LbKDqJF7FRzxjSriy1rA3y/BeMhIELv7CLcZDpMJ5Us=");
    assert!(request.verify(ACCOUNT, &made, &accounts(), now(899)).is_ok());
}

#[test]
fn rejects_a_date_too_far_from_now() {
    let headers = dated(&[]);
    let request = signed("GET", &headers, "/devstoreaccount1/orders");
    let made = request.sign(ACCOUNT, &AccountKey::development());
    let verifies = |seconds| request.verify(ACCOUNT, &made, &accounts(), now(seconds)).is_ok();

    assert!(verifies(900) && verifies(-900));
    assert!(!verifies(901) && !verifies(-901));
    let undated = HeaderMap::new();
    let request = signed("GET", &undated, "/devstoreaccount1/orders");
    assert!(!passes(&request, &request.string_to_sign(ACCOUNT)));
}

#[test]
fn a_length_of_zero_is_signed_by_old_versions_only() {
    let text = |version| {
        let headers = headers(&[("content-length", "0"), ("x-ms-version", version)]);
        signed("PUT", &headers, "/a/q").string_to_sign("a")
    };

    assert!(text("2014-02-14").starts_with("PUT\n\n\n0\n\n"));
    assert!(text("2015-02-21").starts_with("PUT\n\n\n\n\n"));
    assert!(text("2026-10-06").starts_with("PUT\n\n\n\n\n"));
}

#[test]
fn a_header_without_a_value_is_signed_by_newer_versions_only() {
    let text = |version| {
        let headers = headers(&[("x-ms-meta-k", ""), ("x-ms-version", version)]);
        signed("PUT", &headers, "/a/q").string_to_sign("a")
    };

    assert!(!text("2015-12-11").contains("x-ms-meta-k"));
    assert!(text("2016-05-31").contains("\nx-ms-meta-k:\n"));
}

#[test]
fn headers_may_be_sorted_by_bytes_or_in_the_culture_aware_order() {
    let headers = dated(&[("x-ms-tag-x", "1"), ("x-ms-tags", "2"), ("x-ms-meta", "{}")]);
    let request = signed("PUT", &headers, "/devstoreaccount1/orders");
    let by_bytes = request.string_to_sign(ACCOUNT);
    let (both, swapped) = ("x-ms-tag-x:1\nx-ms-tags:2\n", "x-ms-tags:2\nx-ms-tag-x:1\n");

    assert!(by_bytes.contains(both), "{by_bytes}");
    assert!(passes(&request, &by_bytes));
    assert!(passes(&request, &by_bytes.replace(both, swapped)));
    let (version, date) = ("x-ms-version:2021-12-02\n", format!("x-ms-date:{DATE}\n"));
    let neither = by_bytes.replace(version, "").replace(&date, &format!("{version}{date}"));
    assert!(!passes(&request, &neither));
}

#[test]
fn names_are_sorted_as_in_the_table_of_the_python_client() {
    let sorted = [
        "x-ms-a_b",
        "x-ms-a0",
        "x-ms-ab",
        "x-ms-a-b",
        "x-ms-ab-c",
        "x-ms-a-bc",
        "x-ms-b",
        "x-ms-tags",
        "x-ms-tag-x",
        "x-ms-version",
        "x-ms-visible",
    ];

    let mut names = sorted;
    names.reverse();
    names.sort_by_key(|name| word_order(name));

    assert_eq!(names, sorted);
}

#[test]
fn white_space_in_a_value_may_be_collapsed() {
    let headers = dated(&[("x-ms-meta-k", "two  spaces\tand a tab")]);
    let request = signed("PUT", &headers, "/devstoreaccount1/orders");
    let kept = request.string_to_sign(ACCOUNT);

    assert!(passes(&request, &kept));
    let collapsed = kept.replace("two  spaces\tand a tab", "two spaces and a tab");
    assert_ne!(kept, collapsed);
    assert!(passes(&request, &collapsed));
    assert!(!passes(&request, &kept.replace("two  spaces", "twospaces")));
}

#[test]
fn the_address_of_the_secondary_is_signed_in_any_of_three_ways() {
    let headers = dated(&[]);
    let request = signed("GET", &headers, "/devstoreaccount1-secondary/q?comp=metadata");
    let in_path = request.string_to_sign(ACCOUNT);
    let resource = "/devstoreaccount1/devstoreaccount1-secondary/q\n";

    assert!(in_path.contains(resource), "{in_path}");
    assert!(passes(&request, &in_path));
    for other in [
        "/devstoreaccount1/devstoreaccount1/q\n",
        "/devstoreaccount1-secondary/devstoreaccount1-secondary/q\n",
    ] {
        assert!(passes(&request, &in_path.replace(resource, other)), "{other}");
    }
    assert!(!passes(&request, &in_path.replace(resource, "/devstoreaccount1/q\n")));
    // Only if the whole segment is the account's.
    let other = signed("GET", &headers, "/devstoreaccount1-secondarys/q?comp=metadata");
    assert!(!passes(&other, &in_path.replace(resource, "/devstoreaccount1/devstoreaccount1s/q\n")));
}

#[test]
fn parameters_are_decoded_and_joined_with_lower_case_names() {
    let headers = dated(&[]);
    let request = signed("GET", &headers, "/q?B=2&a=x%2By+z&B=1&b=2&&flag&c=%C3%A4%FF");

    let text = request.string_to_sign("a");

    assert!(text.ends_with("/a/q\na:x+y z\nb:1,2,2\nc:ä\u{fffd}\nflag:"), "{text}");
    let root = SignedRequest { path: "", query: "", ..request };
    assert!(root.string_to_sign("a").ends_with("\n/a/"));
}

#[test]
fn the_lite_scheme_signs_fewer_headers_and_comp_alone() {
    let by_date = headers(&[("date", DATE)]);
    let headers = dated(&[("content-type", "application/xml"), ("content-length", "5")]);
    let request = signed("PUT", &headers, "/devstoreaccount1/q?comp=acl&timeout=5");
    let lite = SignedRequest { scheme: Scheme::Lite, ..request };

    let text = lite.string_to_sign(ACCOUNT);

    assert_eq!(
        text,
        "PUT\n\napplication/xml\n\nx-ms-date:Fri, 21 Nov 2025 12:00:00 GMT\n\
         x-ms-version:2021-12-02\n/devstoreaccount1/devstoreaccount1/q?comp=acl"
    );
    assert!(passes(&lite, &text) && !passes(&request, &text));

    let plain = SignedRequest { headers: &by_date, query: "", ..lite };
    assert!(plain.string_to_sign(ACCOUNT).starts_with("PUT\n\n\nFri, 21 Nov 2025 12:00:00 GMT\n/"));
}

#[test]
fn non_ascii_values_are_signed_as_text() {
    let mut headers = dated(&[]);
    headers.append("x-ms-meta-utf", HeaderValue::from_bytes("ä".as_bytes()).expect("a value"));
    headers.append("x-ms-meta-latin", HeaderValue::from_bytes(b" \xe4 ").expect("a value"));
    headers.append("x-ms-meta-two", HeaderValue::from_static("a"));
    headers.append("x-ms-meta-two", HeaderValue::from_static(" b "));
    let request = signed("PUT", &headers, "/q");

    let text = request.string_to_sign("a");

    for line in ["x-ms-meta-utf:ä\n", "x-ms-meta-latin:ä\n", "x-ms-meta-two:a,b\n"] {
        assert!(text.contains(line), "{text}");
    }
}

#[test]
fn a_request_with_the_signed_text_of_another_one_is_rejected() {
    let source = [("x-ms-copy-source", "http://h/c/a,b")];
    let split = [("x-ms-copy-source", "http://h/c/a"), ("x-ms-copy-source", "b")];
    let (plain, source, split) = (dated(&[]), dated(&source), dated(&split));
    for (honest, other, rule) in [
        (
            (&plain, "/q?blockid=QUFB&comp=block"),
            (&plain, "/q?blockid=QUFB%0Acomp:block"),
            "line feed",
        ),
        (
            (&plain, "/q?comp=list&prefix=a,b"),
            (&plain, "/q?comp=list&prefix=a&prefix=b"),
            "repeated",
        ),
        ((&plain, "/q?snapshot=2026:1"), (&plain, "/q?snapshot:2026=1"), "no colon"),
        ((&plain, "/q?a=1&b=2"), (&plain, "/q?a%3A1%0Ab=2"), "no line feed"),
        ((&source, "/q"), (&split, "/q"), "x-ms-copy-source: must not be repeated"),
    ] {
        let (honest, other) = (signed("PUT", honest.0, honest.1), signed("PUT", other.0, other.1));
        let text = honest.string_to_sign(ACCOUNT);
        let signature = AccountKey::development().sign(&text);
        let error = other.verify(ACCOUNT, &signature, &accounts(), now(0)).expect_err(rule);

        assert!(passes(&honest, &text), "{rule}");
        assert_eq!(other.string_to_sign(ACCOUNT), text, "{rule}: it covers both");
        assert!(error.message.contains(rule), "{error:?}");
    }
}
