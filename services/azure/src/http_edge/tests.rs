use bytes::Bytes;
use http::{HeaderName, Uri};
use http_body::Frame;
use http_body_util::{BodyExt as _, Full, StreamBody};
use tonic::body::Body;
use tower::{ServiceExt as _, service_fn};
use trestle_model::time::{ManualClock, Ticks};
use trestle_rpc::status::{DOMAIN, IntoStatus as _};
use trestle_rpc::upstream::Upstream;

use super::*;
use crate::table::TableProtocol;

/// The response of the layers in a test.
type Answers = fn(&Request) -> Response;

/// An HTTP edge whose layers respond so, without CORS rules.
fn edge(answers: Answers) -> HttpEdge<TableProtocol> {
    let now = Ticks::from_unix(1_795_262_400, 0).expect("in range");
    let calls = CallService::new(service_fn(move |mut request| async move {
        let Some(short_circuit) = ShortCircuitResponse::take(&mut request) else {
            return Ok(answers(&request));
        };
        // As the first of the layers does.
        let Ok(mut answer) = short_circuit.await;
        answer.headers_mut().insert(REQUEST_ID_HEADER, HeaderValue::from_static("id-2"));
        Ok(answer)
    }));
    let unavailable = Upstream::local(service_fn(|_: Request| async {
        Ok(Status::unavailable("down").into_http::<Body>())
    }));
    let clock: Arc<dyn Clock> = Arc::new(ManualClock::new(now));
    HttpEdge::new(
        TableProtocol::new(Arc::clone(&clock)),
        calls,
        clock,
        Lookup::new("trestle.table.v1.TableService", unavailable),
        Accounts::default(),
    )
}

fn request(method: &str, target: &str, headers: &[(&'static str, &str)]) -> Request {
    let mut request = Request::new(Body::empty());
    *request.method_mut() = method.parse().expect("a method");
    *request.uri_mut() = target.parse::<Uri>().expect("a target");
    for (name, value) in [("host", "127.0.0.1")].iter().chain(headers) {
        request.headers_mut().append(*name, value.parse().expect("a value"));
    }
    request
}

async fn send(
    answers: Answers,
    request: Request,
) -> (http::response::Parts, Result<Bytes, String>) {
    let Ok(answer) = edge(answers).oneshot(request).await;
    let (parts, body) = answer.into_parts();
    let body = body.collect().await.map(http_body_util::Collected::to_bytes);
    (parts, body.map_err(|status| status.to_string()))
}

/// Rejects as a layer does.
fn busy(_: &Request) -> Response {
    let fault = Fault::new(Reason::ServerBusy, "full").retry_after(Duration::from_millis(20));
    let mut answer: Response = fault.into_status(DOMAIN).into_http();
    answer.headers_mut().insert(REQUEST_ID_HEADER, HeaderValue::from_static("id-1"));
    answer
}

/// Returns the request of the layers.
fn echo(request: &Request) -> Response {
    let context = request.extensions().get::<RequestContext<TableProtocol>>().expect("a context");
    let rejected = context.operation.as_ref().err().map(|error| error.status.message().to_owned());
    let timeout = request.headers().get("grpc-timeout").cloned();
    let mut answer = Response::new(Body::new(Full::new(Bytes::from(rejected.unwrap_or_default()))));
    answer.headers_mut().insert(Status::GRPC_STATUS, HeaderValue::from_static("0"));
    answer.headers_mut().extend(timeout.map(|value| (HeaderName::from_static("x-timeout"), value)));
    answer.headers_mut().insert("x-path", request.uri().path().parse().expect("a path"));
    answer.extensions_mut().insert(Rendered);
    answer
}

#[tokio::test]
async fn an_error_of_a_layer_is_written_in_the_form_of_the_service() {
    let context = [("x-ms-client-request-id", "mine"), ("x-ms-version", "2019-02-02")];

    let (parts, body) = send(busy, request("GET", "/devstoreaccount1/Tables", &context)).await;

    assert_eq!(parts.status, 503);
    for (name, value) in [
        ("retry-after", "1"),
        ("x-ms-error-code", "ServerBusy"),
        ("x-ms-request-id", "id-1"),
        ("x-ms-client-request-id", "mine"),
        ("x-ms-version", "2019-02-02"),
    ] {
        assert_eq!(parts.headers.get(name).expect(name), value, "{name}");
    }
    for removed in ["grpc-status", "grpc-message", "grpc-status-details-bin", "x-request-id"] {
        assert!(!parts.headers.contains_key(removed), "{removed}");
    }
    let body = body.expect("a body");
    assert!(String::from_utf8_lossy(&body).contains("\"ServerBusy\""), "{body:?}");
}

#[tokio::test]
async fn a_request_without_a_valid_head_gets_an_id_and_the_newest_version() {
    for (target, version, code) in [
        ("/", "2019-02-02", "InvalidUri"),
        ("/A/Tables", "2019-02-02", "InvalidUri"),
        ("/acme/Tables?a=%FF", "2019-02-02", "InvalidUri"),
        ("/acme/Tables", "2019-02-31", "InvalidHeaderValue"),
    ] {
        let (parts, _) = send(echo, request("GET", target, &[("x-ms-version", version)])).await;

        assert_eq!(parts.status, 400, "{target}");
        assert_eq!(parts.headers["x-ms-error-code"], code, "{target}");
        assert_eq!(parts.headers["x-ms-request-id"], "id-2", "{target}");
        assert!(!parts.headers.contains_key("grpc-status"), "{target}");
        let echoed = if code == "InvalidUri" { version } else { version::NEWEST };
        assert_eq!(parts.headers["x-ms-version"], echoed, "{target}");
    }
}

#[tokio::test]
async fn the_time_limit_of_a_request_becomes_the_deadline_of_its_call() {
    let get = |query: &str| request("GET", &format!("/acme/Tables?{query}"), &[]);

    let beyond = format!("timeout={}0", u64::MAX);
    for (query, limit) in
        [("timeout=5", "5S"), ("timeout=31", "30S"), ("Timeout=30", "30S"), (&beyond, "30S")]
    {
        let (parts, _) = send(echo, get(query)).await;
        assert_eq!(parts.headers["x-timeout"], limit, "{query}");
    }
    for query in ["timeout=", "timeout=0", "timeout=-1", "timeout=soon"] {
        let (parts, body) = send(echo, get(query)).await;
        assert!(!parts.headers.contains_key("x-timeout"), "{query}");
        let body = body.expect("a body");
        let rule = b"timeout: must be a number of seconds, 1 or more: value=`";
        assert!(body.starts_with(rule), "{query}: {body:?}");
    }
}

#[tokio::test]
async fn rejects_a_body_of_unknown_length_if_a_body_is_possible() {
    let error = |method: &'static str, headers: &'static [(&'static str, &str)]| async move {
        let target = "/acme/t1(PartitionKey='p',RowKey='r')";
        let target = if method == "POST" { "/acme/Tables" } else { target };
        let (_, body) = send(echo, request(method, target, headers)).await;
        let body = body.expect("a body");
        String::from_utf8_lossy(&body).contains("Content-Length")
    };

    assert!(error("POST", &[]).await && error("PUT", &[]).await && error("MERGE", &[]).await);
    assert!(!error("GET", &[]).await && !error("DELETE", &[]).await);
    assert!(!error("POST", &[("content-length", "0")]).await);
    assert!(!error("PUT", &[("transfer-encoding", "chunked")]).await);
    // An unknown operation has its own error first.
    assert!(!error("FOO", &[]).await);
}

#[tokio::test]
async fn a_response_that_fails_midway_is_cut_off() {
    fn half(_: &Request) -> Response {
        let mut trailers = HeaderMap::new();
        let _ = Status::deadline_exceeded("late").add_header(&mut trailers);
        let frames = [Frame::data(Bytes::from("{\"value\":[")), Frame::trailers(trailers)];
        let frames = frames.map(Ok::<_, Status>);
        let stream = StreamBody::new(futures::stream::iter(frames));
        let mut answer = Response::new(Body::new(stream));
        answer.extensions_mut().insert(Rendered);
        answer
    }

    let (parts, body) = send(half, request("GET", "/acme/t", &[])).await;

    assert_eq!(parts.status, 200);
    assert!(body.expect_err("broken").contains("late"));
}
