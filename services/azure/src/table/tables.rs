//! Operations on the tables themselves.

use http::{HeaderName, Response, StatusCode, header};
use tonic::{Code, body::Body};
use trestle_model::fault::{Fault, Reason};
use trestle_proto::table::v1::{
    CreateTableRequest, CreateTableResponse, DeleteTableRequest, DeleteTableResponse,
    GetTableRequest, GetTableResponse, ListTablesRequest, ListTablesResponse, Table,
};

use super::{
    entities::{DATA_SERVICE_ID, applied, insert, origin},
    json::{ResponseOrigin, table_json, table_name_of, tables_json},
    options::continuation_token,
    prefer::Prefer,
    route::OnTables,
};
use crate::{error::RestError, grpc_call::GrpcCall, head::RequestHead, reply};

/// The continuation token of the list of tables.
const NEXT: HeaderName = HeaderName::from_static("x-ms-continuation-nexttablename");

/// Executes an operation.
///
/// # Errors
/// A malformed body, or a failed call.
pub(super) async fn perform(
    path: &'static str,
    operation: OnTables,
    head: &RequestHead,
    body: &[u8],
    call: GrpcCall,
) -> Result<Response<Body>, RestError> {
    match operation {
        OnTables::List { options, page_token, level } => {
            let request =
                ListTablesRequest { filter: options.filter, page_size: options.top, page_token };
            let page: ListTablesResponse = call.unary(path, &request).await?;
            let names = page.tables.iter().map(|table| table.name.as_str());
            let body = tables_json(names, &origin(head, ""), level);
            let mut answer = reply::whole(StatusCode::OK, level.content_type(), body);
            if !page.next_page_token.is_empty() {
                insert(&mut answer, NEXT, &continuation_token(&page.next_page_token));
            }
            Ok(answer)
        }
        OnTables::Get { table, level } => {
            let answer: GetTableResponse = call.unary(path, &GetTableRequest { table }).await?;
            let origin = origin(head, &answer.table.unwrap_or_default().name);
            Ok(reply::whole(StatusCode::OK, level.content_type(), table_json(&origin, level)))
        }
        OnTables::Create { level, prefer } => {
            let request = CreateTableRequest {
                table: Some(Table { name: table_name_of(body)?, ..Table::default() }),
            };
            let answer: CreateTableResponse = call.unary(path, &request).await?;
            let origin = origin(head, &answer.table.unwrap_or_default().name);
            let mut answer = created(&origin, prefer, || {
                reply::whole(StatusCode::CREATED, level.content_type(), table_json(&origin, level))
            });
            applied(&mut answer, prefer);
            Ok(answer)
        }
        OnTables::Delete { table } => {
            call.unary::<_, DeleteTableResponse>(path, &DeleteTableRequest { table }).await?;
            Ok(reply::empty(StatusCode::NO_CONTENT))
        }
        OnTables::Misplaced { table, rejected } => {
            let found = call.unary::<_, GetTableResponse>(path, &GetTableRequest { table }).await;
            Err(misplaced(found.err(), rejected))
        }
    }
}

fn created(
    origin: &ResponseOrigin,
    prefer: Prefer,
    with_body: impl FnOnce() -> Response<Body>,
) -> Response<Body> {
    let location = format!("{}/Tables('{}')", origin.base, origin.table);
    let mut answer = if prefer == Prefer::NoContent {
        let mut answer = reply::empty(StatusCode::NO_CONTENT);
        insert(&mut answer, DATA_SERVICE_ID, &location);
        answer
    } else {
        with_body()
    };
    insert(&mut answer, header::LOCATION, &location);
    answer
}

/// The result of creating or deleting a table by a request to a table: the error if that one exists,
/// unless it is absent.
fn misplaced(absent: Option<tonic::Status>, rejected: Fault) -> RestError {
    match absent {
        None => rejected.into(),
        Some(status) if status.code() == Code::NotFound => {
            Fault::new(Reason::TableNotFound, "the address names a table that does not exist")
                .into()
        }
        Some(status) => status.into(),
    }
}
