use futures::{StreamExt as _, TryStreamExt as _, stream};
use http_body::Frame;
use http_body_util::StreamBody;

use super::*;
use crate::streaming::PIECE_BYTES_MAX;

fn body(pieces: &[&[u8]], bytes_max: u64, declared: Option<u64>) -> RequestBody {
    sent(
        pieces.iter().map(|piece| Ok(Bytes::copy_from_slice(piece))).collect(),
        bytes_max,
        declared,
    )
}

fn sent(pieces: Vec<Result<Bytes, Status>>, bytes_max: u64, declared: Option<u64>) -> RequestBody {
    let frames = pieces.into_iter().map(|piece| piece.map(Frame::data));
    let body = Body::new(StreamBody::new(stream::iter(frames)));
    RequestBody { body, bytes_max, declared, content_encoding: None, denied: None }
}

fn code(error: &RestError) -> String {
    let details = error.status.get_error_details();
    details.error_info().map(|info| info.reason.clone()).unwrap_or_default()
}

#[tokio::test]
async fn pieces_are_bounded_and_together_the_body() {
    const LARGE: &[u8] = &[7; PIECE_BYTES_MAX * 2 + 1];
    let pieces = body(&[b"ab", b"", LARGE], u64::MAX, None).pieces().expect("pieces");

    let pieces: Vec<_> = pieces.try_collect().await.expect("a body");

    let lengths: Vec<_> = pieces.iter().map(Bytes::len).collect();
    assert_eq!(lengths, [2, PIECE_BYTES_MAX, PIECE_BYTES_MAX, 1]);
}

#[tokio::test]
async fn rejects_a_streamed_body_beyond_its_bound_when_declared_and_when_read() {
    let declared = body(&[b"abcdef"], 5, Some(6)).pieces().err().expect("an error");
    let mut pieces = body(&[b"abc", b"def", b"ghi"], 5, None).pieces().expect("pieces");

    assert_eq!(code(&declared), "REQUEST_BODY_TOO_LARGE");
    assert_eq!(declared.extras, [("MaxLimit", "5".to_owned())]);
    assert_eq!(pieces.next().await.expect("a piece").expect("in bounds"), "abc");
    let error = pieces.next().await.expect("an item").expect_err("too large");
    assert_eq!(code(&error), "REQUEST_BODY_TOO_LARGE");
    assert!(pieces.next().await.is_none(), "the first error is the last item");
}

#[tokio::test]
async fn reports_a_body_that_ends_early_collected_or_streamed() {
    let broken =
        || sent(vec![Ok(Bytes::from("abc")), Err(Status::cancelled("reset"))], 10, Some(10));

    let collected = broken().collect().await.expect_err("broken");
    let streamed = broken().pieces().expect("pieces").try_collect::<Vec<_>>().await;

    assert_eq!(code(&collected), "INVALID_INPUT");
    assert_eq!(code(&streamed.expect_err("broken")), "INVALID_INPUT");
}

#[tokio::test]
async fn collects_up_to_the_bound_and_reports_the_bound_past_it() {
    let whole = body(&[b"abc", b"de"], 5, None).collect().await.expect("a body");
    let larger = body(&[b"abc", b"def"], 5, None).collect().await.expect_err("too large");

    assert_eq!(whole, "abcde");
    assert_eq!(code(&larger), "REQUEST_BODY_TOO_LARGE");
    assert_eq!(larger.extras, [("MaxLimit", "5".to_owned())]);
}

#[tokio::test]
async fn a_denied_caller_gets_its_error_instead_of_an_error_of_the_body() {
    let denied = Box::new(Fault::new(Reason::AuthorizationFailure, "denied"));
    let large = || RequestBody { denied: Some(denied.clone()), ..body(&[b"abc"], 2, Some(3)) };

    let collected = large().collect().await.expect_err("denied");
    let streamed = large().pieces().err().expect("denied");

    assert_eq!((code(&collected), code(&streamed)), {
        let reason = || "AUTHORIZATION_FAILURE".to_owned();
        (reason(), reason())
    });
}
