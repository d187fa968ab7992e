//! The links to the other processes of a store, by which calls are forwarded to them.

use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

use tower::Layer as _;
use tracing::warn;
use trestle_identity::gateway_secret::GatewaySecret;
use trestle_rpc::{
    layer::shutdown::{ShutdownLayer, ShutdownSignal},
    upstream::Upstream,
};

use super::StoreMember;
use crate::{ingress, settings::Settings, upstreams};

/// See the module. A link connects at its first use, and ends with its process.
pub(super) struct PeerLinks {
    settings: Settings,
    secret: GatewaySecret,
    shutdown: ShutdownSignal,
    before: ShutdownLayer,
    open: Mutex<HashMap<Vec<u8>, Upstream>>,
}

impl PeerLinks {
    /// None is open. The links have the settings of those of a gateway to its roles.
    pub(super) fn new(settings: &Settings, secret: GatewaySecret) -> Self {
        let shutdown = ShutdownSignal::default();
        let before = ShutdownLayer::new(shutdown.clone(), ingress::methods());
        Self { settings: settings.clone(), secret, shutdown, before, open: Mutex::default() }
    }

    /// Ends the calls that wait in other processes, now and later: this one ends.
    pub(super) fn begin_shutdown(&self) {
        self.shutdown.begin();
    }

    /// The proof that a call is from a process of the store.
    pub(super) fn secret(&self) -> &GatewaySecret {
        &self.secret
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Vec<u8>, Upstream>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The link to a process; none where its address cannot be used.
    pub(super) fn to(&self, member: &StoreMember) -> Option<Upstream> {
        if let Some(link) = self.lock().get(&member.key) {
            return Some(link.clone());
        }
        match upstreams::peer(&self.settings, &member.address, &self.secret) {
            Ok(remote) => {
                let link = Upstream::local(self.before.layer(Upstream::Remote(remote)));
                Some(self.lock().entry(member.key.clone()).or_insert(link).clone())
            }
            Err(error) => {
                warn!(address = member.address, %error, "a process of the store cannot be called");
                None
            }
        }
    }

    /// Ends the links to all others than these processes.
    pub(super) fn retain(&self, members: &[StoreMember]) {
        self.lock().retain(|key, _| members.iter().any(|member| member.key == *key));
    }
}
