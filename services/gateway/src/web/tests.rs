//! Requests of browsers and of others: which are accepted, and the form of their responses.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use bytes::{BufMut as _, Bytes};
use futures::stream;
use http::{HeaderMap, Uri};
use http_body::Frame;
use http_body_util::{BodyExt as _, Full, StreamBody};
use opentelemetry::metrics::{MeterProvider as _, noop::NoopMeterProvider};
use tonic::{Code, Status, body::Body};
use tonic_types::StatusExt as _;
use tower::service_fn;
use trestle_rpc::access::AccessLog;
use trestle_rpc::layer::methods::Methods;
use trestle_rpc::layer::trace::CallTelemetry;
use trestle_rpc::propagation::Traces;

use super::{response_body::with_status_in_body, *};
use crate::{CallLimits, IngressStack};

const PATH: &str = "/trestle.table.v1.TableService/GetTable";
/// A message of gRPC with the content `abc`.
const MESSAGE: &[u8] = b"\0\0\0\0\x03abc";
/// The same in base64.
const MESSAGE_TEXT: &[u8] = b"AAAAAANhYmM=";

/// A stack without telemetry.
pub(crate) fn stack() -> IngressStack {
    let methods = Methods::from_descriptors(trestle_proto::FILE_DESCRIPTOR_SET);
    let observe = CallTelemetry {
        meter: NoopMeterProvider::new().meter("test"),
        methods: methods.expect("the build wrote the descriptors"),
        random: || 7,
        traces: Traces::default(),
        access: AccessLog::off(),
        is_by_method: false,
    };
    let limits = CallLimits {
        calls_max: 16,
        body_bytes_max: 1 << 20,
        message_bytes_max: 1 << 20,
        request_within_max: Duration::from_secs(20),
        answer_within_max: Duration::from_secs(60),
    };
    IngressStack::new(limits, observe)
}

/// The content type and the body of each call, or the error of its body.
type SeenBodies = Arc<Mutex<Vec<(HeaderValue, Result<Bytes, Status>)>>>;

/// The gateway of browsers before a service with this response.
fn web(answer: fn() -> Response) -> (Web, SeenBodies) {
    let seen: SeenBodies = Arc::default();
    let kept = Arc::clone(&seen);
    let service = service_fn(move |request: Request| -> ResponseFuture {
        let kept = Arc::clone(&kept);
        Box::pin(async move {
            let kind = request.headers()[header::CONTENT_TYPE].clone();
            let body = request.into_body().collect().await.map(|body| body.to_bytes());
            kept.lock().expect("not poisoned").push((kind, body));
            Ok(answer())
        })
    });
    (Web::new(CallService::new(service), ShortCircuit::new(&stack())), seen)
}

fn request(version: Version, kind: &'static str, body: &'static [u8]) -> Request {
    let mut request = Request::new(Body::new(Full::from(body)));
    *request.method_mut() = Method::POST;
    *request.uri_mut() = Uri::from_static(PATH);
    *request.version_mut() = version;
    request.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    request
}

/// A response with one message, and its status in the trailers.
fn one_message() -> Response {
    let mut trailers = HeaderMap::new();
    trailers.insert("grpc-status", HeaderValue::from_static("0"));
    let frames = [Frame::data(Bytes::from_static(MESSAGE)), Frame::trailers(trailers)];
    let frames = stream::iter(frames.map(Ok::<_, Status>));
    let mut answer = Response::new(Body::new(StreamBody::new(frames)));
    let kind = HeaderValue::from_static("application/grpc");
    answer.headers_mut().insert(header::CONTENT_TYPE, kind);
    answer
}

/// A frame of trailers in a body of gRPC-Web.
fn trailers_frame(text: &str) -> Vec<u8> {
    let mut frame = vec![0x80];
    frame.put_u32(text.len().try_into().expect("short"));
    frame.extend_from_slice(text.as_bytes());
    frame
}

async fn call(web: &mut Web, request: Request) -> Response {
    let Ok(answer) = web.call(request).await;
    answer
}

async fn body_of(answer: Response) -> Bytes {
    answer.into_body().collect().await.expect("a whole body").to_bytes()
}

#[tokio::test]
async fn grpc_passes_unchanged_over_http_2() {
    for kind in ["application/grpc", "application/grpc+proto"] {
        let (mut web, seen) = web(one_message);

        let answer = call(&mut web, request(Version::HTTP_2, kind, MESSAGE)).await;

        let body = answer.into_body().collect().await.expect("a whole body");
        assert_eq!(body.trailers().expect("trailers")["grpc-status"], "0", "{kind}");
        assert_eq!(body.to_bytes(), MESSAGE, "{kind}");
        let seen = seen.lock().expect("not poisoned");
        assert_eq!(seen[0].0, kind);
        assert_eq!(seen[0].1.as_ref().expect("a body"), MESSAGE);
    }
}

#[tokio::test]
async fn grpc_web_is_translated_in_both_directions_in_the_type_of_the_request() {
    for version in [Version::HTTP_11, Version::HTTP_2] {
        for kind in ["application/grpc-web", "application/grpc-web+proto"] {
            let (mut web, seen) = web(one_message);

            let answer = call(&mut web, request(version, kind, MESSAGE)).await;

            assert_eq!(answer.status(), StatusCode::OK);
            assert!(answer.headers()[header::CONTENT_TYPE].as_bytes().starts_with(WEB), "{kind}");
            let expected = [MESSAGE, &trailers_frame("grpc-status:0\r\n")].concat();
            assert_eq!(body_of(answer).await, expected, "{kind}");
            let seen = seen.lock().expect("not poisoned");
            assert_eq!(seen[0].0, "application/grpc");
            assert_eq!(seen[0].1.as_ref().expect("a body"), MESSAGE);
        }
    }
}

#[tokio::test]
async fn the_text_of_a_client_is_decoded_and_its_response_is_text() {
    for kind in ["application/grpc-web-text", "application/grpc-web-text+proto"] {
        let (mut web, seen) = web(one_message);

        let answer = call(&mut web, request(Version::HTTP_11, kind, MESSAGE_TEXT)).await;

        let answered = answer.headers()[header::CONTENT_TYPE].to_str().expect("text").to_owned();
        assert!(answered.starts_with("application/grpc-web-text"), "{answered}");
        let body = body_of(answer).await;
        assert!(body.is_ascii() && body.starts_with(&MESSAGE_TEXT[..8]), "{body:?}");
        let seen = seen.lock().expect("not poisoned");
        assert_eq!(seen[0].1.as_ref().expect("a body"), MESSAGE, "{kind}");
    }
}

#[tokio::test]
async fn rejects_requests_that_are_no_call_with_a_status_of_http() {
    let (unsupported, verb) = (StatusCode::UNSUPPORTED_MEDIA_TYPE, StatusCode::METHOD_NOT_ALLOWED);
    for (version, method, kind, status) in [
        // A page may send these types to any origin without a preflight request.
        (Version::HTTP_2, Method::POST, "text/plain", unsupported),
        (Version::HTTP_11, Method::POST, "application/x-www-form-urlencoded", unsupported),
        (Version::HTTP_11, Method::POST, "multipart/form-data; boundary=b", unsupported),
        (Version::HTTP_11, Method::POST, "application/grpc", unsupported),
        (Version::HTTP_2, Method::POST, "Application/Grpc", unsupported),
        (Version::HTTP_2, Method::POST, "application/grpc-web+json", unsupported),
        (Version::HTTP_2, Method::POST, "application/grpc-web; charset=utf-8", unsupported),
        (Version::HTTP_11, Method::GET, "application/grpc-web", verb),
        (Version::HTTP_2, Method::PUT, "application/grpc-web-text", verb),
        (Version::HTTP_2, Method::GET, "application/grpc", verb),
    ] {
        let (mut web, seen) = web(one_message);
        let mut request = request(version, kind, MESSAGE);
        *request.method_mut() = method;

        let answer = call(&mut web, request).await;

        assert_eq!(answer.status(), status, "{kind}");
        let allowed = answer.headers().get(header::ALLOW).map(HeaderValue::as_bytes);
        assert_eq!(allowed, (status == verb).then_some(&b"POST"[..]), "{kind}");
        assert!(!answer.headers().contains_key("grpc-status"), "{kind}");
        assert!(!body_of(answer).await.is_empty(), "a text for people");
        assert!(seen.lock().expect("not poisoned").is_empty(), "{kind}");
    }
    let (mut web, _) = web(one_message);
    let mut without = request(Version::HTTP_2, "application/grpc", MESSAGE);
    without.headers_mut().remove(header::CONTENT_TYPE);
    assert_eq!(call(&mut web, without).await.status(), unsupported);
}

#[tokio::test]
async fn an_error_is_in_the_body_where_every_page_can_read_it() {
    let (mut web, _) = web(|| Status::not_found("no such table").into_http());

    let answer = call(&mut web, request(Version::HTTP_11, "application/grpc-web", MESSAGE)).await;

    assert_eq!(answer.status(), StatusCode::OK);
    assert!(!answer.headers().contains_key("grpc-status"));
    let body = body_of(answer).await;
    let text = String::from_utf8_lossy(&body);
    assert!(body.starts_with(&[0x80]), "trailers alone: {text:?}");
    assert!(text.contains("grpc-status:5\r\n"), "{text:?}");
    assert!(text.contains("grpc-message:no%20such%20table\r\n"), "{text:?}");
}

#[tokio::test]
async fn a_malformed_body_is_an_error_of_the_client() {
    for body in [&b"AAAAAANhY"[..], b"AAAA*ANhYmM="] {
        let (mut web, seen) = web(|| Status::unknown("broken stream").into_http());

        let mut request = request(Version::HTTP_11, "application/grpc-web-text", body);
        let binary = HeaderValue::from_static("application/grpc-web");
        request.headers_mut().insert(header::ACCEPT, binary);
        let answer = call(&mut web, request).await;

        let seen = seen.lock().expect("not poisoned").pop().expect("a call");
        let status = seen.1.expect_err("a malformed body");
        assert_eq!(status.code(), Code::InvalidArgument, "{body:?}");
        // It replaces the error of the service, which saw a broken stream only.
        let answered = body_of(answer).await;
        let answered = String::from_utf8_lossy(&answered);
        assert!(answered.contains("grpc-status:3\r\n"), "{answered:?}");
        assert!(answered.contains("must%20be%20whole%20frames%20of%20gRPC-Web"), "{answered:?}");
        assert!(!answered.contains("broken"), "{answered:?}");
    }
}

#[tokio::test]
async fn the_error_of_a_malformed_body_has_the_domain_of_the_called_service() {
    for (path, domain) in [(PATH, "trestle.table.v1.TableService"), ("/nothing", "trestle")] {
        let (mut web, _) = web(|| Status::unknown("broken stream").into_http());
        let mut request = request(Version::HTTP_11, "application/grpc-web-text", b"!!!");
        let binary = HeaderValue::from_static("application/grpc-web");
        request.headers_mut().insert(header::ACCEPT, binary);
        *request.uri_mut() = Uri::from_static(path);

        let answered = body_of(call(&mut web, request).await).await;

        let trailers = str::from_utf8(&answered[5..]).expect("text").lines();
        let named = trailers.filter_map(|line| line.split_once(':')).map(|(name, value)| {
            let name: http::HeaderName = name.parse().expect("a name");
            (name, HeaderValue::from_str(value).expect("a value"))
        });
        let status = Status::from_header_map(&named.collect()).expect("a status");
        let details = status.get_error_details();
        let info = details.error_info().expect("an ErrorInfo");
        assert_eq!((info.reason.as_str(), info.domain.as_str()), ("INVALID_INPUT", domain));
    }
}

#[test]
fn a_response_has_the_type_of_its_request_unless_the_client_accepts_another() {
    const TEXT: &str = "application/grpc-web-text";
    for (accept, expected) in [
        (None, TEXT),
        (Some("*/*"), TEXT),
        (Some("application/grpc"), TEXT),
        (Some("application/grpc-web, */*"), TEXT),
        (Some("application/grpc-web"), "application/grpc-web"),
        (Some("application/grpc-web-text+proto"), "application/grpc-web-text+proto"),
    ] {
        let mut request = request(Version::HTTP_11, TEXT, b"");
        if let Some(accept) = accept {
            request.headers_mut().insert(header::ACCEPT, HeaderValue::from_static(accept));
        }
        answer_in_kind(&mut request);
        assert_eq!(request.headers()[header::ACCEPT], expected, "{accept:?}");
    }
}

#[tokio::test]
async fn only_the_status_moves_from_the_headers_into_the_body() {
    let mut answer = Response::new(Body::empty());
    for (name, value) in [
        ("grpc-status", "8"),
        ("grpc-message", "full"),
        ("grpc-status-details-bin", "AA"),
        ("grpc-encoding", "gzip"),
        ("grpc-accept-encoding", "gzip"),
        ("x-request-id", "1"),
    ] {
        answer.headers_mut().insert(name, HeaderValue::from_static(value));
    }

    let answer = with_status_in_body(answer);

    let mut names: Vec<_> = answer.headers().keys().map(|name| name.as_str().to_owned()).collect();
    names.sort();
    assert_eq!(names, ["grpc-accept-encoding", "grpc-encoding", "x-request-id"]);
    let body = answer.into_body().collect().await.expect("a body");
    let trailers = body.trailers().expect("trailers");
    assert_eq!((trailers.len(), &trailers["grpc-status"]), (3, &HeaderValue::from_static("8")));
}

#[tokio::test]
async fn a_response_without_a_status_in_its_headers_gets_no_trailers() {
    let answer = with_status_in_body(Response::new(Body::new(Full::from("abc"))));
    let body = answer.into_body().collect().await.expect("a body");
    assert_eq!(body.trailers(), None);
    assert_eq!(body.to_bytes(), "abc");
}
