//! Operations on entities: one call each, and the response of Azure.

use bytes::Bytes;
use http::{HeaderName, HeaderValue, Response, StatusCode, header};
use prost::Message as _;
use tonic::body::Body;
use trestle_proto::table::v1::{
    DeleteEntityRequest, DeleteEntityResponse, Entity, GetEntityRequest, GetEntityResponse,
    InsertEntityRequest, InsertEntityResponse, QueryEntitiesRequest, QueryEntitiesResponse,
    UpdateEntityRequest, UpdateEntityResponse, UpsertEntityRequest, UpsertEntityResponse,
};

use super::{
    json::{PageBody, ResponseOrigin, Select, entity_json, entity_of, entity_path, etag_of},
    level::Level,
    named,
    options::continuation_token,
    prefer::{PREFERENCE_APPLIED, Prefer},
    route::{EntityChange, GET_ENTITY, Get, Query, Verb},
};
use crate::{error::RestError, grpc_call::GrpcCall, head::RequestHead, reply};

/// The continuation token.
const NEXT: HeaderName = HeaderName::from_static("x-ms-continuation-nextpartitionkey");
/// Its second half, which clients read without a check. The other one contains the row.
const NEXT_ROW: HeaderName = HeaderName::from_static("x-ms-continuation-nextrowkey");
/// The address of a created entity that is not returned.
pub(crate) const DATA_SERVICE_ID: HeaderName = HeaderName::from_static("dataserviceid");

/// The address of the entities of a table.
pub(super) fn origin(head: &RequestHead, table: &str) -> ResponseOrigin {
    ResponseOrigin {
        base: head.base.clone(),
        account: head.account.as_str().to_owned(),
        table: table.to_owned(),
    }
}

/// Query Entities.
pub(super) async fn query(
    path: &'static str,
    query: Query,
    head: &RequestHead,
    call: GrpcCall,
) -> Result<Response<Body>, RestError> {
    let Query { table, options, page_token, level } = query;
    let origin = origin(head, &table);
    let request = QueryEntitiesRequest {
        table,
        filter: options.filter,
        select: options.select.as_ref().map(Select::mask),
        page_size: options.top,
        page_token,
    };
    let page: QueryEntitiesResponse = call.unary(path, &request).await?;

    let body = PageBody::new(page.entities, origin, level, options.select);
    let mut answer = match body.small() {
        Ok(small) => reply::whole(StatusCode::OK, level.content_type(), small?),
        Err(large) => {
            let mut answer = Response::new(Body::new(large));
            let content_type = HeaderValue::from_static(level.content_type());
            answer.headers_mut().insert(header::CONTENT_TYPE, content_type);
            answer
        }
    };
    if !page.next_page_token.is_empty() {
        insert(&mut answer, NEXT, &continuation_token(&page.next_page_token));
        insert(&mut answer, NEXT_ROW, &continuation_token(""));
    }
    Ok(answer)
}

/// Get Entity.
pub(super) async fn get(
    get: Get,
    head: &RequestHead,
    call: GrpcCall,
) -> Result<Response<Body>, RestError> {
    let (encoded, level) = (read(&get, call).await?, get.level);
    let origin = origin(head, &get.table);
    let body = entity_json(&encoded, &origin, level, get.options.select.as_ref())?;
    let mut answer = reply::whole(StatusCode::OK, level.content_type(), body);
    insert(&mut answer, header::ETAG, etag_of(&encoded)?);
    Ok(answer)
}

/// The requested entity, encoded.
pub(super) async fn read(get: &Get, call: GrpcCall) -> Result<Bytes, RestError> {
    let request = GetEntityRequest {
        table: get.table.clone(),
        partition_key: get.key.partition_key.clone(),
        row_key: get.key.row_key.clone(),
        select: get.options.select.as_ref().map(Select::mask),
    };
    let answer: Result<GetEntityResponse, _> = call.unary(GET_ENTITY, &request).await;
    Ok(answer.map_err(named::of_entity)?.entity)
}

/// Insert, update, upsert, delete.
pub(super) async fn change(
    path: &'static str,
    change: EntityChange,
    head: &RequestHead,
    body: &[u8],
    call: GrpcCall,
) -> Result<Response<Body>, RestError> {
    let EntityChange { table, verb } = change;
    let etag = match verb {
        Verb::Insert { level, prefer } => {
            let origin = origin(head, &table);
            let mut request = InsertEntityRequest { table, entity: Some(entity_of(body, None)?) };
            let answer: Result<InsertEntityResponse, _> = call.unary(path, &request).await;
            let answer = answer.map_err(named::of_entity)?;
            let mut entity = request.entity.take().unwrap_or_default();
            (entity.etag, entity.timestamp) = (answer.etag, answer.timestamp);
            return inserted(&entity, &origin, level, prefer);
        }
        Verb::Update { key, mode, if_match } => {
            let (entity, if_match) = (Some(entity_of(body, Some(key))?), Some(if_match));
            let request = UpdateEntityRequest { table, entity, mode: mode.into(), if_match };
            let answer: Result<UpdateEntityResponse, _> = call.unary(path, &request).await;
            answer.map_err(named::of_entity)?.etag
        }
        Verb::Upsert { key, mode } => {
            let entity = Some(entity_of(body, Some(key))?);
            let request = UpsertEntityRequest { table, entity, mode: mode.into() };
            let answer: Result<UpsertEntityResponse, _> = call.unary(path, &request).await;
            answer.map_err(named::of_entity)?.etag
        }
        Verb::Delete { key, if_match } => {
            let (partition_key, row_key) = (key.partition_key, key.row_key);
            let if_match = Some(if_match);
            let request = DeleteEntityRequest { table, partition_key, row_key, if_match };
            let answer: Result<DeleteEntityResponse, _> = call.unary(path, &request).await;
            answer.map_err(named::of_entity)?;
            return Ok(reply::empty(StatusCode::NO_CONTENT));
        }
    };
    let mut answer = reply::empty(StatusCode::NO_CONTENT);
    insert(&mut answer, header::ETAG, &etag);
    Ok(answer)
}

/// The response to an insert.
fn inserted(
    entity: &Entity,
    origin: &ResponseOrigin,
    level: Level,
    prefer: Prefer,
) -> Result<Response<Body>, RestError> {
    let path = entity_path(&origin.table, &entity.partition_key, &entity.row_key);
    let location = format!("{}/{path}", origin.base);
    let mut answer = if prefer == Prefer::NoContent {
        let mut answer = reply::empty(StatusCode::NO_CONTENT);
        insert(&mut answer, DATA_SERVICE_ID, &location);
        answer
    } else {
        let body = entity_json(&entity.encode_to_vec(), origin, level, None)?;
        reply::whole(StatusCode::CREATED, level.content_type(), body)
    };
    insert(&mut answer, header::LOCATION, &location);
    insert(&mut answer, header::ETAG, &entity.etag);
    applied(&mut answer, prefer);
    Ok(answer)
}

/// Reports an applied preference, if any.
pub(super) fn applied(answer: &mut Response<Body>, prefer: Prefer) {
    if let Some(applied) = prefer.applied() {
        insert(answer, PREFERENCE_APPLIED, applied);
    }
}

/// Adds a header, unless its value is invalid in a header: addresses and etags are always valid.
pub(super) fn insert(answer: &mut Response<Body>, name: HeaderName, value: &str) {
    if let Ok(value) = HeaderValue::from_str(value) {
        answer.headers_mut().insert(name, value);
    }
}
