//! The health service of gRPC over the statuses of a process.

use std::{collections::BTreeMap, sync::Arc};
use trestle_rpc::status::IntoStatus as _;

use futures::{
    StreamExt as _,
    stream::{self, BoxStream},
};
use tokio::sync::watch;
use tonic::{Request, Response, Status};
use tonic_health::pb::{
    HealthCheckRequest, HealthCheckResponse, health_check_response::ServingStatus,
    health_server::Health,
};
use trestle_model::fault::{Fault, Reason, quoted};

/// The full name of the service.
const HEALTH: &str = "grpc.health.v1.Health";

/// The status of every name, shared by clones.
#[derive(Clone)]
pub(super) struct Statuses(Arc<watch::Sender<Published>>);

#[derive(Default)]
struct Published {
    by_name: BTreeMap<&'static str, ServingStatus>,
    /// Watches end after the last status.
    is_ended: bool,
}

impl Statuses {
    /// Of a process that serves.
    pub(super) fn new(whole: &'static str) -> Self {
        let by_name = BTreeMap::from([(whole, ServingStatus::Serving)]);
        Self(Arc::new(watch::Sender::new(Published { by_name, is_ended: false })))
    }

    pub(super) fn set(&self, name: &'static str, status: ServingStatus) {
        self.0.send_modify(|published| {
            published.by_name.insert(name, status);
        });
    }

    /// Ends every watch, after its last status.
    pub(super) fn end(&self) {
        self.0.send_modify(|published| published.is_ended = true);
    }
}

#[tonic::async_trait]
impl Health for Statuses {
    async fn check(
        &self,
        request: Request<HealthCheckRequest>,
    ) -> Result<Response<HealthCheckResponse>, Status> {
        let service = &*request.get_ref().service;
        let status = self.0.borrow().by_name.get(service).copied();
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
        let (service, changes) = (request.into_inner().service, self.0.subscribe());
        let answers = stream::unfold((changes, None), move |(mut changes, last)| {
            let service = service.clone();
            async move {
                loop {
                    let (status, is_ended) = {
                        let published = changes.borrow_and_update();
                        let status = published.by_name.get(&*service).copied();
                        (status.unwrap_or(ServingStatus::ServiceUnknown), published.is_ended)
                    };
                    if last != Some(status) {
                        let answer = HealthCheckResponse { status: status.into() };
                        return Some((Ok(answer), (changes, Some(status))));
                    }
                    if is_ended {
                        return None;
                    }
                    changes.changed().await.ok()?;
                }
            }
        });
        Ok(Response::new(answers.boxed()))
    }
}
