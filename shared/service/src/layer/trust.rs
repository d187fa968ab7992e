//! Before a role without a gateway of its own: only somebody who may vouch for callers gets in.
//!
//! Whoever reaches such a role says in headers who calls and what they may do, and is believed. So
//! it has to be a gateway: a peer with a certificate, or one on this machine, or anybody, where an
//! operator says that only gateways can reach the address.

use std::convert::Infallible;

use tower::Service;

use super::{
    Answer, Request, Response,
    frame::{Step, StepLayer},
    refusal,
};
use crate::{
    fault::{Fault, Reason},
    peer::Peer,
};

/// Lets gateways in.
pub type TrustLayer = StepLayer<Trust>;

/// See the module.
#[derive(Debug, Clone, Copy)]
pub struct Trust {
    trusts_all: bool,
}

impl TrustLayer {
    /// Lets certified and local peers in; with `trusts_all` everybody.
    #[must_use]
    pub fn new(trusts_all: bool) -> Self {
        Self(Trust { trusts_all })
    }
}

impl Trust {
    fn admits(self, peer: &Peer) -> bool {
        let is_certified = peer.tls.as_ref().is_some_and(|tls| tls.is_certified);
        self.trusts_all || is_certified || peer.ip().is_loopback()
    }
}

impl Step for Trust {
    fn call<S>(&self, request: Request, inner: &mut S) -> Answer
    where
        S: Service<Request, Response = Response, Error = Infallible, Future = Answer>,
    {
        if self.admits(&Peer::of(request.extensions())) {
            return inner.call(request);
        }
        Box::pin(async { Ok(refusal(stranger())) })
    }
}

fn stranger() -> Fault {
    let message = "this process takes calls from gateways only: show a client certificate that it \
                   accepts, or set server.trust_callers where only gateways reach it";
    Fault::new(Reason::NoAuthenticationInformation, message)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::peer::PeerTls;

    fn peer(address: &str, tls: Option<PeerTls>) -> Peer {
        Peer { address: address.parse().expect("an address"), tls }
    }

    #[test]
    fn only_certified_and_local_peers_are_believed_unless_the_operator_says_so() {
        let tls = |is_certified| Some(PeerTls { is_certified });
        for (peer, is_believed) in [
            (Peer::in_process(), true),
            (peer("127.0.0.1:1", None), true),
            (peer("[::1]:1", None), true),
            (peer("[::ffff:127.0.0.1]:1", None), true),
            (peer("10.0.0.1:1", tls(true)), true),
            (peer("10.0.0.1:1", tls(false)), false),
            (peer("10.0.0.1:1", None), false),
            (peer("[fe80::1]:1", None), false),
        ] {
            assert_eq!(TrustLayer::new(false).0.admits(&peer), is_believed, "{peer:?}");
            assert!(TrustLayer::new(true).0.admits(&peer), "{peer:?}");
        }
    }
}
