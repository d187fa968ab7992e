//! Request and response bodies: length, rate, encoding.

use std::{
    io::{Read as _, Write as _},
    time::Duration,
};

use flate2::{Compression, read::GzDecoder, write::GzEncoder};

use super::endpoint::{EDGES, Header, ServedEdge};

fn packed(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn chunked(bytes: &[u8], size: usize) -> Vec<u8> {
    let chunk =
        |chunk: &[u8]| [format!("{:x}\r\n", chunk.len()).as_bytes(), chunk, b"\r\n"].concat();
    let mut out: Vec<u8> = bytes.chunks(size).flat_map(chunk).collect();
    out.extend(b"0\r\n\r\n");
    out
}

#[tokio::test]
async fn body_shorter_than_its_content_length_writes_nothing() {
    for edge in EDGES {
        let endpoint = ServedEdge::open(edge, &[]).await;
        let body = edge.put.body.as_bytes();
        let too_large = (edge.body_bytes_max + 1).to_string();
        // Too long, too short, not a number, repeated, out of range.
        for length in ["500", "10", "x", "-1", "1e3", "99999999999999999999", &too_large] {
            let headers = [("content-length", length), ("content-type", edge.put.content_type)];
            let head = endpoint.head(edge.put.method, edge.put.target, &headers);
            lies(&endpoint, &[head.as_bytes(), body].concat()).await;
        }
        let (own, other) = (body.len().to_string(), (body.len() + 1).to_string());
        let twice = [("content-length", own.as_str()), ("content-length", other.as_str())];
        let both = [("content-length", own.as_str()), ("transfer-encoding", "chunked")];
        for headers in [twice, both] {
            let head = endpoint.head(edge.put.method, edge.put.target, &headers);
            lies(&endpoint, &[head.as_bytes(), body].concat()).await;
        }
        endpoint.is_untouched().await;
    }
}

/// A request with a false length fails.
async fn lies(endpoint: &ServedEdge, bytes: &[u8]) {
    if let Some(response) = endpoint.last(bytes).await {
        assert!((400..500).contains(&response.status), "{response:?}");
    }
}

#[tokio::test]
async fn slow_body_times_out() {
    for edge in EDGES {
        let endpoint =
            ServedEdge::open(edge, &[("TRESTLE__LIMITS__REQUEST_WITHIN_SECONDS", "1")]).await;
        let body = edge.put.body.as_bytes();
        let length = body.len().to_string();
        let headers = [("content-length", &*length), ("content-type", edge.put.content_type)];
        let head = endpoint.head(edge.put.method, edge.put.target, &headers);

        let mut wire = endpoint.connect().await;
        wire.send(head.as_bytes()).await;
        // Each byte is progress; only the last one completes the body.
        for byte in &body[..20] {
            wire.send(&[*byte]).await;
            tokio::time::sleep(Duration::from_millis(100)).await;
        }

        let response = wire.answer().await.expect("an answer");
        assert!(response.failure().0 >= 400, "{response:?}");
        endpoint.is_untouched().await;
    }
}

#[tokio::test]
async fn body_declared_too_large_is_rejected_at_its_head() {
    for edge in EDGES {
        let endpoint = ServedEdge::open(edge, &[]).await;
        // Over the limit of the operation, and over the limit of the drain.
        for length in [edge.body_bytes_max + 1, 64 * 1024 * 1024] {
            let length = length.to_string();
            let headers = [("content-length", &*length), ("content-type", edge.put.content_type)];
            let head = endpoint.head(edge.put.method, edge.put.target, &headers);
            let mut wire = endpoint.connect().await;

            // The head alone, so that a server that waits for the body reports a timeout.
            let response = wire.call(head.as_bytes()).await;

            assert_eq!(response.failure(), (413, "RequestBodyTooLarge"));
            assert_eq!(response.header("connection"), "close");
            assert!(wire.answer().await.is_none(), "the connection ends");
        }
        endpoint.is_untouched().await;
    }
}

#[tokio::test]
async fn response_to_a_body_over_the_limit_reaches_a_client_that_sends_all_of_it_first() {
    for edge in EDGES {
        let endpoint = ServedEdge::open(edge, &[]).await;
        let body = vec![b' '; 3 * edge.body_bytes_max];
        let length = body.len().to_string();
        let headers = [("content-length", &*length), ("content-type", edge.put.content_type)];
        let head = endpoint.head(edge.put.method, edge.put.target, &headers);

        let response = endpoint.connect().await.call(&[head.as_bytes(), &body].concat()).await;

        assert_eq!(response.failure(), (413, "RequestBodyTooLarge"));
    }
}

#[tokio::test]
async fn accepts_a_chunked_body() {
    for edge in EDGES {
        let endpoint = ServedEdge::open(edge, &[]).await;
        let headers = [("transfer-encoding", "chunked"), ("content-type", edge.put.content_type)];
        let head = endpoint.head(edge.put.method, edge.put.target, &headers);

        let large = chunked(&vec![b' '; edge.body_bytes_max + 1], 10_000);
        let response = endpoint.connect().await.call(&[head.as_bytes(), &large].concat()).await;
        assert_eq!(response.failure(), (413, "RequestBodyTooLarge"));
        // Malformed sizes, and a missing end.
        for body in [&b"zz\r\nabc\r\n0\r\n\r\n"[..], b"-1\r\n\r\n", b"ffffffffffffffff1\r\n"] {
            lies(&endpoint, &[head.as_bytes(), body].concat()).await;
        }
        endpoint.is_untouched().await;

        let body = chunked(edge.put.body.as_bytes(), 7);
        let response = endpoint.connect().await.call(&[head.as_bytes(), &body].concat()).await;
        assert_eq!(response.status, 201, "{response:?}");
    }
}

#[tokio::test]
async fn sends_100_continue_when_expected() {
    for edge in EDGES {
        let endpoint = ServedEdge::open(edge, &[]).await;
        let length = edge.put.body.len().to_string();
        let headers = [
            ("content-length", length.as_str()),
            ("content-type", edge.put.content_type),
            ("expect", "100-continue"),
        ];
        let mut wire = endpoint.connect().await;

        let head = endpoint.head(edge.put.method, edge.put.target, &headers);
        let response = wire.call(head.as_bytes()).await;
        assert_eq!((response.status, response.headers.len()), (100, 0));
        let response = wire.call(edge.put.body.as_bytes()).await;
        assert_eq!(response.status, 201, "{response:?}");

        // No `100 Continue` for a body that is not read.
        let wrong =
            [&headers[..], &[("authorization", "SharedKey devstoreaccount1:AAAA")]].concat();
        let head = endpoint.head(edge.put.method, edge.put.target, &wrong);
        let response = endpoint.connect().await.call(head.as_bytes()).await;
        assert_eq!(response.failure(), (403, "AuthenticationFailed"));
    }
}

#[tokio::test]
async fn gzip_body_is_bounded_by_its_decompressed_size() {
    for edge in EDGES {
        let endpoint = ServedEdge::open(edge, &[]).await;
        let body = edge.put.body.as_bytes();
        let gzip = [("content-encoding", "gzip")];

        let bomb = packed(&vec![b' '; 20 * edge.body_bytes_max]);
        assert!(bomb.len() < edge.body_bytes_max);
        assert_eq!(endpoint.put(&bomb, &gzip).await.failure(), (413, "RequestBodyTooLarge"));
        let cut = packed(body);
        for broken in [body, &cut[..cut.len() - 4], b""] {
            let response = endpoint.put(broken, &gzip).await;
            assert_eq!(response.failure(), (400, "InvalidInput"), "{broken:?}");
        }
        let response = endpoint.put(body, &[("content-encoding", "br")]).await;
        assert_eq!(response.failure(), (400, "InvalidHeaderValue"));
        endpoint.is_untouched().await;

        let response = endpoint.put(&packed(body), &gzip).await;
        assert_eq!(response.status, 201, "{response:?}");
    }
}

#[tokio::test]
async fn responses_are_compressed_if_configured_and_accepted() {
    for edge in EDGES {
        let large = format!("te{}xt", "x".repeat(3000));
        let body = edge.put.body.replace("\"r\"", &format!("\"r\",\"a\":\"{large}\""));
        let body = body.replace("text", &large);
        let accepts = [("accept-encoding", "gzip")];

        let plain = ServedEdge::open(edge, &[]).await;
        assert_eq!(plain.put(body.as_bytes(), &[]).await.status, 201);
        assert_eq!(plain.get(edge.read, &accepts).await.header("content-encoding"), "");

        let endpoint = ServedEdge::open(edge, &[("TRESTLE__SERVER__AZURE_GZIP", "true")]).await;
        assert_eq!(endpoint.put(body.as_bytes(), &[]).await.status, 201);
        let whole = endpoint.get(edge.read, &[]).await;
        assert_eq!((whole.status, whole.header("content-encoding")), (200, ""));
        let response = endpoint.get(edge.read, &accepts).await;
        assert_eq!((response.status, response.header("content-encoding")), (200, "gzip"));
        assert!(response.body.len() < whole.body.len() / 10, "{response:?}");
        let mut text = String::new();
        GzDecoder::new(&*response.body).read_to_string(&mut text).unwrap();
        assert_eq!(text, whole.text());
    }
}

#[tokio::test]
async fn connection_is_kept_open_after_a_failed_request() {
    for edge in EDGES {
        let endpoint = ServedEdge::open(edge, &[]).await;
        let mut wire = endpoint.connect().await;
        let put = |body: &str, more: &[Header<'_>]| {
            let length = body.len().to_string();
            let usual = [("content-length", &*length), ("content-type", edge.put.content_type)];
            let headers = [&usual[..], more].concat();
            [endpoint.head(edge.put.method, edge.put.target, &headers), body.to_owned()].concat()
        };
        let (absent, code) = edge.absent;
        let list = endpoint.head("GET", edge.list, &[]);
        for (request, failure) in [
            (endpoint.head("GET", absent, &[]), (404, code)),
            (
                put("{<", &[]),
                (400, if edge.name == "table" { "InvalidInput" } else { "InvalidXmlDocument" }),
            ),
            // The ignored body is drained.
            (put(edge.put.body, &[("authorization", "x")]), (400, "InvalidAuthenticationInfo")),
            (put(&" ".repeat(edge.body_bytes_max + 1), &[]), (413, "RequestBodyTooLarge")),
            (
                endpoint.head("GET", edge.list, &[("x-ms-version", "x")]),
                (400, "InvalidHeaderValue"),
            ),
        ] {
            assert_eq!(wire.call(request.as_bytes()).await.failure(), failure);
            assert_eq!(wire.call(list.as_bytes()).await.status, 200, "after {failure:?}");
        }
        // Two at once are answered in their order.
        let both = [list.as_bytes(), endpoint.head("GET", absent, &[]).as_bytes()].concat();
        assert_eq!(wire.call(&both).await.status, 200);
        assert_eq!(wire.answer().await.unwrap().failure(), (404, code));
        endpoint.is_untouched().await;
    }
}

#[tokio::test]
async fn an_error_before_the_body_drains_it_and_keeps_the_connection() {
    for edge in EDGES {
        let endpoint = ServedEdge::open(edge, &[]).await;
        let list = endpoint.head("GET", edge.list, &[]);
        let length = edge.body_bytes_max.to_string();
        let usual = [("content-length", &*length), ("content-type", edge.put.content_type)];
        let wrong = [("authorization", "SharedKey devstoreaccount1:AAAA")];
        let unread =
            endpoint.head(edge.put.method, edge.put.target, &[&usual[..], &wrong].concat());
        let no_verb = endpoint.head("PUT", edge.list.split('?').next().unwrap(), &usual);
        for head in [unread, no_verb] {
            let mut wire = endpoint.connect().await;
            wire.send(head.as_bytes()).await;
            for part in vec![b' '; edge.body_bytes_max].chunks(edge.body_bytes_max / 4) {
                tokio::time::sleep(Duration::from_millis(20)).await;
                wire.send(part).await;
            }

            let response = wire.answer().await.expect("an answer");
            assert!((400..500).contains(&response.status), "{response:?}");
            assert_eq!(response.header("connection"), "", "{response:?}");
            assert_eq!(wire.call(list.as_bytes()).await.status, 200, "after {response:?}");
        }
    }
}

#[tokio::test]
async fn connection_that_cannot_be_reused_is_closed_with_a_header() {
    let wrong = ("authorization", "SharedKey devstoreaccount1:AAAA");
    for edge in EDGES {
        let endpoint = ServedEdge::open(edge, &[]).await;
        // A body that is never sent, and one without `100 Continue`.
        for more in [&[][..], &[("expect", "100-continue")]] {
            let usual = [("content-length", "10"), ("content-type", edge.put.content_type), wrong];
            let headers = [&usual[..], more].concat();
            let head = endpoint.head(edge.put.method, edge.put.target, &headers);
            let mut wire = endpoint.connect().await;

            let response = wire.call(head.as_bytes()).await;

            assert_eq!(response.failure(), (403, "AuthenticationFailed"));
            assert_eq!(response.header("connection"), "close");
            assert!(wire.answer().await.is_none(), "the connection ends");
        }
    }
}
