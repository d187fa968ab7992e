//! The health service of gRPC over the statuses of a process.

use std::{collections::BTreeMap, sync::Arc};

use futures::{StreamExt as _, stream::BoxStream};
use tokio::sync::watch;
use tokio_stream::wrappers::WatchStream;
use tonic::{Request, Response, Status};
use tonic_health::pb::{
    HealthCheckRequest, HealthCheckResponse, health_check_response::ServingStatus,
    health_server::Health,
};
use trestle_service::fault::{Fault, Reason, quoted};

/// The full name of the service.
const HEALTH: &str = "grpc.health.v1.Health";

/// The status of every name, shared by clones; none: watches end.
#[derive(Clone)]
pub(super) struct Statuses(Arc<watch::Sender<Option<BTreeMap<&'static str, ServingStatus>>>>);

impl Statuses {
    /// Of a process that serves.
    pub(super) fn new(whole: &'static str) -> Self {
        let statuses = BTreeMap::from([(whole, ServingStatus::Serving)]);
        Self(Arc::new(watch::Sender::new(Some(statuses))))
    }

    pub(super) fn set(&self, name: &'static str, status: ServingStatus) {
        self.0.send_modify(|statuses| {
            if let Some(statuses) = statuses {
                statuses.insert(name, status);
            }
        });
    }

    /// Ends every watch.
    pub(super) fn end(&self) {
        self.0.send_replace(None);
    }
}

#[tonic::async_trait]
impl Health for Statuses {
    async fn check(
        &self,
        request: Request<HealthCheckRequest>,
    ) -> Result<Response<HealthCheckResponse>, Status> {
        let service = &*request.get_ref().service;
        let status = self.0.borrow().as_ref().and_then(|all| all.get(service).copied());
        let status = status.ok_or_else(|| {
            let message = format!("unknown service: service=`{}`", quoted(service));
            Fault::new(Reason::ResourceNotFound, message).into_status(HEALTH)
        })?;
        Ok(Response::new(HealthCheckResponse { status: status.into() }))
    }

    type WatchStream = BoxStream<'static, Result<HealthCheckResponse, Status>>;

    /// Each status once, and `SERVICE_UNKNOWN` while the service is unknown: it may become known.
    async fn watch(
        &self,
        request: Request<HealthCheckRequest>,
    ) -> Result<Response<Self::WatchStream>, Status> {
        let (service, mut last) = (request.into_inner().service, None);
        let changes = WatchStream::new(self.0.subscribe());
        let status = move |statuses: BTreeMap<&'static str, ServingStatus>| {
            statuses.get(&*service).copied().unwrap_or(ServingStatus::ServiceUnknown)
        };
        let statuses = changes.take_while(|all| futures::future::ready(all.is_some()));
        let statuses = statuses.filter_map(move |all| {
            let status = all.map(&status).filter(|status| last.replace(*status) != Some(*status));
            futures::future::ready(status)
        });
        let answers = statuses.map(|status| Ok(HealthCheckResponse { status: status.into() }));
        Ok(Response::new(answers.boxed()))
    }
}
