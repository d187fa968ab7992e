//! Calls between the processes of one store. The caller was authenticated by the process that forwards the call, which
//! proves by the secret of the store that it is one of them.

use std::{
    convert::Infallible,
    task::{Context, Poll},
};

use tower::Service;
use trestle_rpc::layer::{CallService, Request, Response, ResponseFuture};

use crate::gateway_secret::GatewaySecret;

/// In the extensions of a request that another process of the store forwarded.
#[derive(Debug, Clone, Copy)]
pub struct FromStorePeer;

/// The entry of calls into a process that shares its store: those of its peers, and all others.
#[derive(Clone)]
pub struct StorePeers {
    secret: GatewaySecret,
    peers: CallService,
    others: CallService,
}

impl StorePeers {
    /// Calls with the secret go to `peers`, which verifies it again, and the rest to `others`.
    #[must_use]
    pub fn new(secret: GatewaySecret, peers: CallService, others: CallService) -> Self {
        Self { secret, peers, others }
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
        if !self.secret.is_in(request.headers()) {
            return self.others.call(request);
        }
        request.extensions_mut().insert(FromStorePeer);
        self.peers.call(request)
    }
}
