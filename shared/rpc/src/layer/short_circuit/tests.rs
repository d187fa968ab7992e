//! What layers see of a short-circuit response, and what they count.

use http::StatusCode;
use tonic::Code;
use tower::ServiceExt as _;

use super::*;

const PATH: &str = "/trestle.table.v1.TableService/_Preflight";

fn original() -> Request {
    let mut request = Request::new(Body::new("a body".to_owned()));
    *request.method_mut() = Method::OPTIONS;
    *request.uri_mut() = http::Uri::from_static("/other");
    for (name, value) in [
        ("traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"),
        ("authorization", "SharedKey secret"),
        ("origin", "https://page.example"),
    ] {
        request.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    request.extensions_mut().insert("a peer");
    request
}

async fn answered(request: Request) -> Response {
    let Ok(answer) = ShortCircuitService.oneshot(request).await;
    answer
}

#[tokio::test]
async fn layers_see_an_empty_call_in_the_trace_of_the_request() {
    let original = original();
    let answer = async { Response::new(Body::empty()) };
    let call = ShortCircuitResponse::request(&original, original.headers(), PATH, answer);

    assert_eq!((call.method(), call.uri().path()), (&Method::POST, PATH));
    assert_eq!(
        call.headers().keys().map(|name| name.as_str()).collect::<Vec<_>>(),
        ["traceparent"]
    );
    assert_eq!(call.extensions().get::<&str>(), Some(&"a peer"));
    assert!(http_body::Body::is_end_stream(call.body()), "its body is not read");
}

#[tokio::test]
async fn the_response_arrives_once_and_is_marked() {
    let original = original();
    let answer = async {
        let mut answer = Response::new(Body::empty());
        *answer.status_mut() = StatusCode::IM_A_TEAPOT;
        answer
    };
    let mut call = ShortCircuitResponse::request(&original, original.headers(), PATH, answer);
    let mut copy = Request::new(Body::empty());
    copy.extensions_mut().extend(call.extensions().clone());

    let response = ShortCircuitResponse::take(&mut call).expect("a response");
    let Ok(answer) = response.await;
    assert_eq!(answer.status(), StatusCode::IM_A_TEAPOT);
    assert!(answer.extensions().get::<IsShortCircuit>().is_some());
    assert!(ShortCircuitResponse::take(&mut copy).is_none(), "a copy of the request has none left");
}

#[tokio::test]
async fn a_request_without_a_response_is_an_internal_error() {
    let answer = answered(Request::new(Body::empty())).await;
    let status = Status::from_header_map(answer.headers()).expect("a status");
    assert_eq!(status.code(), Code::Internal);
}

#[test]
fn an_outcome_is_counted_and_changes_neither_status_nor_body_type() {
    let plain = || {
        let mut answer = Response::new(Body::new("words".to_owned()));
        *answer.status_mut() = StatusCode::METHOD_NOT_ALLOWED;
        answer.headers_mut().insert("content-type", HeaderValue::from_static("text/plain"));
        answer
    };
    let succeeded = with_outcome(plain(), Ok(()));
    assert_eq!(succeeded.headers()[Status::GRPC_STATUS], "0");
    let fault = Fault::new(Reason::UnsupportedHttpVerb, "needs POST");
    let failed = with_outcome(plain(), Err(fault));

    let status = Status::from_header_map(failed.headers()).expect("a status");
    assert_eq!((status.message(), status.code()), ("needs POST", Code::Unimplemented));
    assert_eq!(failed.status(), StatusCode::METHOD_NOT_ALLOWED);
    assert_eq!(failed.headers()["content-type"], "text/plain");
}
