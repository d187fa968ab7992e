//! Downloads: of any size, failed half-way, and aborted by their client.

use super::*;

async fn download(frame: &CallService) -> Response {
    send(frame, request("GET", "container/name", Body::empty())).await
}

/// Reads a body to its end, or to its error.
async fn read(response: Response, flow: &Flow) -> Result<(), Status> {
    let mut body = response.into_body();
    while let Some(frame) = body.frame().await {
        flow.receive(frame?.into_data().map_or(0, |data| data.len()));
    }
    Ok(())
}

#[tokio::test]
async fn a_download_of_any_size_takes_constant_memory() {
    for flow in Flow::both() {
        let frame = frame(Behaviour::Serve(LARGE), &flow);

        let response = download(&frame).await;
        assert_eq!(response.status(), 200);
        tokio::task::yield_now().await;
        assert!(
            flow.sent() <= BUFFERED_MAX,
            "nothing is sent ahead of its reader: {}",
            flow.sent()
        );
        read(response, &flow).await.expect("a whole body");

        assert_eq!((flow.sent(), flow.received()), (LARGE, LARGE));
        assert!(flow.buffered_max() <= BUFFERED_MAX, "{}", flow.buffered_max());
    }
}

#[tokio::test]
async fn a_download_is_cut_off_when_the_service_fails_half_way() {
    for flow in Flow::both() {
        let frame = frame(Behaviour::FailAfter(LARGE / 16), &flow);

        let response = download(&frame).await;
        assert_eq!(response.status(), 200, "the response has begun");
        let read = read(response, &flow).await;

        assert!(read.is_err(), "half of a body is not mistaken for a complete one");
        assert_eq!(flow.received(), LARGE / 16);
    }
}

#[tokio::test]
async fn a_transfer_ends_when_its_account_is_removed_and_goes_on_with_a_further_key() {
    for flow in Flow::both() {
        let accounts = Accounts::new([Account::development()]);
        let frame = frame_of(Behaviour::Serve(LARGE), &flow, accounts.clone());
        let mut body = download(&frame).await.into_body();
        let first = body.frame().await.expect("a frame").expect("data");
        assert!(first.data_ref().is_some_and(|data| !data.is_empty()));

        accounts.replace([Account::development()].into_iter().collect());
        assert!(body.frame().await.expect("a frame").is_ok(), "the key remains");
        accounts.replace(std::iter::empty().collect());

        let mut last = Ok(());
        while let Some(frame) = body.frame().await {
            last = frame.map(drop);
        }
        let error = last.expect_err("the rest is cut off");
        assert!(error.message().contains("the account was removed"), "{error:?}");
        assert!(flow.sent() < LARGE, "{}", flow.sent());
    }
}

#[tokio::test]
async fn a_client_that_disconnects_stops_the_service() {
    for flow in Flow::both() {
        let frame = frame(Behaviour::Serve(LARGE), &flow);

        let mut body = download(&frame).await.into_body();
        let first = body.frame().await.expect("a frame").expect("data");
        drop(body);
        let sent = flow.sent();
        tokio::time::sleep(Duration::from_millis(20)).await;

        assert!(first.data_ref().is_some_and(|data| !data.is_empty()));
        assert_eq!(flow.sent(), sent);
        // The slot of the transfer is free again.
        assert_eq!(download(&frame).await.status(), 200);
    }
}
