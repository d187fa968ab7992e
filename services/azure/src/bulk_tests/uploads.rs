//! Uploads: of any size, slow, stalled, aborted, answered early, and failed half-way.

use futures::stream;

use super::*;

fn upload(frame: &CallService, pieces: impl Stream<Item = Bytes> + Send + 'static) -> Upload {
    let request = request("PUT", "container/name", body(pieces.map(Ok)));
    let frame = frame.clone();
    Box::pin(async move { send(&frame, request).await })
}

type Upload = std::pin::Pin<Box<dyn Future<Output = Response> + Send>>;

#[tokio::test]
async fn an_upload_of_any_size_takes_constant_memory() {
    for flow in Flow::both() {
        let frame = frame(Behaviour::Serve(0), &flow);

        let response = upload(&frame, flow.pieces(LARGE)).await;

        assert_eq!(response.status(), 201);
        assert_eq!(response.headers()["x-size"], LARGE.to_string());
        assert_eq!((flow.sent(), flow.received()), (LARGE, LARGE));
        assert!(flow.buffered_max() <= BUFFERED_MAX, "{}", flow.buffered_max());
    }
}

#[tokio::test(start_paused = true)]
async fn a_slow_client_may_take_long_and_a_stalled_one_is_disconnected() {
    let flow = Flow::default();
    let frame = frame(Behaviour::Serve(0), &flow);
    let slow = flow.pieces(10 * PIECE).then(|piece| async {
        tokio::time::sleep(STALLED_MAX - Duration::from_secs(1)).await;
        piece
    });
    let response = upload(&frame, slow).await;
    assert_eq!(response.status(), 201, "an upload that makes progress");

    let started = tokio::time::Instant::now();
    let flow = Flow::default();
    let response = upload(&frame, flow.pieces(2 * PIECE).chain(never())).await;

    assert_eq!(response.status(), 500);
    assert_eq!(response.headers()["connection"], "close");
    // Draining the rest of the body takes some more seconds.
    let elapsed = started.elapsed();
    assert!((STALLED_MAX..STALLED_MAX + Duration::from_secs(10)).contains(&elapsed), "{elapsed:?}");
    assert_eq!(code(response).await, "OperationTimedOut");
}

#[tokio::test]
async fn a_client_is_answered_while_it_still_sends() {
    for flow in Flow::both() {
        let frame = frame(Behaviour::Deny, &flow);

        let response = upload(&frame, flow.pieces(LARGE)).await;

        assert_eq!(response.status(), 403);
        assert_eq!(response.headers()["connection"], "close", "the rest is not read to its end");
        assert!(flow.sent() < LARGE / 8, "{}", flow.sent());
        assert_eq!(code(response).await, "AuthorizationFailure");
    }
}

#[tokio::test]
async fn the_rest_of_a_small_upload_is_drained_after_an_early_error() {
    for flow in Flow::both() {
        let frame = frame(Behaviour::Deny, &flow);

        let response = upload(&frame, flow.pieces(1024 * 1024)).await;

        assert_eq!(response.status(), 403);
        assert!(!response.headers().contains_key("connection"), "the connection is reused");
        assert_eq!(flow.sent(), 1024 * 1024);
    }
}

#[tokio::test]
async fn an_upload_fails_when_the_service_fails_half_way() {
    for flow in Flow::both() {
        let frame = frame(Behaviour::FailAfter(LARGE / 16), &flow);

        let response = upload(&frame, flow.pieces(LARGE)).await;

        assert_eq!(response.status(), 503);
        assert!(flow.received() < LARGE / 8, "{}", flow.received());
        assert_eq!(code(response).await, "ServerBusy");
    }
}

#[tokio::test]
async fn an_aborted_upload_is_never_complete_to_the_service() {
    for flow in Flow::both() {
        let frame = frame(Behaviour::Serve(0), &flow);
        let broken = flow.pieces(4 * PIECE).map(Ok);
        let broken = broken.chain(stream::iter([Err(Status::cancelled("reset"))]));

        let response = send(&frame, request("PUT", "container/name", body(broken))).await;

        assert_eq!(response.status(), 400);
        assert_eq!(code(response).await, "InvalidInput");
        assert!(!flow.is_complete());
    }
}

#[tokio::test]
async fn long_transfers_do_not_use_the_slots_of_other_calls() {
    for flow in Flow::both() {
        let frame = frame(Behaviour::Serve(0), &flow);
        // A quarter of the four slots of calls.
        let first = tokio::spawn(upload(&frame, flow.pieces(PIECE).chain(never())));
        let begun = async {
            while flow.received() < PIECE {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(Duration::from_secs(10), begun).await.expect("the first has begun");

        let second = upload(&frame, flow.pieces(PIECE)).await;
        let unknown = send(&frame, request("POST", "container", Body::empty())).await;
        first.abort();

        assert_eq!(second.status(), 503, "a second transfer");
        assert_eq!(unknown.status(), 405, "a call of one message");
    }
}
