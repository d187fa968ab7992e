//! The layers that bound load: bytes of bodies, and slots of calls and streams.

use tonic::metadata::MetadataMap;

use super::*;
use crate::{
    layer::{
        admission::check_wait,
        body_bytes::{BodyBounds, BodyBytesLayer},
        shares::CallHolder,
    },
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

/// The same from a peer.
fn from(host: u8, mut request: Request) -> Request {
    let address = std::net::SocketAddr::from(([10, 0, 0, host], 1));
    request.extensions_mut().insert(Peer { address, tls: None });
    request
}

/// Bodies may hold 300 KiB; the service reads a request and responds with so many bytes.
fn counting(answer_bytes: usize) -> CallService {
    let bounds = BodyBounds::of_services(300 * KIB, Duration::from_secs(20));
    counting_within(bounds, answer_bytes)
}

fn counting_within(bounds: BodyBounds, answer_bytes: usize) -> CallService {
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
    let admitted = async |host| {
        let answer = call(&service, from(host, message(WRITE, 10, true))).await;
        answer.into_body().frame().await.expect("a frame").expect("data")
    };
    let mut waiting = Vec::new();
    for host in 0..5 {
        waiting.push(admitted(host).await);
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
    let unfinished = |host| Box::pin(call(&service, from(host, message(WRITE, 60_000, false))));
    let mut waiting: Vec<_> = (0..5).map(unfinished).collect();
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
async fn each_message_of_a_stream_must_arrive_in_time_where_that_has_a_bound() {
    let [first, next] = [20, 120].map(Duration::from_secs);
    let bounds =
        BodyBounds { next_message_within: Some(next), ..BodyBounds::of_services(300 * KIB, first) };
    let service = counting_within(bounds, 10);
    let silent = |request: Request| async {
        let started = tokio::time::Instant::now();
        let late = status(call(&service, request).await).await;
        assert_eq!(reason(&late), "OPERATION_TIMED_OUT");
        started.elapsed()
    };
    let mut no_message = message(IMPORT, 10, false);
    *no_message.body_mut() = Body::new(StreamBody::new(stream::pending::<Frames>()));

    assert_eq!(silent(no_message).await, first);
    assert_eq!(silent(message(IMPORT, 10, false)).await, next);
}

#[tokio::test]
async fn bytes_of_one_peer_leave_room_for_others() {
    let service = counting(10);
    let mut held = Vec::new();
    let over = loop {
        let mut open = Box::pin(call(&service, from(1, message(WRITE, 30_000, false))));
        match futures::poll!(&mut open) {
            std::task::Poll::Pending => held.push(open),
            std::task::Poll::Ready(answer) => break status(answer).await,
        }
    };

    let other = status(call(&service, from(2, message(WRITE, 60_000, true))).await).await;

    // Three quarters of 300 KiB.
    assert_eq!(held.len(), 7, "{over:?}");
    assert_eq!((over.code(), &*reason(&over)), (Code::ResourceExhausted, "SERVER_BUSY"));
    assert_eq!(other.code(), Code::Ok, "{other:?}");
}

#[tokio::test]
async fn calls_of_one_account_leave_slots_to_others_from_the_same_peer() {
    // A peer is known before an account is: here the path names it, as credentials do.
    let service = before(AdmissionLayer::new(8, methods()), |mut request: Request| async move {
        let account = request.headers()["account"].to_str().unwrap().to_owned();
        match CallHolder::authenticated(&mut request, &account) {
            Ok(()) => pending().await,
            Err(fault) => error_response(fault),
        }
    });
    let of = |account: &'static str| {
        let service = service.clone();
        Box::pin(async move { send(&service, &[("account", account)]).await })
    };
    let mut held: Vec<_> = (0..5).map(|_| of("first")).collect();
    for call in &mut held {
        assert!(futures::poll!(call).is_pending());
    }

    let over = status(of("first").await).await;
    let mut other = of("second");
    let is_admitted = futures::poll!(&mut other).is_pending();
    drop((other, held.pop()));
    let again = futures::poll!(of("first")).is_pending();

    let text = "too many calls of one client or account at a time: held=`5`, limit=`8`";
    assert_eq!(over.message(), text);
    assert!(is_admitted, "the other account is shut out");
    assert!(again, "a dropped call counts");
}

/// Responds with a message of so many bytes, which the client does not receive.
fn responding(bytes: usize, calls_max: usize) -> CallService {
    before(AdmissionLayer::new(calls_max, methods()), move |_| async move {
        let data = Ok(Frame::data(Bytes::from(vec![7; bytes])));
        streaming(stream::iter([data, end(&Status::ok(""))]))
    })
}

#[tokio::test]
async fn a_small_response_that_is_not_received_holds_no_slot() {
    let service = responding(1000, 4);
    let mut unread = Vec::new();
    for _ in 0..8 {
        unread.push(call(&service, message(READ, 10, true)).await);
    }

    for answer in unread {
        let body = answer.into_body().collect().await.unwrap();
        assert_eq!(Status::from_header_map(body.trailers().unwrap()).unwrap().code(), Code::Ok);
        assert_eq!(body.to_bytes(), vec![7; 1000]);
    }
}

#[tokio::test]
async fn the_response_of_a_call_that_may_wait_is_read_by_its_client_alone() {
    let is_read = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&is_read);
    let service = before(AdmissionLayer::new(4, methods()), move |_| {
        let flag = Arc::clone(&flag);
        let first = stream::once(async move {
            flag.store(true, Ordering::SeqCst);
            data("a")
        });
        ready(streaming(first.chain(stream::iter([end(&Status::ok(""))]))))
    });

    let answer = call(&service, message(RECEIVE, 10, true)).await;
    let before_client = is_read.load(Ordering::SeqCst);
    let received = answer.into_body().collect().await.unwrap().to_bytes();

    assert!(!before_client, "it counts as delivered before its client receives it");
    assert_eq!(received, "a");
}

#[tokio::test]
async fn responses_that_are_not_received_are_bounded_in_bytes_by_their_slots() {
    let service = responding(1000, 4);
    let mut unread = Vec::new();
    let full = loop {
        let answer = call(&service, from(1, message(READ, 10, true))).await;
        match Status::from_header_map(answer.headers()) {
            None => unread.push(answer),
            Some(status) => break status,
        }
    };
    let other = call(&service, from(2, message(READ, 10, true))).await;

    // Three quarters of 64 KiB, with 4 KiB and its bytes each, and then three quarters of the slots.
    assert_eq!(unread.len(), 9 + 3, "{full:?}");
    assert!(Status::from_header_map(other.headers()).is_none());
}

#[tokio::test]
async fn calls_that_may_wait_hold_no_slot_of_others() {
    let service = before(AdmissionLayer::new(2, methods()), |request| async move {
        match check_wait(&MetadataMap::from_headers(request.headers().clone())) {
            Ok(()) => pending().await,
            Err(fault) => error_response(fault),
        }
    });
    let wait = |host| Box::pin(call(&service, from(host, message(RECEIVE, 10, true))));
    let read = |host| Box::pin(call(&service, from(host, message(READ, 10, true))));
    let mut open = vec![wait(1), wait(2)];
    for call in &mut open {
        assert!(futures::poll!(call).is_pending());
    }

    // In the slot of a call.
    let third = status(wait(3).await).await;
    for host in [1, 2] {
        open.push(read(host));
    }
    for call in &mut open {
        assert!(futures::poll!(call).is_pending());
    }
    let full = [status(read(3).await).await, status(wait(3).await).await];
    drop(open);
    let again = futures::poll!(wait(3)).is_pending();

    assert_eq!((third.code(), &*reason(&third)), (Code::ResourceExhausted, "SERVER_BUSY"));
    assert!(third.message().contains("may wait"), "{}", third.message());
    for full in full {
        assert_eq!(full.message(), "too many calls at a time: limit=`2`");
    }
    assert!(again, "slots are not released");
}

#[tokio::test]
async fn streams_hold_at_most_half_of_the_slots() {
    let service =
        before(AdmissionLayer::new(4, methods()), |_| ready(streaming(stream::pending())));
    let stream = async |host| call(&service, from(host, message(IMPORT, 10, false))).await;
    let open = [stream(1).await, stream(2).await];
    let read = |host| Box::pin(call(&service, from(host, message(READ, 10, true))));

    let third = status(stream(3).await).await;
    let mut others = [read(4), read(5)];
    for other in &mut others {
        assert!(futures::poll!(other).is_pending());
    }
    let full = status(read(6).await).await;
    drop(open);
    let again = stream(7).await;

    assert_eq!(third.code(), Code::ResourceExhausted);
    assert!(third.message().contains("streams"), "{}", third.message());
    assert_eq!(full.code(), Code::ResourceExhausted);
    assert!(Status::from_header_map(again.headers()).is_none(), "slots are not released");
}

#[tokio::test]
async fn bulk_transfers_of_one_peer_leave_slots_to_others() {
    // A quarter of the calls are bulk transfers, and a peer has at most three quarters of them.
    let service = before(AdmissionLayer::new(16, methods()), |_| pending());
    let of = |host| from(host, message("/trestle.blob.v1.BlobService/WriteBlob", 10, false));
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
    let text = "too many bulk transfers of one client or account at a time: held=`3`, limit=`4`";
    assert_eq!(over.message(), text);
    assert!(is_admitted, "the other client is served");
    assert_eq!(full.message(), "too many bulk transfers at a time: limit=`4`");
    assert!(again, "a dropped transfer counts");
}
