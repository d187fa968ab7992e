//! Requests that are sent one after the other without waiting for the answers between them.

use std::{future::poll_fn, task::Poll};

use futures::future::BoxFuture;

use crate::failure::Failure;

/// A request that is sent when it is polled first.
pub(crate) type PipelinedRequest<'a> = BoxFuture<'a, Result<(), Failure>>;

/// Sends requests in their order; their results, in that order.
pub(crate) async fn pipelined(mut requests: Vec<PipelinedRequest<'_>>) -> Vec<Result<(), Failure>> {
    let mut results: Vec<Option<Result<(), Failure>>> = requests.iter().map(|_| None).collect();
    poll_fn(|cx| {
        let mut is_done = true;
        for (request, result) in requests.iter_mut().zip(&mut results) {
            if result.is_some() {
                continue;
            }
            match request.as_mut().poll(cx) {
                Poll::Ready(ended) => *result = Some(ended),
                Poll::Pending => is_done = false,
            }
        }
        if is_done { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
    results.into_iter().flatten().collect()
}
