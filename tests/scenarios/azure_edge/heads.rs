//! Request heads: their limits, and the meaning of each part.

use std::{collections::HashSet, time::Duration};

use http::Version;
use trestle_tests::RestResponse;

use super::endpoint::{ACCOUNT, EDGES, QUEUES, ServedEdge, TABLES};

/// The newest supported version, which a response has if its request has none.
const NEWEST: &str = "2026-10-06";

#[tokio::test]
async fn rejects_too_many_headers() {
    for edge in EDGES {
        let endpoint = ServedEdge::open(edge, &[]).await;
        let request = |headers: &str| {
            format!("GET /{ACCOUNT}{} HTTP/1.1\r\nhost: h\r\n{headers}\r\n", edge.list)
        };
        let some: String = (0..90).map(|at| format!("x-{at}: {}\r\n", "y".repeat(300))).collect();
        let long = format!("x-long: {}\r\n", "y".repeat(26_000));
        for headers in [some, long] {
            let response = endpoint.connect().await.call(request(&headers).as_bytes()).await;
            assert_eq!(response.failure(), (400, "InvalidHeaderValue"));
            assert_eq!(response.header("x-ms-request-id").len(), 36, "{response:?}");
        }
        // Too long, or with too many parts.
        let many: String = (0..5000).map(|at| format!("x-{at}: y\r\n")).collect();
        // Queue metadata is sent as headers, up to 8 KiB.
        let few = if edge.name == QUEUES.name { 2_100 } else { 200 };
        let tiny: String = (0..few).map(|at| format!("{at}:\r\n")).collect();
        let endless = format!("x-{}", "y".repeat(1 << 20));
        for headers in [many, tiny, endless] {
            if let Some(response) = endpoint.last(request(&headers).as_bytes()).await {
                assert_eq!(response.status, 431, "{response:?}");
            }
        }
        endpoint.is_untouched().await;
    }
}

#[tokio::test]
async fn accepts_a_uri_of_8_kib_and_rejects_one_over_the_limit() {
    for edge in EDGES {
        let endpoint = ServedEdge::open(edge, &[]).await;
        let sign = if edge.list.contains('?') { '&' } else { '?' };
        let target = |bytes: usize| {
            let target = format!("{}{sign}unknown=", edge.list);
            let rest = bytes - target.len() - ACCOUNT.len() - 1;
            format!("{target}{}", "x".repeat(rest))
        };

        for bytes in [8192, 23_000] {
            let response = endpoint.get(&target(bytes), &[]).await;
            assert_eq!(response.status, 200, "{bytes}: {response:?}");
        }
        for bytes in [24_576, 30_000] {
            let response = endpoint.get(&target(bytes), &[]).await;
            assert_eq!(response.failure(), (400, "InvalidUri"), "{bytes}");
            assert_eq!(response.header("x-ms-request-id").len(), 36, "{response:?}");
            assert!(response.text().contains("at most 24576 bytes"), "{response:?}");
        }
        for bytes in [33_000, 65_000] {
            if let Some(response) =
                endpoint.last(endpoint.head("GET", &target(bytes), &[]).as_bytes()).await
            {
                assert_eq!(response.status, 431, "{bytes}: {response:?}");
            }
        }
        endpoint.is_untouched().await;
    }
}

#[tokio::test]
async fn slow_request_head_closes_the_connection() {
    for edge in EDGES {
        let endpoint =
            ServedEdge::open(edge, &[("TRESTLE__LIMITS__HEAD_WITHIN_SECONDS", "1")]).await;
        let head = endpoint.head("GET", edge.list, &[]);

        // Each byte is progress; none completes the head.
        let mut wire = endpoint.connect().await;
        for byte in &head.as_bytes()[..20] {
            wire.send(&[*byte]).await;
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        assert!(wire.answer().await.is_none(), "cut after a second");

        // The same for a client that sends more requests, and then stops.
        let mut wire = endpoint.connect().await;
        for _ in 0..2 {
            assert_eq!(wire.call(head.as_bytes()).await.status, 200);
        }
        assert!(wire.answer().await.is_none(), "cut after a second");
        endpoint.is_untouched().await;
    }
}

#[tokio::test]
async fn rejects_malformed_request_heads() {
    for edge in EDGES {
        let endpoint = ServedEdge::open(edge, &[]).await;
        let host = "host: h\r\n";
        for head in [
            "\0\r\n\r\n".to_owned(),
            "GET\r\n\r\n".to_owned(),
            format!("GET / HTTP/9.9\r\n{host}\r\n"),
            format!("GET /a b HTTP/1.1\r\n{host}\r\n"),
            format!("G(T / HTTP/1.1\r\n{host}\r\n"),
            format!("GET / HTTP/1.1\r\n{host}x y: z\r\n\r\n"),
            format!("GET / HTTP/1.1\r\n{host}x: y\0z\r\n\r\n"),
            format!("GET / HTTP/1.1\r\n{host}x\r\n\r\n"),
        ] {
            if let Some(response) = endpoint.last(head.as_bytes()).await {
                assert_eq!(response.status, 400, "{head:?}: {response:?}");
            }
        }
        endpoint.is_untouched().await;
    }
}

#[tokio::test]
async fn every_response_has_the_common_headers() {
    for edge in EDGES {
        let endpoint = ServedEdge::open(edge, &[]).await;
        let length = edge.put.body.len().to_string();
        let headers = [("content-type", edge.put.content_type), ("content-length", &*length)];
        let put = endpoint.head(edge.put.method, edge.put.target, &headers) + edge.put.body;
        let (remove, removed) =
            if edge.name == TABLES.name { ("/Tables('things')", 204) } else { ("/things", 204) };
        let preflight = format!(
            "OPTIONS /{ACCOUNT}/x HTTP/1.1\r\nhost: h\r\norigin: http://a\r\n\
             access-control-request-method: PUT\r\n\r\n"
        );
        let mut wire = endpoint.connect().await;
        let mut ids = Vec::new();
        for (head, status) in [
            (endpoint.head("GET", edge.list, &[]), 200),
            (endpoint.head("GET", edge.absent.0, &[]), 404),
            (endpoint.head("GET", edge.list, &[("authorization", "Digest x")]), 400),
            (format!("GET /{ACCOUNT}{} HTTP/1.1\r\nhost: h\r\n\r\n", edge.list), 401),
            (endpoint.head("POST", "/", &[("x-http-method", "GET")]), 400),
            (endpoint.head("GET", edge.list, &[("x-ms-version", "x")]), 400),
            ("GET / HTTP/1.1\r\nhost: h\r\n\r\n".to_owned(), 400),
            (preflight, 403),
            (put, 201),
            (endpoint.head("DELETE", remove, &[]), removed),
        ] {
            let response = wire.call(head.as_bytes()).await;
            let shown = head.lines().next().unwrap();
            assert_eq!(response.status, status, "{shown}: {response:?}");
            for (name, value) in [
                ("server", "Trestle"),
                ("cache-control", "no-cache"),
                ("x-content-type-options", "nosniff"),
            ] {
                assert_eq!(response.header(name), value, "{shown}: {name}");
            }
            assert!(response.header("date").ends_with(" GMT"), "{shown}: {response:?}");
            assert_eq!(response.header("x-ms-version").len(), 10, "{shown}: {response:?}");
            assert_eq!(response.headers.contains_key("x-ms-error-code"), status >= 400, "{shown}");
            let id = response.header("x-ms-request-id").to_owned();
            assert!(id.len() == 36 && !ids.contains(&id), "{shown}: {response:?}");
            assert_eq!(response.text().contains(&id), status >= 400, "{shown}: {response:?}");
            ids.push(id);
        }
    }
}

#[tokio::test]
async fn responses_over_http2_have_the_headers_of_http1() {
    for edge in EDGES {
        let endpoint = ServedEdge::open(edge, &[]).await;
        for target in [edge.list, edge.absent.0] {
            let old = endpoint.get_over(Version::HTTP_11, target).await;
            let new = endpoint.get_over(Version::HTTP_2, target).await;
            assert_eq!(old.status, new.status, "{target}");
            let names =
                |response: &RestResponse| response.headers.keys().cloned().collect::<HashSet<_>>();
            assert_eq!(names(&old), names(&new), "{target}");
            assert!(new.header("date").ends_with(" GMT"), "{target}: {new:?}");
        }
    }
}

#[tokio::test]
async fn accepts_every_api_version_and_echoes_it() {
    for edge in EDGES {
        let endpoint = ServedEdge::open(edge, &[]).await;
        for version in ["2009-09-19", "2013-08-15", "2019-02-02", NEWEST, "2099-12-31"] {
            let response = endpoint.get(edge.list, &[("x-ms-version", version)]).await;
            assert_eq!(
                (response.status, response.header("x-ms-version")),
                (200, version),
                "{response:?}"
            );
        }
        // Without a version it is the newest.
        let response = endpoint.get(edge.list, &[("x-ms-version", "")]).await;
        assert_eq!(
            (response.status, response.header("x-ms-version")),
            (200, NEWEST),
            "{response:?}"
        );
        for version in ["latest", "2019-02-30", "2019-2-2", "20190202", "2019-02-02T00:00:00Z"] {
            let response = endpoint.get(edge.list, &[("x-ms-version", version)]).await;
            assert_eq!(response.failure(), (400, "InvalidHeaderValue"), "{version}");
            assert_eq!(response.header("x-ms-version"), NEWEST, "{version}");
            if edge.name == QUEUES.name {
                let wrong = [response.only("HeaderName"), response.only("HeaderValue")];
                assert_eq!(wrong, ["x-ms-version", version]);
            }
        }
    }
}

#[tokio::test]
async fn version_defaults_to_the_query_parameter_or_the_signature() {
    for edge in EDGES {
        let endpoint = ServedEdge::open(edge, &[]).await;
        let sign = if edge.list.contains('?') { '&' } else { '?' };
        let bare = [("x-ms-version", "")];
        let named = format!("{}{sign}api-version=2020-04-08", edge.list);
        let response = endpoint.get(&named, &bare).await;
        assert_eq!(
            (response.status, response.header("x-ms-version")),
            (200, "2020-04-08"),
            "{response:?}"
        );
        let response = endpoint.get(&named, &[]).await;
        assert_ne!(response.header("x-ms-version"), "2020-04-08", "the header counts before it");

        let signed = format!("/{ACCOUNT}{}{sign}sv=2018-11-09&sig=x", edge.list);
        let head = format!("GET {signed} HTTP/1.1\r\nhost: h\r\n\r\n");
        let response = endpoint.connect().await.call(head.as_bytes()).await;
        assert_eq!(response.failure(), (403, "AuthenticationFailed"));
        assert_eq!(response.header("x-ms-version"), "2018-11-09", "{response:?}");
    }
}

#[tokio::test]
async fn rejects_a_repeated_single_valued_header() {
    for edge in EDGES {
        let endpoint = ServedEdge::open(edge, &[]).await;
        for (name, value) in [
            ("x-ms-version", "2019-02-02"),
            ("x-ms-date", "Sat, 21 Nov 2026 12:00:00 GMT"),
            ("content-type", "application/json"),
            ("if-match", "*"),
        ] {
            let response = endpoint.get(edge.list, &[(name, value), (name, value)]).await;
            assert_eq!(response.failure(), (400, "InvalidHeaderValue"), "{name}");
        }
    }
}

#[tokio::test]
async fn rejected_credentials_are_counted_by_reason() {
    for edge in EDGES {
        let endpoint = ServedEdge::open(edge, &[]).await;
        let wrong = [("authorization", "SharedKey devstoreaccount1:AAAA")];
        for _ in 0..3 {
            assert_eq!(endpoint.get(edge.list, &wrong).await.status, 403);
        }
        let metrics = endpoint.metrics().await;
        let rejected = metrics.lines().find(|line| {
            line.starts_with("trestle_rpc_server_rejections_total{")
                && line.contains("AUTHENTICATION_FAILED")
        });
        assert!(rejected.is_some_and(|line| line.ends_with(" 3")), "{metrics}");
    }
}

#[tokio::test]
async fn client_request_id_is_echoed_and_request_ids_are_unique() {
    for edge in EDGES {
        let endpoint = ServedEdge::open(edge, &[]).await;
        let mut ids = Vec::new();
        for target in [edge.list, edge.absent.0] {
            let response = endpoint.get(target, &[("x-ms-client-request-id", "of my own")]).await;
            assert_eq!(response.header("x-ms-client-request-id"), "of my own", "{response:?}");
            ids.push(response.header("x-ms-request-id").to_owned());
        }
        assert!(ids[0].len() == 36 && ids[0] != ids[1], "{ids:?}");
        // Too long, or not of visible ASCII.
        for id in [&*"x".repeat(1025), "a\tb"] {
            let response = endpoint.get(edge.list, &[("x-ms-client-request-id", id)]).await;
            assert_eq!(
                (response.status, response.header("x-ms-client-request-id")),
                (200, ""),
                "{id}"
            );
        }
    }
}

#[tokio::test]
async fn account_in_the_host_is_served_and_its_secondary_is_read_only() {
    for edge in EDGES {
        let endpoint = ServedEdge::open(edge, &[]).await;
        let host = |account: &str| format!("{account}.{}.localhost:10000", edge.name);
        let (primary, secondary) = (host(ACCOUNT), host(&format!("{ACCOUNT}-secondary")));
        let put = |host: &str| {
            let length = edge.put.body.len().to_string();
            let (kind, length) = (edge.put.content_type, length.as_str());
            let headers = [("host", host), ("content-type", kind), ("content-length", length)];
            endpoint.head_to(edge.put.method, edge.put.target, &headers) + edge.put.body
        };
        let read = |host: &str| endpoint.head_to("GET", edge.read, &[("host", host)]);

        let response = endpoint.connect().await.call(put(&secondary).as_bytes()).await;
        assert_eq!(response.failure(), (403, "InsufficientAccountPermissions"));
        assert!(response.text().contains("Write operations are not allowed."), "{response:?}");
        let response = endpoint.connect().await.call(read(&secondary).as_bytes()).await;
        assert_eq!((response.status, response.text()), (200, edge.empty));
        let response = endpoint.connect().await.call(put(&primary).as_bytes()).await;
        assert_eq!(response.status, 201, "{response:?}");
        if edge.name == TABLES.name {
            let location = format!("http://{primary}/things(PartitionKey='p',RowKey='r')");
            assert_eq!(response.header("location"), location);
        }
        // Hosts have no case.
        for host in [&primary, &primary.to_uppercase()] {
            let response = endpoint.connect().await.call(read(host).as_bytes()).await;
            assert!(response.status == 200 && response.text() != edge.empty, "{response:?}");
        }
        // With the account in the host, the path has none.
        let other = host("absent");
        let response = endpoint.connect().await.call(read(&other).as_bytes()).await;
        assert_eq!(response.failure(), (403, "AuthenticationFailed"));
    }
}

#[tokio::test]
async fn rejects_http_1_1_without_a_host() {
    for edge in EDGES {
        let endpoint = ServedEdge::open(edge, &[]).await;
        let named = endpoint.head("GET", edge.list, &[]);
        let host = named.split("\r\n").find(|line| line.starts_with("host:")).unwrap();
        for host_line in ["", "host: \r\n"] {
            let head = named.replace(&format!("{host}\r\n"), host_line);

            let response = endpoint.connect().await.call(head.as_bytes()).await;
            assert_eq!(response.failure(), (400, "MissingRequiredHeader"), "{host_line}");
            let early = head.replace("HTTP/1.1", "HTTP/1.0");
            assert_eq!(endpoint.connect().await.call(early.as_bytes()).await.status, 200);
        }
    }
}

#[tokio::test]
async fn rejects_repeated_credentials() {
    for edge in EDGES {
        let endpoint = ServedEdge::open(edge, &[]).await;
        let head = endpoint.head("GET", edge.list, &[]);
        let (_, signed) = head.split_once("authorization: ").unwrap();
        let line = format!("authorization: {}\r\n", signed.trim_end());
        let twice = head.replacen("\r\n", &format!("\r\n{line}"), 1);

        let response = endpoint.connect().await.call(twice.as_bytes()).await;

        assert_eq!(response.failure(), (400, "InvalidAuthenticationInfo"));
        let signature = line.rsplit(':').next().unwrap().trim();
        assert!(!response.text().contains(signature), "{response:?}");
        assert_eq!(endpoint.connect().await.call(head.as_bytes()).await.status, 200);
    }
}

#[tokio::test]
async fn rejects_path_traversal_in_queue_names() {
    let endpoint = ServedEdge::open(&QUEUES, &[]).await;
    for (path, code) in [
        ("/..", "InvalidResourceName"),
        ("/%2e%2e", "InvalidResourceName"),
        ("/%252e%252e", "InvalidResourceName"),
        ("/%00", "InvalidResourceName"),
        ("/things%00", "InvalidResourceName"),
        ("/things%2fmessages", "InvalidResourceName"),
        ("/things%252fmessages", "InvalidResourceName"),
        ("/THINGS", "InvalidResourceName"),
        ("/%74hings%20", "InvalidResourceName"),
        ("/%C3%A4rger", "InvalidResourceName"),
        ("/%zz", "InvalidResourceName"),
        ("/%ff", "InvalidUri"),
        ("//things", "InvalidUri"),
        ("/things/../things", "InvalidUri"),
        ("/things/%2e%2e", "InvalidUri"),
    ] {
        let response = endpoint.get(&format!("{path}?comp=metadata"), &[]).await;
        assert_eq!(response.failure(), (400, code), "{path}");
    }
    for (path, failure) in [
        ("/things//messages", (400, "InvalidUri")),
        ("/things/messages//", (400, "InvalidUri")),
        ("/things/messages%2f", (400, "InvalidUri")),
        ("/things/messages/..", (400, "InvalidQueryParameterValue")),
        ("/things/messages/%2e%2e", (400, "InvalidQueryParameterValue")),
        ("/things/messages/%00", (400, "InvalidQueryParameterValue")),
    ] {
        let head = endpoint.head("DELETE", &format!("{path}?popreceipt=x"), &[]);
        let response = endpoint.connect().await.call(head.as_bytes()).await;
        assert_eq!(response.failure(), failure, "{path}");
    }
    // Another percent-encoding names the same queue.
    let response = endpoint.get("/%74hin%67s?comp=metadata", &[]).await;
    assert_eq!(response.status, 200, "{response:?}");
    endpoint.is_untouched().await;
}

#[tokio::test]
async fn query_continues_past_keys_of_maximum_length() {
    let endpoint = ServedEdge::open(&TABLES, &[]).await;
    // Three bytes for each of 1,024 units, in either key.
    let (partition, row) = ("€".repeat(1024), "€".repeat(1023));
    let body = |at: usize| format!(r#"{{"PartitionKey":"{partition}","RowKey":"{row}{at}"}}"#);
    for at in 0..3 {
        assert_eq!(endpoint.put(body(at).as_bytes(), &[]).await.status, 201);
    }

    let (mut found, mut tokens) = (0, String::new());
    loop {
        let target = format!("/things()?$top=1&$select=RowKey&$filter=RowKey%20ne%20''{tokens}");
        let response = endpoint.get(&target, &[]).await;
        assert_eq!(response.status, 200, "{response:?}");
        found += response.text().matches("RowKey").count();
        let partition = response.header("x-ms-continuation-nextpartitionkey").to_owned();
        if partition.is_empty() {
            break;
        }
        let row = response.header("x-ms-continuation-nextrowkey");
        tokens = format!("&NextPartitionKey={partition}&NextRowKey={row}");
    }
    assert!(tokens.len() > 8192, "the tokens were long: {}", tokens.len());
    assert_eq!(found, 3);
}

#[tokio::test]
async fn keys_of_maximum_length_fit_in_a_uri() {
    let endpoint = ServedEdge::open(&TABLES, &[]).await;
    // Three bytes for each of 1,024 units, in either key; three more for each byte in an address.
    let key = "€".repeat(1024);
    let body = format!(r#"{{"PartitionKey":"{key}","RowKey":"{key}","x":1}}"#);
    assert_eq!(endpoint.put(body.as_bytes(), &[]).await.status, 201);

    let escaped = "%E2%82%AC".repeat(1024);
    let target = format!("/things(PartitionKey='{escaped}',RowKey='{escaped}')?$select=x");
    let response = endpoint.get(&target, &[]).await;

    assert_eq!((response.status, response.text()), (200, r#"{"x":1}"#), "{}", target.len());
}
