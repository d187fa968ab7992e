//! The health of a process: for gRPC clients per service, for orchestrators with reasons.
//!
//! The process as a whole, the service with the empty name, serves while each of its parts does and
//! it is not shutting down. A limitation, such as that nothing can be written, has a name of its own and
//! is not a problem of the whole: what still works should continue.

mod state;
mod statuses;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, PoisonError},
};

use tonic_health::pb::health_server::HealthServer;
use trestle_model::limits::HEALTH_MESSAGE_BYTES_MAX;
use trestle_rpc::layer::CallService;

use self::{
    state::{HealthState, WHOLE},
    statuses::Statuses,
};

/// The health of a process. Clones share it.
#[derive(Clone)]
pub struct Health {
    statuses: Statuses,
    state: Arc<Mutex<HealthState>>,
}

impl Health {
    /// Of a process with these services, all of which serve.
    pub async fn of(services: &[&'static str]) -> Self {
        let parts = services.iter().map(|name| (*name, None)).collect();
        let state = HealthState { parts, ..HealthState::default() };
        let health = Self { statuses: Statuses::new(WHOLE), state: Arc::new(Mutex::new(state)) };
        for service in services {
            health.publish(service).await;
        }
        health
    }

    /// Stores the problem of a service; none, if it serves.
    pub async fn report(&self, service: &'static str, problem: Option<String>) {
        let changed = {
            let mut state = self.lock();
            let stored = state.parts.entry(service).or_default();
            let changed = stored.is_some() != problem.is_some();
            *stored = problem;
            changed
        };
        if changed {
            self.publish(service).await;
            self.publish(WHOLE).await;
        }
    }

    /// Stores a limitation by its name, as `part` of the process reports it; none clears that of this part. The name
    /// serves while no part is limited.
    pub async fn limit(
        &self,
        name: &'static str,
        part: &'static str,
        limitation: Option<&'static str>,
    ) {
        let previous = self.lock().limitations.entry(name).or_default().insert(part, limitation);
        if previous != Some(limitation) {
            self.publish(name).await;
        }
    }

    /// Reports NOT_SERVING for every service, as the process shuts down.
    pub async fn drain(&self) {
        self.lock().draining = true;
        for name in self.names() {
            self.publish(name).await;
        }
    }

    /// Ends every watch, after the last status was sent: a watch would otherwise never end, nor its
    /// connection.
    pub async fn end_watches(&self) {
        self.statuses.end();
    }

    /// The problems, a line each; none, if the process is ready for calls.
    #[must_use]
    pub fn problems(&self) -> Vec<String> {
        self.lock().problems()
    }

    /// The limitations at present, a line each, each once.
    #[must_use]
    pub fn limitations(&self) -> Vec<&'static str> {
        let state = self.lock();
        let parts = state.limitations.values().flat_map(BTreeMap::values);
        parts.flatten().copied().collect::<BTreeSet<_>>().into_iter().collect()
    }

    /// The gRPC health service.
    #[must_use]
    pub fn service(&self) -> CallService {
        let service = HealthServer::new(self.statuses.clone());
        CallService::new(service.max_decoding_message_size(HEALTH_MESSAGE_BYTES_MAX))
    }

    fn names(&self) -> Vec<&'static str> {
        let state = self.lock();
        let named = state.parts.keys().chain(state.limitations.keys());
        std::iter::once(WHOLE).chain(named.copied()).collect()
    }

    async fn publish(&self, name: &'static str) {
        let status = self.lock().status(name);
        self.statuses.set(name, status);
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HealthState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
