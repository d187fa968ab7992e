//! Calls between the processes of one store. The caller was authenticated by the process that forwards the call, which
//! proves by the secret of the store that it is one of them.

use std::{
    convert::Infallible,
    task::{Context, Poll},
};

use tower::Service;
use trestle_rpc::layer::{CallService, Request, Response, ResponseFuture, error_response};
use trestle_rpc::not_owner::not_owner;

use crate::gateway_secret::{GatewaySecret, STORE_HEADER};

/// In the extensions of a request that another process of the store forwarded.
#[derive(Debug, Clone, Copy)]
pub struct FromStorePeer;

/// The entry of calls into a process: those of the other processes of its store, and all others.
#[derive(Clone)]
pub struct StorePeers {
    /// None where the process has its store to itself.
    peers: Option<(GatewaySecret, CallService)>,
    others: CallService,
}

impl StorePeers {
    /// Calls with the secret go to the service of `peers`, which verifies it again, and those without any to `others`.
    /// One with another secret is for another store, whose process had this address before: nothing is done.
    #[must_use]
    pub fn new(peers: Option<(GatewaySecret, CallService)>, others: CallService) -> Self {
        Self { peers, others }
    }
}

impl Service<Request> for StorePeers {
    type Response = Response;
    type Error = Infallible;
    type Future = ResponseFuture;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        // Both are ready at any time.
        self.others.poll_ready(cx)
    }

    fn call(&mut self, mut request: Request) -> ResponseFuture {
        if !request.headers().contains_key(STORE_HEADER) {
            return self.others.call(request);
        }
        match &mut self.peers {
            Some((secret, peers)) if secret.is_in(request.headers()) => {
                request.extensions_mut().insert(FromStorePeer);
                peers.call(request)
            }
            Some(_) | None => {
                let answer = error_response(not_owner("this process serves another store", ""));
                Box::pin(async move { Ok(answer) })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use tonic::{Status, body::Body};
    use trestle_rpc::not_owner::is_not_owner;

    use super::*;

    fn secret(byte: &str) -> GatewaySecret {
        GatewaySecret::of_store(&byte.repeat(32)).expect("a secret")
    }

    /// A service that answers with a text, and whether the request is marked.
    fn service(text: &'static str) -> CallService {
        CallService::new(tower::service_fn(move |request: Request| async move {
            let is_marked = request.extensions().get::<FromStorePeer>().is_some();
            Ok(Status::unknown(format!("{text} {is_marked}")).into_http())
        }))
    }

    async fn answered(entry: &StorePeers, sent: Option<&GatewaySecret>) -> Response {
        let mut request = Request::new(Body::empty());
        request.headers_mut().extend(sent.map(GatewaySecret::header));
        let Ok(answer) = entry.clone().call(request).await;
        answer
    }

    #[tokio::test]
    async fn a_call_for_another_store_is_not_taken_for_one_of_a_client() {
        let shared = StorePeers::new(Some((secret("a"), service("peer"))), service("client"));
        let alone = StorePeers::new(None, service("client"));
        let text = |answer: &Response| {
            Status::from_header_map(answer.headers()).map(|status| status.message().to_owned())
        };
        let of_peer = answered(&shared, Some(&secret("a"))).await;
        assert_eq!(text(&of_peer).as_deref(), Some("peer true"));
        for entry in [&shared, &alone] {
            assert_eq!(text(&answered(entry, None).await).as_deref(), Some("client false"));
            assert!(is_not_owner(answered(entry, Some(&secret("b"))).await.headers()));
        }
    }
}
