//! Each layer in front of a test service.

mod load;

use crate::status::{DOMAIN, IntoStatus as _};
use std::{
    future::{Future, pending, ready},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use futures::{StreamExt as _, stream};
use http::HeaderValue;
use http_body::Frame;
use http_body_util::{BodyExt as _, StreamBody};
use opentelemetry::metrics::MeterProvider as _;
use opentelemetry_sdk::metrics::SdkMeterProvider;
use tokio::time::sleep;
use tonic::{Code, Status, body::Body};
use tonic_types::StatusExt as _;
use tower::{Layer, Service, ServiceExt as _, service_fn};

use super::{
    CallService, Request, Response,
    admission::AdmissionLayer,
    deadline::DeadlineLayer,
    error_response,
    message_size::MessageSizeLayer,
    methods::Methods,
    panic::PanicLayer,
    trace::{CallTelemetry, TraceLayer},
};
use crate::access::AccessLog;
use crate::call_protocol::CallProtocol;
use crate::propagation::Traces;
use trestle_model::fault::{Fault, Reason};

type Frames = Result<Frame<Bytes>, Status>;

/// `layer` in front of a service that responds with `work`.
fn before<L, W, A>(layer: L, mut work: W) -> CallService
where
    L: Layer<CallService>,
    L::Service: Service<Request, Response = Response, Error = std::convert::Infallible>,
    L::Service: Clone + Send + Sync + 'static,
    <L::Service as Service<Request>>::Future: Send + 'static,
    W: FnMut(Request) -> A + Clone + Send + Sync + 'static,
    A: Future<Output = Response> + Send + 'static,
{
    let inner = service_fn(move |request| {
        let answer = work(request);
        async move { Ok(answer.await) }
    });
    CallService::new(layer.layer(CallService::new(inner)))
}

fn request(headers: &[(&'static str, &str)]) -> Request {
    let mut request = Request::new(Body::empty());
    for (name, value) in headers {
        let value = HeaderValue::from_str(value).expect("a header value");
        request.headers_mut().insert(*name, value);
    }
    request
}

fn methods() -> Methods {
    Methods::from_descriptors(trestle_proto::FILE_DESCRIPTOR_SET).expect("descriptors")
}

async fn send(service: &CallService, headers: &[(&'static str, &str)]) -> Response {
    let Ok(answer) = service.clone().oneshot(request(headers)).await;
    answer
}

/// The status of a response: of its headers, or of its trailers after the whole body.
async fn status(answer: Response) -> Status {
    if let Some(status) = Status::from_header_map(answer.headers()) {
        return status;
    }
    // Longer than any time limit of a layer.
    let ended = tokio::time::timeout(Duration::from_secs(600), answer.into_body().collect()).await;
    let body = ended.expect("the answer ends").expect("a body");
    let trailers = body.trailers().expect("trailers");
    Status::from_header_map(trailers).expect("a status")
}

fn reason(status: &Status) -> String {
    let details = status.get_error_details();
    details.error_info().expect("error info").reason.clone()
}

fn data(text: &'static str) -> Frames {
    Ok(Frame::data(Bytes::from_static(text.as_bytes())))
}

fn end(status: &Status) -> Frames {
    let mut trailers = http::HeaderMap::new();
    status.add_header(&mut trailers).expect("a header value");
    Ok(Frame::trailers(trailers))
}

fn streaming(frames: impl futures::Stream<Item = Frames> + Send + 'static) -> Response {
    Response::new(Body::new(StreamBody::new(Box::pin(frames))))
}

/// Sets a flag when it is dropped.
struct Dropped(Arc<AtomicBool>);

impl Drop for Dropped {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_past_its_deadline_fails_and_its_work_is_dropped() {
    let stopped = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&stopped);
    let service = before(DeadlineLayer::new(Duration::from_secs(60), methods()), move |_| {
        let work = Dropped(Arc::clone(&flag));
        async move {
            let _work = work;
            pending().await
        }
    });

    let status = status(send(&service, &[("grpc-timeout", "50m")]).await).await;

    assert_eq!(status.code(), Code::DeadlineExceeded);
    assert_eq!(reason(&status), "OPERATION_TIMED_OUT");
    assert!(stopped.load(Ordering::SeqCst), "the work continues");
}

#[tokio::test(start_paused = true)]
async fn a_call_without_a_deadline_or_with_a_longer_one_ends_at_our_limit() {
    let cap = Duration::from_secs(60);
    let service = before(DeadlineLayer::new(cap, methods()), |_| pending());

    for headers in [&[][..], &[("grpc-timeout", "2H")][..]] {
        let started = tokio::time::Instant::now();
        let status = status(send(&service, headers).await).await;

        assert_eq!(status.code(), Code::DeadlineExceeded);
        assert_eq!(started.elapsed(), cap);
    }
}

#[tokio::test(start_paused = true)]
async fn a_stream_ends_at_the_clients_deadline_but_not_at_our_limit() {
    let service = before(DeadlineLayer::new(Duration::from_secs(1), methods()), |_| {
        let ticks = stream::unfold(0, |count| async move {
            sleep(Duration::from_secs(1)).await;
            match count {
                0..5 => Some((data("tick"), count + 1)),
                5 => Some((end(&Status::ok("")), count + 1)),
                _ => None,
            }
        });
        ready(streaming(ticks))
    });

    let cut = status(send(&service, &[("grpc-timeout", "2500m")]).await).await;
    let whole = status(send(&service, &[]).await).await;

    assert_eq!(cut.code(), Code::DeadlineExceeded);
    assert_eq!(whole.code(), Code::Ok);
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_is_always_ready_ends_at_the_deadline_too() {
    let service = before(DeadlineLayer::new(Duration::from_secs(1), methods()), |_| {
        let frames = stream::repeat_with(|| data("more")).take(10_000);
        ready(streaming(frames.chain(stream::iter([end(&Status::ok(""))]))))
    });
    let answer = send(&service, &[("grpc-timeout", "1S")]).await;
    tokio::time::advance(Duration::from_secs(2)).await;

    assert_eq!(status(answer).await.code(), Code::DeadlineExceeded);
}

#[tokio::test]
async fn rejects_a_malformed_deadline() {
    let layer = DeadlineLayer::new(Duration::from_secs(60), methods());
    let service = before(layer, |_| ready(Response::new(Body::empty())));

    let status = status(send(&service, &[("grpc-timeout", "soon")]).await).await;

    assert_eq!(status.code(), Code::InvalidArgument);
    assert!(status.message().contains("grpc-timeout"), "{}", status.message());
}

#[tokio::test]
async fn a_call_holds_its_slot_until_its_body_ends() {
    let service = before(AdmissionLayer::new(1, methods()), |_| {
        let large = Ok(Frame::data(Bytes::from(vec![7; 64 * 1024])));
        ready(streaming(stream::iter([large, end(&Status::ok(""))])))
    });

    let open = send(&service, &[]).await;
    let rejected = status(send(&service, &[]).await).await;
    assert_eq!(status(open).await.code(), Code::Ok);
    let admitted = send(&service, &[]).await;
    drop(admitted);
    let again = status(send(&service, &[]).await).await;

    assert_eq!(rejected.code(), Code::ResourceExhausted);
    assert_eq!(reason(&rejected), "SERVER_BUSY");
    let details = rejected.get_error_details();
    assert!(details.retry_info().expect("retry info").retry_delay.is_some());
    assert_eq!(again.code(), Code::Ok, "an abandoned answer keeps its slot");
}

#[tokio::test]
async fn a_dropped_call_releases_its_slot() {
    let service = before(AdmissionLayer::new(1, methods()), |_| pending());

    let abandoned = tokio::time::timeout(Duration::from_millis(1), send(&service, &[])).await;
    assert!(abandoned.is_err());
    let next = tokio::time::timeout(Duration::from_millis(1), send(&service, &[])).await;

    assert!(next.is_err(), "was rejected instead of queued");
}

#[tokio::test]
async fn a_panic_anywhere_in_a_call_is_an_internal_error_without_its_text() {
    let panics: [CallService; 3] = [
        before(PanicLayer::default(), |_| -> std::future::Ready<Response> { panic!("secret") }),
        before(PanicLayer::default(), |_| async { panic!("secret") }),
        before(PanicLayer::default(), |_| {
            let frames =
                stream::iter([0, 1]).map(|n| if n == 0 { data("a") } else { panic!("secret") });
            ready(streaming(frames))
        }),
    ];

    for service in panics {
        let status = status(send(&service, &[]).await).await;

        assert_eq!(status.code(), Code::Internal);
        assert!(!format!("{status:?}").contains("secret"), "{status:?}");
    }
}

const TOO_LARGE: &str =
    "Error, decoded message length too large: found 9 bytes, the limit is: 8 bytes";

#[tokio::test]
async fn a_message_that_is_too_large_exhausts_a_resource_in_headers_and_trailers() {
    let too_large = || Status::out_of_range(TOO_LARGE);
    let at_once = before(MessageSizeLayer::new(8), move |_| ready(too_large().into_http()));
    let later = before(MessageSizeLayer::new(8), move |_| {
        ready(streaming(stream::iter([data("a"), end(&too_large())])))
    });

    for service in [at_once, later] {
        let status = status(send(&service, &[]).await).await;

        assert_eq!(status.code(), Code::ResourceExhausted);
        assert_eq!(reason(&status), "RPC_MESSAGE_TOO_LARGE");
    }
}

#[tokio::test]
async fn other_responses_pass_the_message_size_layer_unchanged() {
    let service = before(MessageSizeLayer::new(8), |_| {
        ready(Status::out_of_range("past the end").into_http())
    });

    let status = status(send(&service, &[]).await).await;

    assert_eq!((status.code(), status.message()), (Code::OutOfRange, "past the end"));
}

/// The layer with a reader of its metrics, and their provider.
fn tracing_layer(is_by_method: bool) -> (TraceLayer, prometheus::Registry, SdkMeterProvider) {
    let registry = prometheus::Registry::new();
    let reader = opentelemetry_prometheus::exporter().with_registry(registry.clone());
    let reader = reader.build().expect("an exporter");
    let meters = SdkMeterProvider::builder().with_reader(reader).build();
    let observe = CallTelemetry {
        meter: meters.meter("test"),
        traces: Traces::default(),
        methods: methods(),
        random: || 7,
        access: AccessLog::off(),
        is_by_method,
    };
    (TraceLayer::new(observe), registry, meters)
}

#[tokio::test]
async fn a_request_id_is_accepted_or_generated_then_forwarded_and_echoed() {
    let (layer, _registry, _meters) = tracing_layer(false);
    let service = before(layer, |request: Request| {
        let mut answer = Response::new(Body::empty());
        let received = request.headers()["x-request-id"].clone();
        answer.headers_mut().insert("x-received", received);
        ready(answer)
    });
    let made = "00000000-0000-4000-8000-000000000000".len();

    let own = send(&service, &[("x-request-id", "my-id")]).await;
    let none = send(&service, &[]).await;
    let hostile = send(&service, &[("x-request-id", "has blanks")]).await;
    let long = send(&service, &[("x-request-id", &"x".repeat(129))]).await;
    let longest = send(&service, &[("x-request-id", &"x".repeat(128))]).await;

    assert_eq!(own.headers()["x-request-id"], "my-id");
    assert_eq!(longest.headers()["x-request-id"].len(), 128);
    for answer in [&none, &hostile, &long] {
        assert_eq!(answer.headers()["x-request-id"].len(), made);
    }
    for answer in [own, none, hostile, long, longest] {
        assert_eq!(answer.headers()["x-request-id"], answer.headers()["x-received"]);
    }
}

#[tokio::test]
async fn a_call_is_counted_once_with_its_code_when_its_response_ends() {
    let (layer, registry, _meters) = tracing_layer(false);
    let service =
        before(layer, |_| ready(streaming(stream::iter([data("a"), end(&Status::aborted("no"))]))));
    let text = || {
        let families = registry.gather();
        prometheus::TextEncoder::new().encode_to_string(&families).expect("text")
    };

    let answer = send(&service, &[]).await;
    let open = text();
    status(answer).await;
    drop(send(&service, &[]).await);
    let over = text();

    assert!(
        open.contains("active_calls{trestle_protocol=\"grpc\",otel_scope_name=\"test\"} 1"),
        "{open}"
    );
    assert!(!open.contains("rpc_server_call_duration_seconds_count"), "{open}");
    assert!(
        over.contains("active_calls{trestle_protocol=\"grpc\",otel_scope_name=\"test\"} 0"),
        "{over}"
    );
    for code in ["ABORTED", "CANCELLED"] {
        let counted = |line: &str| {
            line.starts_with("rpc_server_call_duration_seconds_count")
                && line.contains(code)
                && line.contains("_OTHER")
                && line.ends_with(" 1")
        };
        assert!(over.lines().any(counted), "{code}: {over}");
    }
}

/// The series in the text of metrics that contain all of these parts.
fn series<'a>(text: &'a str, parts: &[&str]) -> Vec<&'a str> {
    let has_all = |line: &&str| parts.iter().all(|part| line.contains(part));
    text.lines().filter(|line| !line.starts_with('#')).filter(has_all).collect()
}

#[tokio::test]
async fn buckets_are_of_services_unless_methods_are_required() {
    for (is_by_method, expected) in [(false, 0), (true, 16)] {
        let (layer, registry, _meters) = tracing_layer(is_by_method);
        let service = before(layer, |_| ready(Status::ok("").into_http()));

        status(send(&service, &[]).await).await;
        let families = registry.gather();
        let text = prometheus::TextEncoder::new().encode_to_string(&families).expect("text");

        let bucket = "rpc_server_call_duration_seconds_bucket";
        let bounded = series(&text, &[bucket]).iter().filter(|l| !l.contains("+Inf")).count();
        assert_eq!(bounded, expected, "{text}");
        let unary = ["trestle_rpc_server_unary_duration_seconds_bucket", "rpc_service=\"_OTHER\""];
        assert_eq!(series(&text, &unary).len(), 8, "{text}");
        let sizes = series(&text, &["request_size_bytes_count", "rpc_service=\"_OTHER\""]);
        assert_eq!(sizes.len(), 1, "{text}");
        assert_eq!(sizes[0].contains("rpc_method"), is_by_method, "{text}");
    }
}

#[tokio::test]
async fn calls_are_labelled_with_their_protocol_and_others_have_no_series() {
    let (layer, registry, _meters) = tracing_layer(false);
    let service = before(layer, |_| ready(error_response(Fault::new(Reason::InternalError, "no"))));

    for protocol in [CallProtocol::Rest, CallProtocol::GrpcWeb] {
        let mut call = request(&[]);
        call.extensions_mut().insert(protocol);
        let Ok(answer) = service.clone().oneshot(call).await;
        status(answer).await;
    }
    let families = registry.gather();
    let text = prometheus::TextEncoder::new().encode_to_string(&families).expect("text");

    for metric in
        ["call_duration_seconds_count", "rejections_total", "active_calls{", "size_bytes_sum"]
    {
        for protocol in ["rest", "grpc-web"] {
            let label = format!("trestle_protocol=\"{protocol}\"");
            assert!(!series(&text, &[metric, &label]).is_empty(), "{metric} {label}: {text}");
        }
    }
    assert!(series(&text, &["trestle_protocol=\"grpc\""]).is_empty(), "{text}");
}

#[test]
fn a_wrong_digest_of_an_upload_is_no_failure_of_the_server() {
    let is_of_upload = |reason| {
        let status = Fault::new(reason, "wrong").into_status(DOMAIN);
        let response = status.into_http::<Body>();
        super::call::is_of_upload(response.headers().get(Status::GRPC_STATUS_DETAILS))
    };
    for (reason, expected) in [
        (Reason::Md5Mismatch, true),
        (Reason::Crc64Mismatch, true),
        (Reason::InternalError, false),
        (Reason::BlobNotFound, false),
    ] {
        assert_eq!(is_of_upload(reason), expected, "{reason:?}");
    }
    assert!(!super::call::is_of_upload(None));
}
