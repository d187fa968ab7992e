//! The protocol of tables: OData as JSON, and batches as MIME.
//!
//! `route` determines the operation of a request, `entities`, `tables`, `settings` and `batch`
//! execute it, each as one call; `json` has the bodies, `path` the addresses, `error` the error
//! responses.

pub mod batch;
mod entities;
mod error;
pub mod json;
mod level;
mod options;
pub mod path;
mod prefer;
mod route;
mod settings;
mod tables;

use std::sync::Arc;

use http::{HeaderMap, Response};
use tonic::body::Body;
use trestle_service::{clock::Clock, limits::MESSAGE_BYTES_MAX};

use self::{batch::Batch, route::Operation, settings::Settings};
use crate::{
    error::{ErrorResponse, RestError},
    grpc_call::GrpcCall,
    head::Head,
    protocol::{Protocol, Signing, Target, Transfer},
    request_body::RequestBody,
};

/// Most bytes of a request: as JSON, twice the size of its message.
const BODY_BYTES_MAX: u64 = MESSAGE_BYTES_MAX as u64 / 2;

/// See the module.
#[derive(Clone)]
pub(crate) struct Table {
    clock: Arc<dyn Clock>,
}

impl Table {
    /// A protocol that uses `clock` for the time of errors.
    pub(crate) fn new(clock: Arc<dyn Clock>) -> Self {
        Self { clock }
    }
}

impl Protocol for Table {
    type Operation = Operation;

    const SERVICE: &'static str = "table";
    const UNKNOWN: &'static str = "/trestle.table.v1.TableService/";
    const SIGNING: Signing = Signing::Table;

    fn route(&self, head: &Head) -> Result<Operation, RestError> {
        Ok(route::route(&route::Ask::of(head))?)
    }

    fn target(&self, operation: &Operation) -> Target {
        operation.target()
    }

    fn transfer(&self, _: &Operation) -> Transfer {
        Transfer::collected(BODY_BYTES_MAX)
    }

    async fn perform(
        &self,
        operation: Operation,
        head: &Head,
        body: RequestBody,
        call: GrpcCall,
    ) -> Result<Response<Body>, RestError> {
        let body = body.collect().await?;
        let (path, now) = (operation.target().path, self.clock.now());
        match operation {
            Operation::Tables(operation) => {
                tables::perform(path, operation, head, &body, call).await
            }
            Operation::Query(query) => entities::query(path, query, head, call).await,
            Operation::Get(get) => entities::get(get, head, call).await,
            Operation::Change(change) => entities::change(path, change, head, &body, call).await,
            Operation::Settings(operation) => {
                let settings = Settings { head, now };
                settings.perform(path, operation, &body, call).await
            }
            Operation::Batch => Batch { head, at: now }.perform(&body, call).await,
        }
    }

    fn error_response(
        &self,
        response: &ErrorResponse,
        headers: &HeaderMap,
        head: Option<&Head>,
    ) -> Response<Body> {
        error::render(response, headers, head)
    }
}
