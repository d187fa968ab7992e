use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use http_body_util::Full;
use tonic_types::ErrorDetails;
use tower::service_fn;

use super::*;

const METHOD: &str = "/opentelemetry.proto.collector.logs.v1.LogsService/Export";

fn post(body: &'static [u8]) -> Request {
    let request = Request::new(Body::new(Full::from(body)));
    let (mut parts, body) = request.into_parts();
    parts.method = Method::POST;
    parts.uri = Uri::from_static("/v1/logs");
    parts.headers.insert(header::CONTENT_TYPE, PROTOBUF);
    Request::from_parts(parts, body)
}

/// The paths and bodies of calls.
type SeenCalls = Arc<Mutex<Vec<(String, Bytes)>>>;

/// A service that keeps the body of its call and answers.
fn answering(answer: fn() -> Response) -> (CallService, SeenCalls) {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let kept = Arc::clone(&seen);
    let service = service_fn(move |request: Request| {
        let kept = Arc::clone(&kept);
        let path = request.uri().path().to_owned();
        let answered: trestle_service::layer::ResponseFuture = Box::pin(async move {
            let body = request.into_body().collect().await.unwrap().to_bytes();
            kept.lock().unwrap().push((path, body));
            Ok(answer())
        });
        answered
    });
    (CallService::new(service), seen)
}

async fn body_of(response: Response) -> Bytes {
    response.into_body().collect().await.unwrap().to_bytes()
}

#[test]
fn the_paths_of_otlp_and_no_others_are_its_requests() {
    let method = |path: &'static str| {
        let mut request = post(b"");
        *request.uri_mut() = Uri::from_static(path);
        method_of(&request)
    };
    assert_eq!(method("/v1/logs"), Some(METHOD));
    assert_eq!(
        method("/v1/metrics"),
        Some("/opentelemetry.proto.collector.metrics.v1.MetricsService/Export")
    );
    assert_eq!(method("/v1/traces"), None);
    assert_eq!(method("/v1/logs/"), None);
}

#[test]
fn a_request_of_another_verb_type_or_encoding_is_rejected() {
    assert_eq!(rejected(&post(b"")), None);
    let reason = |change: fn(&mut Request)| {
        let mut request = post(b"");
        change(&mut request);
        rejected(&request).map(|(reason, _)| reason)
    };
    let json = |request: &mut Request| {
        let json = HeaderValue::from_static("application/json");
        request.headers_mut().insert(header::CONTENT_TYPE, json);
    };
    let encoding = |request: &mut Request| {
        request.headers_mut().insert(header::CONTENT_ENCODING, HeaderValue::from_static("br"));
    };
    assert_eq!(
        reason(|request| *request.method_mut() = Method::GET),
        Some(Reason::UnsupportedHttpVerb)
    );
    assert_eq!(reason(json), Some(Reason::InvalidHeaderValue));
    assert_eq!(reason(encoding), Some(Reason::InvalidHeaderValue));
}

#[tokio::test]
async fn a_body_becomes_the_one_message_of_a_call_and_back() {
    let (calls, seen) = answering(|| Response::new(Body::new(Full::from(&b"\0\0\0\0\x02ok"[..]))));

    let answer = export(calls, METHOD, post(b"records")).await;

    assert_eq!(answer.status(), StatusCode::OK);
    assert_eq!(answer.headers()[header::CONTENT_TYPE], PROTOBUF);
    assert_eq!(body_of(answer).await, &b"ok"[..]);
    let seen = seen.lock().unwrap();
    assert_eq!(*seen, [(METHOD.to_owned(), Bytes::from_static(b"\0\0\0\0\x07records"))]);
}

#[tokio::test]
async fn a_compressed_body_stays_compressed() {
    let mut request = post(b"gz");
    request.headers_mut().insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));

    let call = into_call(METHOD, request).await.unwrap();

    assert_eq!(call.headers()["grpc-encoding"], "gzip");
    assert!(!call.headers().contains_key(header::CONTENT_ENCODING));
    let body = call.into_body().collect().await.unwrap().to_bytes();
    assert_eq!(body, &b"\x01\0\0\0\x02gz"[..]);
}

#[tokio::test]
async fn a_body_of_unknown_length_has_one_in_the_call() {
    let frames =
        stream::iter([Ok::<_, Status>(http_body::Frame::data(Bytes::from_static(b"abc")))]);
    let request = post(b"").map(|_| Body::new(StreamBody::new(frames)));

    let call = into_call(METHOD, request).await.unwrap();

    let body = call.into_body().collect().await.unwrap().to_bytes();
    assert_eq!(body, &b"\0\0\0\0\x03abc"[..]);
}

#[tokio::test]
async fn a_body_over_the_limit_is_rejected() {
    static LARGE: [u8; MESSAGE_BYTES_MAX + 1] = [0; MESSAGE_BYTES_MAX + 1];
    let fault = into_call(METHOD, post(&LARGE)).await.unwrap_err();
    assert_eq!(fault.reason, Reason::RpcMessageTooLarge);
}

#[test]
fn only_errors_that_pass_are_retried() {
    let delay = ErrorDetails::with_retry_info(Some(Duration::from_secs(1)));
    let busy = Status::with_error_details(Code::ResourceExhausted, "busy", delay);
    for (status, http, is_retryable) in [
        (busy, StatusCode::TOO_MANY_REQUESTS, true),
        (Status::resource_exhausted("too large"), StatusCode::PAYLOAD_TOO_LARGE, false),
        (Status::unavailable("later"), StatusCode::SERVICE_UNAVAILABLE, true),
        (Status::invalid_argument("never"), StatusCode::BAD_REQUEST, false),
        (Status::unauthenticated("who"), StatusCode::UNAUTHORIZED, false),
        (Status::internal("defect"), StatusCode::INTERNAL_SERVER_ERROR, false),
    ] {
        let answer = failed(&status);
        assert_eq!(answer.status(), http, "{status:?}");
        assert_eq!(answer.headers().contains_key(header::RETRY_AFTER), is_retryable, "{status:?}");
    }
}

#[tokio::test]
async fn a_failed_call_is_a_status_message() {
    let (calls, _) = answering(|| Status::unavailable("no store").into_http());

    let answer = export(calls, METHOD, post(b"")).await;

    assert_eq!(answer.status(), StatusCode::SERVICE_UNAVAILABLE);
    let message = tonic_types::Status::decode(body_of(answer).await).unwrap();
    assert_eq!((message.code, message.message.as_str()), (Code::Unavailable.into(), "no store"));
}
