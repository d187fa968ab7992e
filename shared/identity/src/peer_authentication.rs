//! Peer authentication of a role without a gateway of its own: it takes calls from gateways only.
//!
//! The headers of a call to such a role state the caller and the grant, and are not verified again.
//! So the peer has to be a gateway: one with a certificate, one on this machine, or any, where the
//! operator declares that only gateways can reach the address.

use std::convert::Infallible;

use http::HeaderValue;
use tower::Service;

use trestle_service::{
    fault::{Fault, Reason},
    layer::{
        Request, Response, ResponseFuture, error_response,
        middleware::{Middleware, MiddlewareLayer},
        shares::CallHolder,
    },
    name::{ACCOUNT_HEADER, AccountName},
    peer::Peer,
};

/// Accepts calls of gateways.
pub type PeerAuthenticationLayer = MiddlewareLayer<PeerAuthentication>;

/// See the module.
#[derive(Debug, Clone, Copy)]
pub struct PeerAuthentication {
    accepts_all: bool,
}

/// Accepts peers with a certificate and local peers; with `accepts_all` every peer.
#[must_use]
pub fn layer(accepts_all: bool) -> PeerAuthenticationLayer {
    MiddlewareLayer(PeerAuthentication { accepts_all })
}

impl PeerAuthentication {
    fn admits(self, peer: &Peer) -> bool {
        let is_certified = peer.tls.as_ref().is_some_and(|tls| tls.is_certified);
        self.accepts_all || is_certified || peer.ip().is_loopback()
    }
}

impl Middleware for PeerAuthentication {
    fn call<S>(&self, mut request: Request, inner: &mut S) -> ResponseFuture
    where
        S: Service<Request, Response = Response, Error = Infallible, Future = ResponseFuture>,
    {
        let admitted = match self.admits(&Peer::of(request.extensions())) {
            true => take_share(&mut request),
            false => Err(unauthenticated_peer()),
        };
        match admitted {
            Ok(()) => inner.call(request),
            Err(fault) => Box::pin(async move { Ok(error_response(fault)) }),
        }
    }
}

/// Has a call count for the account that the gateway states, and not for the gateway. A name that is none is rejected
/// by the service.
fn take_share(request: &mut Request) -> Result<(), Fault> {
    let stated = request.headers().get(ACCOUNT_HEADER).cloned();
    match stated.as_ref().map(HeaderValue::to_str) {
        Some(name) => CallHolder::authenticated(request, name.unwrap_or_default()),
        None => CallHolder::authenticated(request, AccountName::development().as_str()),
    }
}

fn unauthenticated_peer() -> Fault {
    let message = "this process takes calls from gateways only: show a client certificate that it \
                   accepts, or set server.trust_callers where only gateways reach it";
    Fault::new(Reason::NoAuthenticationInformation, message)
}

#[cfg(test)]
mod tests {
    use super::*;
    use trestle_service::peer::PeerTls;

    fn peer(address: &str, tls: Option<PeerTls>) -> Peer {
        Peer { address: address.parse().expect("an address"), tls }
    }

    #[test]
    fn accepts_certified_and_local_peers_and_others_only_if_configured() {
        let tls = |is_certified| Some(PeerTls { is_certified });
        for (peer, is_accepted) in [
            (Peer::in_process(), true),
            (peer("127.0.0.1:1", None), true),
            (peer("[::1]:1", None), true),
            (peer("[::ffff:127.0.0.1]:1", None), true),
            (peer("10.0.0.1:1", tls(true)), true),
            (peer("10.0.0.1:1", tls(false)), false),
            (peer("10.0.0.1:1", None), false),
            (peer("[fe80::1]:1", None), false),
        ] {
            assert_eq!(layer(false).0.admits(&peer), is_accepted, "{peer:?}");
            assert!(layer(true).0.admits(&peer), "{peer:?}");
        }
    }
}
