//! Calls that wait when a shutdown begins, in front of a service that never responds by itself.

use std::{
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};

use futures::{StreamExt as _, future::pending, stream};
use http_body_util::StreamBody;
use tokio::time::{sleep, timeout};
use tonic::Code;
use tower::{Layer as _, ServiceExt as _, service_fn};

use super::*;
use crate::layer::CallService;

const RECEIVE: &str = "/trestle.queue.v1.QueueService/ReceiveMessages";
const STREAM: &str = "/trestle.queue.v1.QueueService/StreamMessages";
const SEND: &str = "/trestle.queue.v1.QueueService/SendMessages";
const UNKNOWN: &str = "/trestle.queue.v1.QueueService/Unknown";
/// Longer than anything here takes.
const LONG: Duration = Duration::from_secs(600);

/// Counts what is dropped.
#[derive(Clone, Default)]
struct Dropped(Arc<AtomicUsize>);

impl Drop for Dropped {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

fn methods() -> Methods {
    Methods::from_descriptors(trestle_proto::FILE_DESCRIPTOR_SET).expect("descriptors")
}

/// The layer in front of a service that responds with `work`.
fn before<W, A>(shutdown: &ShutdownSignal, work: W) -> CallService
where
    W: Fn(Request) -> A + Clone + Send + Sync + 'static,
    A: Future<Output = Response> + Send + 'static,
{
    let inner = service_fn(move |request| {
        let answer = work(request);
        async move { Ok(answer.await) }
    });
    let layer = ShutdownLayer::new(shutdown.clone(), methods());
    CallService::new(layer.layer(CallService::new(inner)))
}

fn request(path: &'static str, body: Body) -> Request {
    let mut request = Request::new(body);
    *request.uri_mut() = http::Uri::from_static(path);
    request
}

async fn call(service: &CallService, path: &'static str) -> Response {
    let answer = service.clone().oneshot(request(path, Body::empty()));
    let Ok(answer) = timeout(LONG, answer).await.expect("an answer");
    answer
}

/// The messages of a response, and its trailers.
async fn read(answer: Response) -> (Bytes, HeaderMap) {
    let body = timeout(LONG, answer.into_body().collect()).await.expect("it ends");
    let body = body.expect("a body");
    let trailers = body.trailers().cloned().unwrap_or_default();
    (body.to_bytes(), trailers)
}

/// A stream of two messages, after which nothing is sent.
fn endless() -> Body {
    let messages = ["one", "two"].map(|text| Ok::<_, Status>(Frame::data(Bytes::from(text))));
    Body::new(StreamBody::new(stream::iter(messages).chain(stream::pending())))
}

#[tokio::test(start_paused = true)]
async fn a_call_that_waits_gets_an_empty_message() {
    let shutdown = ShutdownSignal::default();
    let service = before(&shutdown, |_| pending());
    let ends = async {
        sleep(Duration::from_secs(5)).await;
        shutdown.begin();
    };

    let (answer, ()) = tokio::join!(call(&service, RECEIVE), ends);
    assert_eq!(answer.headers()[CONTENT_TYPE], "application/grpc");
    let (messages, trailers) = read(answer).await;
    assert_eq!(messages, EMPTY);
    let status = Status::from_header_map(&trailers).expect("a status");
    assert_eq!(status.code(), Code::Ok);
}

#[tokio::test(start_paused = true)]
async fn a_wait_that_begins_during_a_shutdown_ends_at_once() {
    let shutdown = ShutdownSignal::default();
    shutdown.begin();
    let service = before(&shutdown, |_| pending());

    let begun = tokio::time::Instant::now();
    let (messages, _) = read(call(&service, RECEIVE).await).await;
    assert_eq!(messages, EMPTY);
    assert_eq!(begun.elapsed(), Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn a_response_that_is_available_is_sent_during_a_shutdown() {
    let shutdown = ShutdownSignal::default();
    shutdown.begin();
    let service = before(&shutdown, |_| async {
        Response::new(Body::new(Full::new(Bytes::from_static(b"a message"))))
    });

    let (messages, _) = read(call(&service, RECEIVE).await).await;
    assert_eq!(messages, "a message");
}

#[tokio::test(start_paused = true)]
async fn calls_that_do_not_wait_are_finished() {
    let shutdown = ShutdownSignal::default();
    shutdown.begin();
    let service = before(&shutdown, |_| async {
        sleep(Duration::from_secs(20)).await;
        Response::new(Body::new(Full::new(Bytes::from_static(b"done"))))
    });

    for path in [SEND, UNKNOWN] {
        let (messages, _) = read(call(&service, path).await).await;
        assert_eq!(messages, "done", "{path}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_stream_sends_what_is_available_and_ends_with_a_retryable_status() {
    let shutdown = ShutdownSignal::default();
    let service = before(&shutdown, |_| async { Response::new(endless()) });

    let answer = call(&service, STREAM).await;
    let ends = async {
        sleep(Duration::from_secs(5)).await;
        shutdown.begin();
    };
    let ((messages, trailers), ()) = tokio::join!(read(answer), ends);
    assert_eq!(messages, "onetwo");
    let status = Status::from_header_map(&trailers).expect("a status");
    assert_eq!(status.code(), Code::Unavailable, "{status:?}");
    assert!(status.message().contains("shutting down"), "{status:?}");
}

#[tokio::test(start_paused = true)]
async fn the_work_of_a_stream_is_dropped_with_its_last_part() {
    let (shutdown, dropped) = (ShutdownSignal::default(), Dropped::default());
    let count = Arc::clone(&dropped.0);
    let held = Arc::new(std::sync::Mutex::new(Some(dropped)));
    let service = before(&shutdown, move |_| {
        let work = held.lock().expect("a lock").take();
        async move {
            let messages = stream::pending().map(move |part: Result<Frame<Bytes>, Status>| {
                let _ = &work;
                part
            });
            Response::new(Body::new(StreamBody::new(messages)))
        }
    });

    let mut body = call(&service, STREAM).await.into_body();
    shutdown.begin();
    let last = timeout(LONG, body.frame()).await.expect("in time").expect("a part");
    assert!(last.expect("no error").is_trailers());
    assert_eq!(count.load(Ordering::Relaxed), 1, "while the body is still held");
    assert!(timeout(LONG, body.frame()).await.expect("in time").is_none());
}

#[tokio::test(start_paused = true)]
async fn the_messages_of_the_client_end_too() {
    let shutdown = ShutdownSignal::default();
    let service = before(&shutdown, |request| async move {
        let received = read(Response::new(request.into_body())).await.0;
        Response::new(Body::new(Full::new(received)))
    });
    let answer = service.clone().oneshot(request(STREAM, endless()));
    let ends = async {
        sleep(Duration::from_secs(5)).await;
        shutdown.begin();
    };

    let (answer, ()) = tokio::join!(timeout(LONG, answer), ends);
    let Ok(answer) = answer.expect("the service reads to an end");
    // Either the response of the service, or the end of the stream: both are available now.
    let (messages, trailers) = read(answer).await;
    assert!(messages == "onetwo" || !trailers.is_empty(), "{messages:?}");
}

#[tokio::test(start_paused = true)]
async fn no_length_is_declared_for_a_stream_that_may_end_earlier() {
    let shutdown = ShutdownSignal::default();
    let content = || Body::new(Full::new(Bytes::from_static(b"content")));
    let service = before(&shutdown, move |request: Request| async move {
        assert_eq!(request.body().size_hint().exact(), None, "of the request");
        Response::new(content())
    });

    assert_eq!(content().size_hint().exact(), Some(7));
    let answer = service.clone().oneshot(request(STREAM, content())).await;
    let Ok(answer) = answer;
    assert_eq!(answer.body().size_hint().exact(), None, "of the response");
}
