//! Entity group transactions: `multipart/mixed` with embedded HTTP requests in and out.
//!
//! `multipart` and `embedded` parse a body, `plan` determines its operations, and `answer` composes
//! the response. Each embedded request is parsed as it would be alone.

mod answer;
pub mod embedded;
pub mod multipart;
mod plan;

use http::{HeaderValue, Response, StatusCode, header};
use prost::Message as _;
use tonic::{Code, Status, body::Body};
use trestle_model::time::Ticks;
use trestle_proto::table::v1::{
    BatchOperation, BatchResult, Entity, ExecuteBatchRequest, ExecuteBatchResponse, batch_operation,
};

use self::{
    answer::PartAnswer,
    plan::{BatchPart, Plan, Stop},
};
use super::{
    entities::{origin, read},
    error,
    json::{Unreadable, entity_json, entity_path, etag_of},
    named,
    prefer::Prefer,
    route::{EXECUTE_BATCH, Get},
};
use crate::{
    dispatch::read_only,
    error::{ErrorResponse, RestError},
    grpc_call::GrpcCall,
    head::RequestHead,
    reply::{self, CallOutcome},
};

/// A batch in execution.
pub(super) struct Batch<'a> {
    pub(super) head: &'a RequestHead,
    /// The time, for errors.
    pub(super) at: Ticks,
}

impl Batch<'_> {
    /// Executes a batch.
    ///
    /// # Errors
    /// A malformed batch, and errors that do not belong to one of its operations.
    pub(super) async fn perform(
        self,
        body: &[u8],
        call: GrpcCall,
    ) -> Result<Response<Body>, RestError> {
        let unique = call.request_id().to_owned();
        match plan::plan(self.head, body) {
            Ok(Plan::Query(get, part)) => match self.query(&get, &part, call).await {
                Ok(answer) => Ok(accepted(answer::query(&answer, &unique), None)),
                Err(error) => self.failed(error, &[part], &unique).map(alone(&unique)),
            },
            Err(Stop::Query(fault, part)) => {
                self.failed(fault.into(), &[part], &unique).map(alone(&unique))
            }
            Err(Stop::Whole(fault)) => Err(fault.into()),
            // The others are changes.
            _ if self.head.is_secondary => Err(read_only().into()),
            Ok(Plan::Changes { operations, .. }) if operations.is_empty() => {
                self.nothing(call).await?;
                Ok(accepted(answer::change_set(&[], &unique), None))
            }
            Ok(Plan::Changes { table, operations, parts }) => {
                match self.change(table, operations, &parts, call).await {
                    Ok(answers) => Ok(accepted(answer::change_set(&answers, &unique), None)),
                    Err(error) => self.failed(error, &parts, &unique).map(in_change_set(&unique)),
                }
            }
            Err(Stop::Change(fault, part)) => {
                self.failed(fault.into(), &[part], &unique).map(in_change_set(&unique))
            }
        }
    }

    /// The response to a query that is alone in a batch.
    async fn query(
        &self,
        get: &Get,
        part: &BatchPart,
        call: GrpcCall,
    ) -> Result<PartAnswer, RestError> {
        let encoded = read(get, call).await?;
        let origin = origin(self.head, &get.table);
        let body = entity_json(&encoded, &origin, get.level, get.options.select.as_ref())?;
        let headers = vec![
            ("DataServiceVersion", "3.0;".to_owned()),
            ("Content-Type", get.level.content_type().to_owned()),
            ("ETag", etag_of(&encoded)?.to_owned()),
        ];
        let content_id = part.content_id.clone();
        Ok(PartAnswer { status: StatusCode::OK, content_id, headers, body })
    }

    /// Executes the changes, and answers each.
    async fn change(
        &self,
        table: String,
        operations: Vec<BatchOperation>,
        parts: &[BatchPart],
        call: GrpcCall,
    ) -> Result<Vec<PartAnswer>, RestError> {
        let request = ExecuteBatchRequest { table, operations };
        let answer: Result<ExecuteBatchResponse, _> = call.unary(EXECUTE_BATCH, &request).await;
        let answer = answer.map_err(named::of_batch)?;
        let origin = origin(self.head, &request.table);
        let outcomes = request.operations.into_iter().zip(parts).zip(answer.results);
        let answers = outcomes.map(|((operation, part), result)| {
            use batch_operation::Operation as Proto;
            match operation.operation {
                Some(Proto::Insert(insert)) => {
                    inserted(insert.entity.unwrap_or_default(), result, part, &origin)
                }
                _ => Ok(changed(result, part)),
            }
        });
        Ok(answers.collect::<Result<_, _>>()?)
    }

    /// Executes an empty change set, for a caller with write permission.
    ///
    /// # Errors
    /// The denied permission.
    async fn nothing(&self, call: GrpcCall) -> Result<(), RestError> {
        // No operation names a table, but a signature for one does.
        let table = self.head.params.get("tn").unwrap_or_default().to_owned();
        let request = ExecuteBatchRequest { table, operations: Vec::new() };
        match call.unary::<_, ExecuteBatchResponse>(EXECUTE_BATCH, &request).await {
            // The service rejects an empty batch, which Azure does not, after it has authorized the
            // caller.
            Err(status) if status.code() == Code::InvalidArgument => Ok(()),
            answer => answer.map(drop).map_err(RestError::from),
        }
    }

    /// The response of the operation that failed.
    ///
    /// # Errors
    /// An error that belongs to the batch and not to an operation.
    fn failed(&self, error: RestError, parts: &[BatchPart], id: &str) -> Result<Failed, RestError> {
        let mut response = ErrorResponse::new(error.clone(), id, self.at);
        let is_whole = response.status.is_server_error()
            && response.status != StatusCode::NOT_IMPLEMENTED
            || response.status == StatusCode::PAYLOAD_TOO_LARGE;
        if is_whole {
            return Err(error);
        }
        let index = *response.index.get_or_insert(0);
        // A single part contains the failed operation, whichever it was.
        let part = parts.get(index).or(parts.first()).cloned().unwrap_or_default();
        let mut headers = applied(part.prefer);
        headers.push(("DataServiceVersion", "3.0;".to_owned()));
        headers.push(("Content-Type", part.level.content_type().to_owned()));
        let body = error::json(&response).into_bytes();
        let status = response.status;
        let answer = PartAnswer { status, content_id: part.content_id, headers, body };
        Ok(Failed { answer, status: *error.status })
    }
}

/// An operation that failed.
struct Failed {
    answer: PartAnswer,
    /// The error, for the metrics.
    status: Status,
}

fn alone(unique: &str) -> impl FnOnce(Failed) -> Response<Body> {
    move |failed| accepted(answer::query(&failed.answer, unique), Some(failed.status))
}

fn in_change_set(unique: &str) -> impl FnOnce(Failed) -> Response<Body> {
    move |failed| accepted(answer::change_set(&[failed.answer], unique), Some(failed.status))
}

/// The response to an insert in a batch.
fn inserted(
    mut entity: Entity,
    result: BatchResult,
    part: &BatchPart,
    origin: &super::json::ResponseOrigin,
) -> Result<PartAnswer, Unreadable> {
    (entity.etag, entity.timestamp) = (result.etag, result.timestamp);
    let path = entity_path(&origin.table, &entity.partition_key, &entity.row_key);
    let location = format!("{}/{path}", origin.base);
    let mut headers = applied(part.prefer);
    headers.push(("DataServiceVersion", "3.0;".to_owned()));
    headers.push(("Location", location.clone()));
    let (status, body) = if part.prefer == Prefer::NoContent {
        headers.push(("DataServiceId", location));
        (StatusCode::NO_CONTENT, Vec::new())
    } else {
        headers.push(("Content-Type", part.level.content_type().to_owned()));
        let body = entity_json(&entity.encode_to_vec(), origin, part.level, None)?;
        (StatusCode::CREATED, body)
    };
    headers.push(("ETag", entity.etag));
    Ok(PartAnswer { status, content_id: part.content_id.clone(), headers, body })
}

/// The response to any other change in a batch.
fn changed(result: BatchResult, part: &BatchPart) -> PartAnswer {
    let mut headers = vec![("DataServiceVersion", "1.0;".to_owned())];
    if !result.etag.is_empty() {
        headers.push(("ETag", result.etag));
    }
    let (status, content_id) = (StatusCode::NO_CONTENT, part.content_id.clone());
    PartAnswer { status, content_id, headers, body: Vec::new() }
}

fn applied(prefer: Prefer) -> Vec<(&'static str, String)> {
    prefer.applied().map(|name| ("Preference-Applied", name.to_owned())).into_iter().collect()
}

/// The response to a batch; `failed` is the error of one of its operations.
fn accepted((content_type, body): (String, Vec<u8>), failed: Option<Status>) -> Response<Body> {
    let mut answer = reply::whole(StatusCode::ACCEPTED, "", body);
    if let Ok(content_type) = HeaderValue::try_from(content_type) {
        answer.headers_mut().insert(header::CONTENT_TYPE, content_type);
    }
    if let Some(status) = failed {
        answer.extensions_mut().insert(CallOutcome(status));
    }
    answer
}
