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
mod named;
mod options;
pub mod path;
mod prefer;
mod route;
mod settings;
mod tables;

use std::sync::Arc;

use http::{HeaderMap, Response};
use tonic::body::Body;
use trestle_identity::spec::{ServiceSpec, TABLE};
use trestle_model::{limits::MESSAGE_BYTES_MAX, time::Clock};

use self::{batch::Batch, route::TableOperation, settings::SettingsRequest};
use crate::{
    error::{ErrorResponse, RestError},
    grpc_call::GrpcCall,
    head::RequestHead,
    protocol::{BodyTransfer, RestProtocol, Target},
    request_body::RequestBody,
};

/// Most bytes of a request: as JSON, twice the size of its message.
const BODY_BYTES_MAX: u64 = MESSAGE_BYTES_MAX as u64 / 2;

/// See the module.
#[derive(Clone)]
pub(crate) struct TableProtocol {
    clock: Arc<dyn Clock>,
}

impl TableProtocol {
    /// A protocol that uses `clock` for the time of errors.
    pub(crate) fn new(clock: Arc<dyn Clock>) -> Self {
        Self { clock }
    }
}

impl RestProtocol for TableProtocol {
    type Operation = TableOperation;

    const SERVICE: &'static str = "table";
    const UNKNOWN: &'static str = "/trestle.table.v1.TableService/";
    const SIGNATURES: &'static ServiceSpec = &TABLE;

    fn route(&self, head: &RequestHead) -> Result<TableOperation, RestError> {
        Ok(route::route(&route::RouteRequest::of(head))?)
    }

    fn target(&self, operation: &TableOperation) -> Target {
        operation.target()
    }

    fn transfer(&self, _: &TableOperation) -> BodyTransfer {
        BodyTransfer::collected(BODY_BYTES_MAX)
    }

    async fn perform(
        &self,
        operation: TableOperation,
        head: &RequestHead,
        body: RequestBody,
        call: GrpcCall,
    ) -> Result<Response<Body>, RestError> {
        let body = body.collect().await?;
        let (path, now) = (operation.target().path, self.clock.now());
        match operation {
            TableOperation::Tables(operation) => {
                tables::perform(path, operation, head, &body, call).await
            }
            TableOperation::Query(query) => entities::query(path, query, head, call).await,
            TableOperation::Get(get) => entities::get(get, head, call).await,
            TableOperation::Change(change) => {
                entities::change(path, change, head, &body, call).await
            }
            TableOperation::Settings(operation) => {
                let settings = SettingsRequest { head, now };
                settings.perform(path, operation, &body, call).await
            }
            TableOperation::Batch => Batch { head, at: now }.perform(&body, call).await,
        }
    }

    fn error_response(
        &self,
        response: &ErrorResponse,
        headers: &HeaderMap,
        head: Option<&RequestHead>,
    ) -> Response<Body> {
        error::render(response, headers, head)
    }
}
