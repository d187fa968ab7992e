//! Ends a stream when the signature or the token of its call expires.

use std::time::Duration;

use tokio::time::sleep;

use trestle_model::fault::{Fault, Reason};
use trestle_rpc::layer::ResponseFuture;

use crate::ending::end_response;

/// A response whose stream ends after `within` at the latest.
pub(super) fn answer(answer: ResponseFuture, within: Duration) -> ResponseFuture {
    // The time runs from now on, and not from the first part of the response.
    let expiry = sleep(within);
    let end = async move {
        expiry.await;
        Fault::new(Reason::AuthenticationFailed, "the credentials expired during the stream")
    };
    end_response(answer, Box::pin(end))
}
