//! Batches of requests.

use std::fmt::Write as _;

use http::StatusCode;
use trestle_tests::{BlobRest, RestRequest, RestResponse};

/// A part with a request that is signed by itself.
fn part(
    rest: &BlobRest,
    id: usize,
    method: &str,
    target: &str,
    more: &[(&'static str, &str)],
) -> String {
    let request = RestRequest::blob(method, target).without("x-ms-version");
    let with =
        |request: RestRequest, (name, value): &(&'static str, &str)| request.with(name, value);
    let request = more.iter().fold(request, with).to_http(rest.address());
    let mut text = format!(
        "Content-Type: application/http\r\nContent-Transfer-Encoding: binary\r\nContent-ID: {id}\r\n\r\n\
         {method} {} HTTP/1.1\r\n",
        request.uri()
    );
    for (name, value) in request.headers().iter().filter(|(name, _)| *name != "host") {
        write!(text, "{name}: {}\r\n", value.to_str().unwrap()).unwrap();
    }
    text + "\r\n"
}

async fn batch(rest: &BlobRest, target: &str, parts: &[String]) -> RestResponse {
    let mut body = String::new();
    for part in parts {
        write!(body, "--batch_1\r\n{part}\r\n").unwrap();
    }
    body += "--batch_1--\r\n";
    let request = RestRequest::blob("POST", target);
    rest.send(request.with("content-type", "multipart/mixed; boundary=batch_1").body(body)).await
}

#[tokio::test]
async fn each_request_of_a_batch_has_its_own_outcome() {
    let rest = BlobRest::start().await;
    rest.container("photos").await;
    for name in ["a%20b", "c"] {
        rest.blob(&format!("/photos/{name}"), "1").await;
    }
    let delete = |id, target| part(&rest, id, "DELETE", target, &[]);
    let parts = [delete(0, "/photos/a%20b"), delete(1, "/photos/none"), delete(2, "/photos/c")];

    let answered = batch(&rest, "/?comp=batch", &parts).await;

    assert_eq!(answered.status, 202, "{answered:?}");
    let boundary =
        answered.header("content-type").strip_prefix("multipart/mixed; boundary=").unwrap();
    assert!(boundary.starts_with("batchresponse_"), "{boundary}");
    let text = answered.text();
    assert!(text.starts_with(&format!("--{boundary}\r\nContent-Type: application/http\r\n")));
    assert!(text.ends_with(&format!("--{boundary}--\r\n")), "{text}");
    let parts: Vec<_> = text.split(&format!("--{boundary}")).collect();
    for (part, id, status) in [
        (parts[1], 0, StatusCode::ACCEPTED),
        (parts[2], 1, StatusCode::NOT_FOUND),
        (parts[3], 2, StatusCode::ACCEPTED),
    ] {
        assert!(part.contains(&format!("Content-ID: {id}\r\n\r\nHTTP/1.1 {status}\r\n")), "{part}");
        assert!(part.contains("x-ms-request-id: ") && part.contains("x-ms-version: "), "{part}");
    }
    assert!(parts[2].contains("x-ms-error-code: BlobNotFound"), "{text}");
    assert!(parts[2].contains("<Error><Code>BlobNotFound</Code>"), "{text}");
    let listed = rest.call("GET", "/photos?restype=container&comp=list").await;
    assert!(listed.text().contains("<Blobs />"), "{}", listed.text());
}

#[tokio::test]
async fn a_batch_of_a_container_sets_tiers_in_it_only() {
    let rest = BlobRest::start().await;
    for name in ["photos", "others"] {
        rest.container(name).await;
        rest.blob(&format!("/{name}/x"), "1").await;
    }
    let tier = |target| part(&rest, 0, "PUT", target, &[("x-ms-access-tier", "Cool")]);
    let target = "/photos?restype=container&comp=batch";
    let set = batch(&rest, target, &[tier("/photos/x?comp=tier")]).await;
    assert!(set.text().contains("HTTP/1.1 200 OK"), "{set:?}");
    assert_eq!(rest.call("HEAD", "/photos/x").await.header("x-ms-access-tier"), "Cool");
    let other = batch(&rest, target, &[tier("/others/x?comp=tier")]).await;
    assert_eq!(other.failure(), (400, "InvalidInput"));
    assert_eq!(rest.call("HEAD", "/others/x").await.header("x-ms-access-tier"), "Hot");
}

#[tokio::test]
async fn a_request_of_a_batch_needs_credentials_of_its_own() {
    let rest = BlobRest::start().await;
    rest.container("photos").await;
    rest.blob("/photos/x", "1").await;
    let signed = part(&rest, 0, "DELETE", "/photos/x", &[]);
    let start = signed.find("authorization: ").unwrap();
    let end = start + signed[start..].find("\r\n").unwrap();
    let without = format!("{}{}", &signed[..start], &signed[end + 2..]);
    let of_other = signed.replace("/photos/x HTTP", "/photos/y HTTP");

    let answered = batch(&rest, "/?comp=batch", &[without, of_other]).await;

    assert_eq!(answered.status, 202);
    assert!(answered.text().contains("HTTP/1.1 401 Unauthorized"), "{}", answered.text());
    assert!(answered.text().contains("HTTP/1.1 403 Forbidden"), "{}", answered.text());
    assert_eq!(rest.call("HEAD", "/photos/x").await.status, 200);
}

#[tokio::test]
async fn rejects_what_is_no_batch() {
    let rest = BlobRest::start().await;
    rest.container("photos").await;
    rest.blob("/photos/x", "1").await;
    let delete = part(&rest, 0, "DELETE", "/photos/x", &[]);
    let tier = part(&rest, 1, "PUT", "/photos/x?comp=tier", &[("x-ms-access-tier", "Cool")]);
    let put = part(&rest, 0, "PUT", "/photos/y", &[("x-ms-blob-type", "BlockBlob")]);
    let read = part(&rest, 0, "GET", "/photos/x", &[]);
    for parts in [
        &[][..],
        &[delete.clone(), tier],
        &[put],
        &[read],
        &["no request\r\n".to_owned()],
        &vec![delete.clone(); 257],
    ] {
        let answered = batch(&rest, "/?comp=batch", parts).await;
        assert_eq!(answered.failure(), (400, "InvalidInput"), "{} parts", parts.len());
    }
    let request = RestRequest::blob("POST", "/?comp=batch").with("content-type", "text/plain");
    assert_eq!(rest.send(request.body("x")).await.failure(), (400, "InvalidInput"));
    assert_eq!(rest.call("HEAD", "/photos/x").await.status, 200);
}
