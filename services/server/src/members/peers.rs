//! The links to the other processes of a store, by which calls are forwarded to them.

use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

use tokio_util::sync::CancellationToken;
use tower::{Layer as _, Service as _};
use tracing::warn;
use trestle_identity::gateway_secret::GatewaySecret;
use trestle_model::fault::{Fault, Reason};
use trestle_rpc::{
    layer::{
        Request, Response, error_response,
        methods::Methods,
        shutdown::{ShutdownLayer, ShutdownSignal},
    },
    upstream::Upstream,
};

use super::StoreMember;
use crate::{ingress, settings::Settings, upstreams};

/// See the module. A link connects at its first use, and ends with its process.
pub(super) struct PeerLinks {
    settings: Settings,
    secret: GatewaySecret,
    methods: Methods,
    open: Mutex<HashMap<Vec<u8>, PeerLink>>,
}

/// The link to a process.
struct PeerLink {
    calls: Upstream,
    /// Ends the calls that wait there, and streams.
    waits: ShutdownSignal,
    /// Ends all others: the process may stand still, and would answer none for long.
    is_gone: CancellationToken,
}

impl PeerLink {
    fn new(remote: Upstream, methods: &Methods) -> Self {
        let (waits, is_gone) = (ShutdownSignal::default(), CancellationToken::new());
        let before = ShutdownLayer::new(waits.clone(), methods.clone());
        let (inner, gone) = (before.layer(remote), is_gone.clone());
        let calls = Upstream::local(tower::service_fn(move |request: Request| {
            let (mut inner, gone) = (inner.clone(), gone.clone());
            async move {
                tokio::select! {
                    biased;
                    answer = inner.call(request) => answer,
                    () = gone.cancelled() => Ok(unanswered()),
                }
            }
        }));
        Self { calls, waits, is_gone }
    }

    fn end(&self) {
        self.waits.begin();
        self.is_gone.cancel();
    }
}

/// The answer to a call for that of a process which is gone.
fn unanswered() -> Response {
    let message = "the process that the call was forwarded to is gone; its outcome is unknown";
    error_response(Fault::new(Reason::OutcomeUnknown, message))
}

impl PeerLinks {
    /// None is open. The links have the settings of those of a gateway to its roles.
    pub(super) fn new(settings: &Settings, secret: GatewaySecret) -> Self {
        let (settings, methods) = (settings.clone(), ingress::methods());
        Self { settings, secret, methods, open: Mutex::default() }
    }

    /// Ends the calls that wait in other processes: this one ends.
    pub(super) fn end_waits(&self) {
        self.lock().values().for_each(|link| link.waits.begin());
    }

    /// The proof that a call is from a process of the store.
    pub(super) fn secret(&self) -> &GatewaySecret {
        &self.secret
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Vec<u8>, PeerLink>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The link to a process; none where its address cannot be used.
    pub(super) fn to(&self, member: &StoreMember) -> Option<Upstream> {
        if let Some(link) = self.lock().get(&member.key) {
            return Some(link.calls.clone());
        }
        match upstreams::peer(&self.settings, &member.address, &self.secret) {
            Ok(remote) => {
                let link = PeerLink::new(Upstream::Remote(remote), &self.methods);
                Some(self.lock().entry(member.key.clone()).or_insert(link).calls.clone())
            }
            Err(error) => {
                warn!(address = member.address, %error, "a process of the store cannot be called");
                None
            }
        }
    }

    /// Drops the links to all others than these processes. Those that did not renew their rows answer no more: the
    /// calls in progress there end. One that left has no row, and ends its calls itself.
    pub(super) fn retain(&self, members: &[StoreMember], silent: &[StoreMember]) {
        let is_among = |members: &[StoreMember], key: &[u8]| members.iter().any(|m| m.key == key);
        self.lock().retain(|key, link| {
            if is_among(silent, key) {
                link.end();
            }
            is_among(members, key)
        });
    }
}

#[cfg(test)]
mod tests {
    use std::{future::pending, sync::Arc, time::Duration};

    use tokio::{sync::Notify, time::timeout};
    use tonic::{Status, body::Body};

    use super::*;

    /// A link to a process that answers nothing, and whether a call has reached it.
    fn silent() -> (PeerLink, Arc<Notify>) {
        let reached = Arc::new(Notify::new());
        let seen = Arc::clone(&reached);
        let service = tower::service_fn(move |_: Request| {
            seen.notify_one();
            pending::<Result<Response, std::convert::Infallible>>()
        });
        (PeerLink::new(Upstream::local(service), &ingress::methods()), reached)
    }

    #[tokio::test]
    async fn calls_in_progress_end_with_a_process_that_is_silent_and_not_with_one_that_left() {
        let secret = GatewaySecret::of_store(&"s".repeat(32)).expect("a secret");
        let links = PeerLinks::new(&Settings::default(), secret);
        let member = |id| StoreMember::new(id, "queue".to_owned(), format!("http://{id}:1"));
        let (gone, left) = (member("gone"), member("left"));
        let mut calls = Vec::new();
        for member in [&gone, &left] {
            let (link, reached) = silent();
            let mut service = link.calls.clone();
            links.lock().insert(member.key.clone(), link);
            calls
                .push(tokio::spawn(async move { service.call(Request::new(Body::empty())).await }));
            reached.notified().await;
        }

        links.retain(&[], std::slice::from_ref(&gone));

        assert!(links.lock().is_empty());
        let [of_gone, of_left] = <[_; 2]>::try_from(calls).expect("two");
        let Ok(answer) = of_gone.await.expect("no panic");
        let status = Status::from_header_map(answer.headers()).expect("a status");
        assert_eq!(status.code(), tonic::Code::Unknown);
        assert!(timeout(Duration::from_millis(50), of_left).await.is_err(), "it ends its calls");
    }
}
