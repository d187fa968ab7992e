//! Peer authentication of a role without a gateway of its own: it takes calls from gateways only.
//!
//! The headers of a call to such a role state the caller and the grant, and are not verified again. So the peer has to
//! prove that it is a gateway: by a certificate with the name of one, by the secret of gateways, or, where neither is
//! configured, by being on this machine.

use std::{convert::Infallible, sync::Arc};

use http::{HeaderMap, HeaderValue};
use tower::Service;

use crate::gateway_secret::GatewaySecret;
use trestle_model::fault::{Fault, Reason};
use trestle_model::name::{ACCOUNT_HEADER, AccountName};
use trestle_rpc::layer::middleware::{Middleware, MiddlewareLayer};
use trestle_rpc::layer::shares::CallHolder;
use trestle_rpc::layer::{Request, Response, ResponseFuture, error_response};
use trestle_rpc::peer::Peer;

/// Accepts calls of gateways.
pub type PeerAuthenticationLayer = MiddlewareLayer<PeerAuthentication>;

/// See the module.
#[derive(Debug, Clone)]
pub struct PeerAuthentication {
    trust: Arc<PeerTrust>,
}

/// Which peers are gateways.
#[derive(Debug, Default)]
pub struct PeerTrust {
    /// The secret that every call must have; none: no call needs it.
    pub secret: Option<GatewaySecret>,
    /// Whether a peer on another machine may be a gateway without a certificate. Only with a secret.
    pub without_certificate: bool,
}

/// Accepts calls of the peers that are gateways.
#[must_use]
pub fn layer(trust: PeerTrust) -> PeerAuthenticationLayer {
    MiddlewareLayer(PeerAuthentication { trust: Arc::new(trust) })
}

impl PeerTrust {
    fn admits(&self, peer: &Peer, headers: &HeaderMap) -> bool {
        let certified = peer.tls.as_ref().filter(|tls| tls.is_certified);
        let is_trusted = match (certified, &self.secret) {
            // The certificate of another role, for example, also from this machine.
            (Some(tls), _) if !tls.is_gateway => false,
            (Some(_), _) => true,
            (None, Some(_)) => self.without_certificate || peer.ip().is_loopback(),
            (None, None) => peer.ip().is_loopback(),
        };
        is_trusted && self.secret.as_ref().is_none_or(|secret| secret.is_in(headers))
    }
}

impl Middleware for PeerAuthentication {
    fn call<S>(&self, mut request: Request, inner: &mut S) -> ResponseFuture
    where
        S: Service<Request, Response = Response, Error = Infallible, Future = ResponseFuture>,
    {
        let peer = Peer::of(request.extensions());
        let admitted = match self.trust.admits(&peer, request.headers()) {
            true => take_share(&mut request),
            false => Err(unauthenticated_peer()),
        };
        if let Some(secret) = &self.trust.secret {
            secret.remove_from(request.headers_mut());
        }
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
    let message = "this process accepts calls of gateways only: they need a client certificate with a name in \
                   tls.gateway_names, or server.trust_callers here and the same server.gateway_secret as here";
    Fault::new(Reason::NoAuthenticationInformation, message)
}

#[cfg(test)]
mod tests {
    use super::*;
    use trestle_rpc::peer::PeerTls;

    fn peer(address: &str, tls: Option<PeerTls>) -> Peer {
        Peer { address: address.parse().expect("an address"), tls }
    }

    fn certified(is_gateway: bool) -> Option<PeerTls> {
        Some(PeerTls { is_certified: true, is_gateway })
    }

    fn secret(byte: &str) -> GatewaySecret {
        GatewaySecret::parse(&byte.repeat(32)).expect("a secret")
    }

    fn trusts(trust: &PeerTrust, peer: &Peer, sent: Option<&GatewaySecret>) -> bool {
        trust.admits(peer, &sent.map(GatewaySecret::header).into_iter().collect())
    }

    #[test]
    fn accepts_local_peers_and_certificates_of_gateways_only() {
        for without_certificate in [false, true] {
            let trust = PeerTrust { secret: None, without_certificate };
            for (peer, is_accepted) in [
                (Peer::in_process(), true),
                (peer("127.0.0.1:1", None), true),
                (peer("[::1]:1", None), true),
                (peer("[::ffff:127.0.0.1]:1", None), true),
                (peer("127.0.0.1:1", Some(PeerTls::default())), true),
                (peer("10.0.0.1:1", certified(true)), true),
                (peer("10.0.0.1:1", certified(false)), false),
                (peer("127.0.0.1:1", certified(false)), false),
                (peer("10.0.0.1:1", Some(PeerTls::default())), false),
                (peer("10.0.0.1:1", None), false),
                (peer("[fe80::1]:1", None), false),
            ] {
                assert_eq!(trusts(&trust, &peer, None), is_accepted, "{peer:?}");
            }
        }
    }

    #[test]
    fn a_secret_is_required_of_every_peer_and_replaces_a_certificate_where_set() {
        let (ours, other) = (secret("a"), secret("b"));
        for without_certificate in [false, true] {
            let trust = PeerTrust { secret: Some(ours.clone()), without_certificate };
            for (peer, is_accepted) in [
                (peer("127.0.0.1:1", None), true),
                (peer("10.0.0.1:1", certified(true)), true),
                (peer("10.0.0.1:1", certified(false)), false),
                (peer("10.0.0.1:1", None), without_certificate),
            ] {
                assert_eq!(trusts(&trust, &peer, Some(&ours)), is_accepted, "{peer:?}");
                assert!(!trusts(&trust, &peer, Some(&other)), "{peer:?}");
                assert!(!trusts(&trust, &peer, None), "{peer:?}");
            }
        }
    }
}
