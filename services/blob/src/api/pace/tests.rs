use futures::StreamExt as _;
use tonic_types::StatusExt as _;

use super::*;

/// Messages of this length, each after this time.
fn messages(
    (count, bytes): (usize, u64),
    every: Duration,
) -> impl Stream<Item = Result<u64, Status>> + Unpin {
    let messages = futures::stream::iter(0..count).then(move |_| async move {
        tokio::time::sleep(every).await;
        Ok(bytes)
    });
    Box::pin(messages)
}

/// The bytes of all messages, or the bytes until the error, and its text.
async fn received(
    mut messages: impl Stream<Item = Result<u64, Status>> + Unpin,
) -> Result<u64, (u64, String)> {
    let (mut pace, mut received) = (UploadPace::default(), 0);
    loop {
        match pace.next(&mut messages, received).await {
            Ok(None) => return Ok(received),
            Ok(Some(bytes)) => received += bytes,
            Err(status) => {
                let reason = status.get_error_details().error_info().map(|it| it.reason.clone());
                assert_eq!(reason.as_deref(), Some("OPERATION_TIMED_OUT"), "{status:?}");
                return Err((received, status.message().to_owned()));
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn an_upload_that_trickles_ends_soon_and_a_slow_one_goes_on() {
    let seconds = Duration::from_secs;
    let (bytes, error) = received(messages((100_000, 1), seconds(29))).await.expect_err("too slow");
    assert_eq!(bytes, 2);
    let rule = "the upload must send at least 8192 bytes a second: bytes=`2`, seconds=`60`";
    assert!(error.contains(rule), "{error}");

    let slow = (5000, 20 * UPLOAD_RATE_MIN);
    assert_eq!(received(messages(slow, seconds(20))).await, Ok(5000 * 20 * UPLOAD_RATE_MIN));
    let slower = (5000, 19 * UPLOAD_RATE_MIN);
    let (bytes, _) = received(messages(slower, seconds(20))).await.expect_err("too slow");
    // A second of the grace for each message, and the last one would need 20.
    assert_eq!(bytes / slower.1, 41);
}

#[tokio::test(start_paused = true)]
async fn a_pause_is_bounded_also_of_a_client_that_sent_much() {
    let began = Instant::now();
    let mut all = messages((1, 1 << 40), Duration::from_secs(1)).chain(futures::stream::pending());

    let (bytes, error) = received(&mut all).await.expect_err("it sends no more");

    assert_eq!(bytes, 1 << 40);
    assert!(error.contains("the upload sent no data in time"), "{error}");
    assert_eq!(began.elapsed(), UPLOAD_IDLE_MAX + Duration::from_secs(1));
}

#[tokio::test(start_paused = true)]
async fn the_time_of_the_server_does_not_count() {
    let (mut pace, mut messages) =
        (UploadPace::default(), messages((1000, 1), Duration::from_millis(50)));
    for received in 0..1000 {
        assert_eq!(pace.next(&mut messages, received).await.expect("in time"), Some(1));
        tokio::time::sleep(Duration::from_secs(10)).await;
    }
    assert_eq!(pace.next(&mut messages, 1000).await.expect("in time"), None);
}
