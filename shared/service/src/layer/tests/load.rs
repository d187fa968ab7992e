//! The layers that bound load: bytes of bodies, and slots of calls and streams.

use super::*;
use crate::{
    layer::body_bytes::{BodyBounds, BodyBytesLayer},
    peer::Peer,
};

const READ: &str = "/trestle.table.v1.TableService/QueryEntities";
const WRITE: &str = "/trestle.table.v1.TableService/InsertEntity";
const IMPORT: &str = "/trestle.table.v1.TableService/ImportEntities";
const RECEIVE: &str = "/trestle.queue.v1.QueueService/ReceiveMessages";
const KIB: usize = 1024;

/// A call of a method whose request is one message of so many bytes, after which the client sends
/// nothing.
fn message(path: &'static str, bytes: u16, ends: bool) -> Request {
    let [high, low] = bytes.to_be_bytes();
    let message = [&[0, 0, 0, high, low][..], &vec![7; usize::from(bytes)]].concat();
    let first = stream::iter([Ok::<_, Status>(Frame::data(Bytes::from(message)))]);
    let body = match ends {
        true => Body::new(StreamBody::new(first)),
        false => Body::new(StreamBody::new(first.chain(stream::pending()))),
    };
    let mut request = Request::new(body);
    *request.uri_mut() = path.parse().expect("a path");
    request
}

/// Bodies may hold 300 KiB; the service reads a request and responds with so many bytes.
fn counting(answer_bytes: usize) -> CallService {
    counting_calls(answer_bytes, 64)
}

/// The same for at most so many calls.
fn counting_calls(answer_bytes: usize, calls_max: usize) -> CallService {
    let arrives_within = Duration::from_secs(20);
    let bounds = BodyBounds { bytes_max: 300 * KIB, calls_max, arrives_within };
    before(BodyBytesLayer::new(bounds, methods()), move |request| async move {
        match request.into_body().collect().await {
            Ok(_) => {
                let bytes = Bytes::from(vec![7; answer_bytes]);
                streaming(stream::iter([Ok(Frame::data(bytes)), end(&Status::ok(""))]))
            }
            Err(status) => status.into_http(),
        }
    })
}

async fn call(service: &CallService, request: Request) -> Response {
    let Ok(answer) = service.clone().oneshot(request).await;
    answer
}

#[tokio::test]
async fn responses_that_are_not_read_use_up_the_budget_until_they_are() {
    let service = counting(60 * KIB);
    let admitted = async || {
        let answer = call(&service, message(WRITE, 10, true)).await;
        answer.into_body().frame().await.expect("a frame").expect("data")
    };
    let mut waiting = Vec::new();
    for _ in 0..5 {
        waiting.push(admitted().await);
    }

    let rejected = status(call(&service, message(WRITE, 10, true)).await).await;
    waiting.clear();
    let admitted = status(call(&service, message(WRITE, 10, true)).await).await;

    assert_eq!(rejected.code(), Code::ResourceExhausted);
    assert_eq!(reason(&rejected), "SERVER_BUSY");
    let details = rejected.get_error_details();
    assert!(details.retry_info().expect("retry info").retry_delay.is_some());
    assert_eq!(admitted.code(), Code::Ok, "bytes are not released");
}

#[tokio::test]
async fn rejects_a_large_response_that_does_not_fit_unless_the_call_may_have_written() {
    let service = counting(400 * KIB);

    let read = status(call(&service, message(READ, 10, true)).await).await;
    let write = status(call(&service, message(WRITE, 10, true)).await).await;

    assert_eq!(read.code(), Code::ResourceExhausted);
    assert_eq!(write.code(), Code::Ok);
}

#[tokio::test]
async fn rejects_a_request_that_does_not_fit_while_others_continue() {
    let service = counting(10);
    let unfinished = || Box::pin(call(&service, message(WRITE, 60_000, false)));
    let mut waiting: Vec<_> = (0..5).map(|_| unfinished()).collect();
    for call in &mut waiting {
        assert!(futures::poll!(call).is_pending(), "rejected too early");
    }

    let rejected = status(call(&service, message(WRITE, 60_000, true)).await).await;
    let small = status(call(&service, message(WRITE, 1000, true)).await).await;
    waiting.clear();
    let next = status(call(&service, message(WRITE, 60_000, true)).await).await;

    assert_eq!(rejected.code(), Code::ResourceExhausted);
    assert_eq!(reason(&rejected), "SERVER_BUSY");
    assert_eq!([small.code(), next.code()], [Code::Ok; 2]);
}

#[tokio::test(start_paused = true)]
async fn a_request_of_one_message_must_arrive_in_time_and_a_stream_need_not() {
    let service = counting(10);
    let started = tokio::time::Instant::now();

    let late = status(call(&service, message(WRITE, 10, false)).await).await;
    let waited = started.elapsed();
    let open = call(&service, message(IMPORT, 10, false));
    let open = tokio::time::timeout(Duration::from_secs(3600), open).await;

    assert_eq!(late.code(), Code::DeadlineExceeded);
    assert_eq!(reason(&late), "OPERATION_TIMED_OUT");
    assert_eq!(waited, Duration::from_secs(20));
    assert!(open.is_err(), "a stream was ended");
}

#[tokio::test(start_paused = true)]
async fn incomplete_requests_of_one_peer_leave_slots_to_others() {
    let service = counting_calls(10, 8);
    let of = |host: u8, ends| {
        let mut request = message(WRITE, 10, ends);
        let address = std::net::SocketAddr::from(([10, 0, 0, host], 1));
        request.extensions_mut().insert(Peer { address, tls: None });
        request
    };
    let mut incomplete = Vec::new();
    for _ in 0..4 {
        let mut open = Box::pin(call(&service, of(1, false)));
        assert!(futures::poll!(&mut open).is_pending());
        incomplete.push(open);
    }

    let over = status(call(&service, of(1, false)).await).await;
    let complete = status(call(&service, of(2, true)).await).await;
    let mut other = Box::pin(call(&service, of(2, false)));
    let is_admitted = futures::poll!(&mut other).is_pending();
    incomplete.clear();
    let again = status(call(&service, of(1, true)).await).await;

    assert_eq!(over.code(), Code::ResourceExhausted);
    assert_eq!(reason(&over), "SERVER_BUSY");
    assert!(over.message().contains("limit=`2`"), "{}", over.message());
    assert_eq!(complete.code(), Code::Ok);
    assert!(is_admitted);
    assert_eq!(again.code(), Code::Ok, "a dropped request counts");
}

#[tokio::test]
async fn complete_requests_do_not_count_for_their_peer() {
    let layer = |bounds| BodyBytesLayer::new(bounds, methods());
    let arrives_within = Duration::from_secs(20);
    let bounds = BodyBounds { bytes_max: 300 * KIB, calls_max: 2, arrives_within };
    let service = before(layer(bounds), |request| async move {
        let read = request.into_body().collect().await.is_ok();
        assert!(read);
        pending::<Response>().await
    });
    let mut open = Vec::new();
    for _ in 0..9 {
        let mut complete = Box::pin(call(&service, message(WRITE, 10, true)));
        assert!(futures::poll!(&mut complete).is_pending());
        open.push(complete);
    }

    let tenth =
        tokio::time::timeout(Duration::from_millis(1), call(&service, message(WRITE, 10, true)));

    assert!(tenth.await.is_err(), "was rejected");
}

#[tokio::test]
async fn calls_that_may_wait_hold_no_slot_of_others() {
    let service =
        before(AdmissionLayer::new(2, methods()), |_| ready(streaming(stream::pending())));
    let wait = async || call(&service, message(RECEIVE, 10, true)).await;
    let waiting = [wait().await, wait().await];

    let third = status(wait().await).await;
    let others = [send(&service, &[]).await, send(&service, &[]).await];
    let full = status(send(&service, &[]).await).await;
    drop(waiting);
    let again = wait().await;

    assert_eq!(third.code(), Code::ResourceExhausted);
    assert!(third.message().contains("may wait"), "{}", third.message());
    assert!(others.iter().all(|other| Status::from_header_map(other.headers()).is_none()));
    assert_eq!(full.code(), Code::ResourceExhausted);
    assert!(Status::from_header_map(again.headers()).is_none(), "slots are not released");
}

#[tokio::test]
async fn streams_hold_at_most_half_of_the_slots() {
    let service =
        before(AdmissionLayer::new(4, methods()), |_| ready(streaming(stream::pending())));
    let stream = async || call(&service, message(IMPORT, 10, false)).await;
    let open = [stream().await, stream().await];

    let third = status(stream().await).await;
    let others = [call(&service, message(READ, 10, true)).await, send(&service, &[]).await];
    let full = status(send(&service, &[]).await).await;
    drop(open);
    let again = stream().await;

    assert_eq!(third.code(), Code::ResourceExhausted);
    assert!(third.message().contains("streams"), "{}", third.message());
    assert!(others.iter().all(|other| Status::from_header_map(other.headers()).is_none()));
    assert_eq!(full.code(), Code::ResourceExhausted);
    assert!(Status::from_header_map(again.headers()).is_none(), "slots are not released");
}

#[tokio::test]
async fn bulk_transfers_of_one_peer_leave_slots_to_others() {
    // A quarter of the calls are bulk transfers, and a peer has at most three quarters of them.
    let service = before(AdmissionLayer::new(16, methods()), |_| pending());
    let of = |host: u8| {
        let mut request = message("/trestle.blob.v1.BlobService/WriteBlob", 10, false);
        let address = std::net::SocketAddr::from(([10, 0, 0, host], 1));
        request.extensions_mut().insert(Peer { address, tls: None });
        request
    };
    let mut open = Vec::new();
    for _ in 0..3 {
        let mut transfer = Box::pin(call(&service, of(1)));
        assert!(futures::poll!(&mut transfer).is_pending());
        open.push(transfer);
    }

    let over = status(call(&service, of(1)).await).await;
    let mut other = Box::pin(call(&service, of(2)));
    let is_admitted = futures::poll!(&mut other).is_pending();
    let full = status(call(&service, of(3)).await).await;
    open.clear();
    let again = futures::poll!(Box::pin(call(&service, of(1)))).is_pending();

    assert_eq!(over.code(), Code::ResourceExhausted);
    assert_eq!(over.message(), "too many bulk transfers of a client at a time: limit=`3`");
    assert!(is_admitted, "the other client is served");
    assert_eq!(full.message(), "too many bulk transfers at a time: limit=`4`");
    assert!(again, "a dropped transfer counts");
}
