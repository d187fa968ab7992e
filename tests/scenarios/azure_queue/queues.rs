//! Queues themselves: create, delete, metadata, policies, lists.

use trestle_tests::{QueueRest, RestRequest, RestResponse};

#[tokio::test]
async fn recreating_a_queue_compares_metadata() {
    let rest = QueueRest::start().await;
    let create = |name: &'static str, value| {
        rest.send(RestRequest::queue("PUT", "/orders").with(name, value))
    };

    let created = create("x-ms-meta-kind", "a").await;
    assert_eq!((created.status, created.text()), (201, ""));
    assert_eq!(created.header("content-length"), "0");

    // The stray header of one client has no meaning.
    let again = RestRequest::queue("PUT", "/orders").with("x-ms-meta-kind", "a");
    let again = rest.send(again.with("x-ms-meta", "{'kind': 'a'}")).await;
    assert_eq!((again.status, again.text()), (204, ""));
    let other = create("x-ms-meta-kind", "b").await;
    assert_eq!(other.failure(), (409, "QueueAlreadyExists"));
    assert_eq!(rest.call("PUT", "/orders").await.failure(), (409, "QueueAlreadyExists"));

    let read = rest.call("GET", "/orders?comp=metadata").await;
    assert_eq!((read.status, read.header("x-ms-meta-kind")), (200, "a"));
    assert_eq!(read.header("x-ms-meta"), "");

    assert_eq!(rest.call("DELETE", "/orders").await.status, 204);
    assert_eq!(rest.call("DELETE", "/orders").await.failure(), (404, "QueueNotFound"));
    assert_eq!(create("x-ms-meta-kind", "b").await.status, 201);
}

#[tokio::test]
async fn set_metadata_replaces_all_and_get_returns_the_message_count() {
    let rest = QueueRest::start().await;
    rest.queue("orders").await;
    rest.message("orders", "", "one").await;
    rest.message("orders", "?visibilitytimeout=60", "delayed").await;

    let set = RestRequest::queue("PUT", "/orders?comp=metadata").with("x-ms-meta-first", "a b");
    assert_eq!(rest.send(set.with("x-ms-meta-second", "2")).await.status, 204);
    for method in ["GET", "HEAD"] {
        let read = rest.call(method, "/orders?comp=metadata").await;
        assert_eq!((read.status, read.text()), (200, ""));
        assert_eq!(read.header("x-ms-meta-first"), "a b");
        assert_eq!(read.header("x-ms-meta-second"), "2");
        assert_eq!(read.header("x-ms-approximate-messages-count"), "2");
    }

    assert_eq!(rest.call("PUT", "/orders?comp=metadata").await.status, 204);
    let read = rest.call("GET", "/orders?comp=metadata").await;
    assert_eq!(read.header("x-ms-meta-first"), "");
    assert_eq!(rest.call("DELETE", "/orders/messages").await.status, 204);
    let read = rest.call("GET", "/orders?comp=metadata").await;
    assert_eq!(read.header("x-ms-approximate-messages-count"), "0");
}

#[tokio::test]
async fn rejects_malformed_metadata() {
    let rest = QueueRest::start().await;
    rest.queue("orders").await;
    let set = || RestRequest::queue("PUT", "/orders?comp=metadata");
    let largest = "x".repeat(8191);
    let large = "x".repeat(8192);

    for (request, code) in [
        (set().and("x-ms-meta-k", "1").and("x-ms-meta-k", "2"), "InvalidMetadata"),
        (set().with("x-ms-meta-1k", "v"), "InvalidMetadata"),
        (set().with("x-ms-meta-", "v"), "EmptyMetadataKey"),
        (set().with("x-ms-meta-k", &large), "MetadataTooLarge"),
    ] {
        assert_eq!(rest.send(request).await.failure(), (400, code));
    }
    assert_eq!(rest.send(set().with("x-ms-meta-k", &largest)).await.status, 204);
    let read = rest.call("HEAD", "/orders?comp=metadata").await;
    assert_eq!((read.status, read.header("x-ms-meta-k")), (200, largest.as_str()));
}

#[tokio::test]
async fn head_of_a_missing_queue_has_the_error_code_header_only() {
    let rest = QueueRest::start().await;

    let head = rest.call("HEAD", "/nowhere?comp=metadata").await;

    assert_eq!((head.status, head.text()), (404, ""));
    assert_eq!(head.header("x-ms-error-code"), "QueueNotFound");
    let get = rest.call("GET", "/nowhere?comp=metadata").await;
    assert_eq!(get.failure(), (404, "QueueNotFound"));
}

#[tokio::test]
async fn rejects_queue_names_by_length_and_character() {
    let rest = QueueRest::start().await;
    let long = "q".repeat(64);

    for name in ["abc", &long[1..], "0-9"] {
        assert_eq!(rest.call("PUT", &format!("/{name}")).await.status, 201, "{name}");
    }
    for (name, code) in [
        ("ab", "OutOfRangeInput"),
        (long.as_str(), "OutOfRangeInput"),
        ("Orders", "InvalidResourceName"),
        ("or--ders", "InvalidResourceName"),
        ("-orders", "InvalidResourceName"),
        ("or_ders", "InvalidResourceName"),
        ("or%2Fders", "InvalidResourceName"),
        ("ord%00ers", "InvalidResourceName"),
    ] {
        assert_eq!(rest.call("PUT", &format!("/{name}")).await.failure(), (400, code), "{name}");
    }
}

/// Every queue, page by page.
async fn pages(rest: &QueueRest, query: &str) -> Vec<RestResponse> {
    let (mut pages, mut marker) = (Vec::new(), String::new());
    loop {
        let page = rest.call("GET", &format!("/?comp=list{query}{marker}")).await;
        assert_eq!(page.status, 200, "{page:?}");
        let next = page.only("NextMarker");
        pages.push(page);
        if next.is_empty() {
            return pages;
        }
        marker = format!("&marker={}", next.replace('+', "%2B").replace('/', "%2F"));
    }
}

#[tokio::test]
async fn queues_are_listed_in_pages_by_name() {
    let rest = QueueRest::start().await;
    for name in ["orders-2", "orders-1", "zebra", "orders-3"] {
        let request = RestRequest::queue("PUT", &format!("/{name}")).with("x-ms-meta-own", name);
        assert_eq!(rest.send(request).await.status, 201);
    }

    let plain = rest.call("GET", "/?comp=list").await;
    assert_eq!(plain.header("content-type"), "application/xml");
    assert_eq!(plain.all("Name"), ["orders-1", "orders-2", "orders-3", "zebra"]);
    assert!(
        !plain.text().contains("Metadata") && !plain.text().contains("MaxResults"),
        "{plain:?}"
    );
    let endpoint = format!("ServiceEndpoint=\"http://{}/devstoreaccount1\"", rest.address());
    assert!(plain.text().contains(&endpoint), "{plain:?}");

    let pages = pages(&rest, "&include=metadata&prefix=orders&maxresults=2").await;
    let names: Vec<_> = pages.iter().map(|page| page.all("Name")).collect();
    assert_eq!(names, [vec!["orders-1", "orders-2"], vec!["orders-3"]]);
    assert_eq!(pages[0].all("own"), ["orders-1", "orders-2"]);
    assert_eq!(
        (pages[0].only("Prefix"), pages[0].only("MaxResults")),
        ("orders".into(), "2".into())
    );
    assert_eq!(pages[0].all("Marker").len(), 0);
    assert_eq!(pages[1].only("Marker"), pages[0].only("NextMarker"));
}

#[tokio::test]
async fn rejects_invalid_list_parameters() {
    let rest = QueueRest::start().await;

    for value in ["1", "5000"] {
        assert_eq!(rest.call("GET", &format!("/?comp=list&maxresults={value}")).await.status, 200);
    }
    for value in ["0", "5001", "-1"] {
        let response = rest.call("GET", &format!("/?comp=list&maxresults={value}")).await;
        assert_eq!(response.failure(), (400, "OutOfRangeQueryParameterValue"));
        assert_eq!(response.only("QueryParameterName"), "maxresults");
        assert_eq!(response.only("QueryParameterValue"), value);
        assert_eq!(
            (response.only("MinimumAllowed"), response.only("MaximumAllowed")),
            ("1".into(), "5000".into())
        );
    }
    let response = rest.call("GET", "/?comp=list&maxresults=many").await;
    assert_eq!(response.failure(), (400, "InvalidQueryParameterValue"));
    let response = rest.call("GET", "/?comp=list&marker=anything").await;
    assert_eq!(response.failure(), (400, "InvalidMarker"));
}

#[tokio::test]
async fn access_policy_times_have_seven_decimals() {
    let rest = QueueRest::start().await;
    rest.queue("orders").await;
    let body = "<?xml version='1.0' encoding='utf-8'?>\n<SignedIdentifiers><SignedIdentifier>\
                <Id>one</Id><AccessPolicy><Start>2025-11-21</Start>\
                <Expiry>2026-11-21T08:30:00Z</Expiry><Permission>raup</Permission></AccessPolicy>\
                </SignedIdentifier><SignedIdentifier><Id>bare</Id></SignedIdentifier>\
                </SignedIdentifiers>";

    let set = rest.send(RestRequest::xml("PUT", "/orders?comp=acl", body)).await;
    assert_eq!((set.status, set.text()), (204, ""));
    let read = rest.call("GET", "/orders?comp=acl").await;
    assert_eq!(read.status, 200);
    assert!(
        read.text().ends_with(
            "<SignedIdentifiers><SignedIdentifier><Id>one</Id><AccessPolicy>\
             <Start>2025-11-21T00:00:00.0000000Z</Start>\
             <Expiry>2026-11-21T08:30:00.0000000Z</Expiry><Permission>raup</Permission>\
             </AccessPolicy></SignedIdentifier><SignedIdentifier><Id>bare</Id></SignedIdentifier>\
             </SignedIdentifiers>"
        ),
        "{read:?}"
    );
    assert_eq!(rest.call("HEAD", "/orders?comp=acl").await.status, 200);

    assert_eq!(rest.call("PUT", "/orders?comp=acl").await.status, 204);
    let read = rest.call("GET", "/orders?comp=acl").await;
    assert!(read.text().ends_with("<SignedIdentifiers />"), "{read:?}");
}

#[tokio::test]
async fn rejects_invalid_access_policies() {
    let rest = QueueRest::start().await;
    rest.queue("orders").await;
    let identifier = |id: &str, terms: &str| {
        format!(
            "<SignedIdentifier><Id>{id}</Id><AccessPolicy>{terms}</AccessPolicy></SignedIdentifier>"
        )
    };
    let six: String = (0..6).map(|index| identifier(&index.to_string(), "")).collect();

    for (inside, code) in [
        (six, "InvalidXmlDocument"),
        (identifier("one", "").repeat(2), "InvalidXmlDocument"),
        (identifier(&"x".repeat(65), ""), "InvalidXmlDocument"),
        (identifier("one", "<Permission>par</Permission>"), "InvalidXmlDocument"),
        (identifier("one", "<Start>yesterday</Start>"), "InvalidXmlNodeValue"),
        ("<SignedIdentifier></SignedIdentifier>".to_owned(), "MissingRequiredXmlNode"),
        ("<Nothing/>".to_owned(), "InvalidXmlDocument"),
    ] {
        let body = format!("<SignedIdentifiers>{inside}</SignedIdentifiers>");
        let response = rest.send(RestRequest::xml("PUT", "/orders?comp=acl", body)).await;
        assert_eq!(response.failure(), (400, code), "{inside}");
    }
    let response = rest.call("GET", "/nowhere?comp=acl").await;
    assert_eq!(response.failure(), (404, "QueueNotFound"));
    let kept = format!("<SignedIdentifiers>{}</SignedIdentifiers>", identifier("kept", ""));
    assert_eq!(rest.send(RestRequest::xml("PUT", "/orders?comp=acl", kept)).await.status, 204);
    for inside in ["junk", "&lt;SignedIdentifier&gt;", "<![CDATA[junk]]>"] {
        let body = format!("<SignedIdentifiers>{inside}</SignedIdentifiers>");
        let response = rest.send(RestRequest::xml("PUT", "/orders?comp=acl", body)).await;
        assert_eq!(response.failure(), (400, "InvalidXmlDocument"), "{inside}");
    }
    assert_eq!(rest.call("GET", "/orders?comp=acl").await.only("Id"), "kept");

    let five: String = (0..5).map(|n| identifier(&format!("{n}{}", "é".repeat(63)), "")).collect();
    let body = format!("<SignedIdentifiers>{five}</SignedIdentifiers>");
    assert_eq!(rest.send(RestRequest::xml("PUT", "/orders?comp=acl", body)).await.status, 204);
}
