//! The protocol of tables: OData as JSON, and batches as MIME.
//!
//! `route` finds the operation of a request, `entities`, `tables`, `settings` and `batch` carry it
//! out, each as one call; `json` has the bodies, `path` the addresses, `failure` what is answered
//! when it fails.

pub mod batch;
mod entities;
mod failure;
pub mod json;
mod level;
mod options;
pub mod path;
mod prefer;
mod route;
mod settings;
mod tables;

use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderMap, Response};
use tonic::body::Body;
use trestle_service::{clock::Clock, limits::MESSAGE_BYTES_MAX};

use self::{batch::Batch, route::Operation, settings::Settings};
use crate::{
    call::Upcall,
    failure::{Failure, Refusal},
    head::Head,
    protocol::{Protocol, Signing, Target},
};

/// See the module.
#[derive(Clone)]
pub(crate) struct Table {
    clock: Arc<dyn Clock>,
}

impl Table {
    /// A protocol that takes the time of failures from `clock`.
    pub(crate) fn new(clock: Arc<dyn Clock>) -> Self {
        Self { clock }
    }
}

impl Protocol for Table {
    type Operation = Operation;

    const SERVICE: &'static str = "table";
    const UNKNOWN: &'static str = "/trestle.table.v1.TableService/";
    const SIGNING: Signing = Signing::Table;
    const BODY_BYTES_MAX: usize = MESSAGE_BYTES_MAX / 2;

    fn route(&self, head: &Head) -> Result<Operation, Refusal> {
        Ok(route::route(&route::Ask::of(head))?)
    }

    fn target(&self, operation: &Operation) -> Target {
        operation.target()
    }

    async fn perform(
        &self,
        operation: Operation,
        head: &Head,
        body: Bytes,
        upcall: Upcall,
    ) -> Result<Response<Body>, Refusal> {
        let (path, now) = (operation.target().path, self.clock.now());
        match operation {
            Operation::Tables(operation) => {
                tables::perform(path, operation, head, &body, upcall).await
            }
            Operation::Query(query) => entities::query(path, query, head, upcall).await,
            Operation::Get(get) => entities::get(get, head, upcall).await,
            Operation::Change(change) => entities::change(path, change, head, &body, upcall).await,
            Operation::Settings(operation) => {
                let settings = Settings { head, now };
                settings.perform(path, operation, &body, upcall).await
            }
            Operation::Batch => Batch { head, at: now }.perform(&body, upcall).await,
        }
    }

    fn failure(
        &self,
        failure: &Failure,
        headers: &HeaderMap,
        head: Option<&Head>,
    ) -> Response<Body> {
        failure::render(failure, headers, head)
    }
}
