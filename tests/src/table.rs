//! The verbs on one table.

use futures::TryStreamExt as _;
use trestle_proto::table::v1::{
    self as proto, BatchOperation, Entity, ImportChunk, ImportSpec, WriteMode,
    batch_operation::Operation, import_entities_request::Message, stored,
    table_service_client::TableServiceClient,
};

use crate::{CallError, Transport};

/// A choice of properties.
fn mask(names: &[&str]) -> proto::PropertyMask {
    let paths = names.iter().map(|name| (*name).to_owned()).collect();
    proto::PropertyMask { paths }
}

/// A table of a world.
#[derive(Debug, Clone)]
pub struct Table {
    client: TableServiceClient<Transport>,
    name: String,
}

/// The version of a write.
#[derive(Debug, Clone, PartialEq)]
pub struct Version {
    /// Its etag.
    pub etag: String,
    /// Its time.
    pub timestamp: prost_types::Timestamp,
}

type Outcome<T> = Result<T, CallError>;

impl Table {
    /// A table over a client, which may exist or not.
    pub fn new(client: TableServiceClient<Transport>, name: &str) -> Self {
        Self { client, name: name.to_owned() }
    }

    /// The client, for calls that have no verb.
    pub fn client(&self) -> TableServiceClient<Transport> {
        self.client.clone()
    }

    /// Its name.
    pub fn name(&self) -> String {
        self.name.clone()
    }

    /// Inserts an entity.
    pub async fn insert(&self, entity: Entity) -> Outcome<Version> {
        let request = proto::InsertEntityRequest { table: self.name(), entity: Some(entity) };
        let response =
            self.client().insert_entity(request).await.map_err(CallError::from)?.into_inner();
        Ok(version(response.etag, response.timestamp))
    }

    /// Reads an entity.
    pub async fn get(&self, partition: &str, row: &str) -> Outcome<Entity> {
        let request = proto::GetEntityRequest {
            table: self.name(),
            partition_key: partition.to_owned(),
            row_key: row.to_owned(),
            select: None,
        };
        let response =
            self.client().get_entity(request).await.map_err(CallError::from)?.into_inner();
        Ok(prost::Message::decode(response.entity).expect("an entity"))
    }

    /// Updates an entity.
    pub async fn update(
        &self,
        entity: Entity,
        mode: WriteMode,
        if_match: Option<&str>,
    ) -> Outcome<Version> {
        let request = proto::UpdateEntityRequest {
            table: self.name(),
            entity: Some(entity),
            mode: mode.into(),
            if_match: if_match.map(str::to_owned),
        };
        let response =
            self.client().update_entity(request).await.map_err(CallError::from)?.into_inner();
        Ok(version(response.etag, response.timestamp))
    }

    /// Upserts an entity.
    pub async fn upsert(&self, entity: Entity, mode: WriteMode) -> Outcome<Version> {
        let request = proto::UpsertEntityRequest {
            table: self.name(),
            entity: Some(entity),
            mode: mode.into(),
        };
        let response =
            self.client().upsert_entity(request).await.map_err(CallError::from)?.into_inner();
        Ok(version(response.etag, response.timestamp))
    }

    /// Deletes an entity.
    pub async fn delete(&self, partition: &str, row: &str, if_match: Option<&str>) -> Outcome<()> {
        let request = proto::DeleteEntityRequest {
            table: self.name(),
            partition_key: partition.to_owned(),
            row_key: row.to_owned(),
            if_match: if_match.map(str::to_owned),
        };
        self.client().delete_entity(request).await.map(drop).map_err(CallError::from)
    }

    /// Executes a batch; the etags of its operations.
    pub async fn batch(&self, operations: Vec<Operation>) -> Outcome<Vec<String>> {
        let operations =
            operations.into_iter().map(|op| BatchOperation { operation: Some(op) }).collect();
        let request = proto::ExecuteBatchRequest { table: self.name(), operations };
        let response =
            self.client().execute_batch(request).await.map_err(CallError::from)?.into_inner();
        Ok(response.results.into_iter().map(|result| result.etag).collect())
    }

    /// Reads some properties of an entity; also returns the cost.
    pub async fn get_selected(
        &self,
        partition: &str,
        row: &str,
        names: &[&str],
    ) -> Outcome<(Entity, proto::QueryCost)> {
        let request = proto::GetEntityRequest {
            table: self.name(),
            partition_key: partition.to_owned(),
            row_key: row.to_owned(),
            select: Some(mask(names)),
        };
        let response = self.client().get_entity(request).await;
        let response = response.map_err(CallError::from)?.into_inner();
        let entity = prost::Message::decode(response.entity).expect("an entity");
        Ok((entity, response.cost.expect("a read has a cost")))
    }

    /// The plan of a query.
    pub async fn explain(
        &self,
        filter: &str,
        select: &[&str],
        analyze: bool,
    ) -> Outcome<proto::ExplainQueryResponse> {
        let request = proto::ExplainQueryRequest {
            table: self.name(),
            filter: filter.to_owned(),
            select: Some(mask(select)),
            analyze,
        };
        let response = self.client().explain_query(request).await;
        response.map(tonic::Response::into_inner).map_err(CallError::from)
    }

    /// One page of a query, as requested.
    pub async fn page(
        &self,
        request: proto::QueryEntitiesRequest,
    ) -> Outcome<(Vec<Entity>, proto::QueryEntitiesResponse)> {
        let request = proto::QueryEntitiesRequest { table: self.name(), ..request };
        let response =
            self.client().query_entities(request).await.map_err(CallError::from)?.into_inner();
        let entities = stored::decode_entities(&response.entities).expect("entities");
        Ok((entities, response))
    }

    /// Every entity that matches a filter, page after page.
    pub async fn query(&self, filter: &str) -> Outcome<Vec<Entity>> {
        let mut all = Vec::new();
        let mut page_token = String::new();
        loop {
            let filter = filter.to_owned();
            let request = proto::QueryEntitiesRequest { filter, page_token, ..Default::default() };
            let (entities, response) = self.page(request).await?;
            all.extend(entities);
            page_token = response.next_page_token;
            if page_token.is_empty() {
                return Ok(all);
            }
        }
    }

    /// The row keys of every entity that matches a filter.
    pub async fn rows(&self, filter: &str) -> Outcome<Vec<String>> {
        Ok(self.query(filter).await?.into_iter().map(|entity| entity.row_key).collect())
    }

    /// Every message of a stream.
    pub async fn stream(
        &self,
        request: proto::StreamEntitiesRequest,
    ) -> Outcome<Vec<proto::StreamEntitiesResponse>> {
        let request = proto::StreamEntitiesRequest { table: self.name(), ..request };
        let stream =
            self.client().stream_entities(request).await.map_err(CallError::from)?.into_inner();
        stream.map_err(CallError::from).try_collect().await
    }

    /// A stream, read by the test.
    pub async fn open_stream(
        &self,
        request: proto::StreamEntitiesRequest,
    ) -> Outcome<tonic::Streaming<proto::StreamEntitiesResponse>> {
        let request = proto::StreamEntitiesRequest { table: self.name(), ..request };
        let response = self.client().stream_entities(request).await;
        response.map(tonic::Response::into_inner).map_err(CallError::from)
    }

    /// Imports chunks; the failures by position.
    pub async fn import(
        &self,
        mode: Option<WriteMode>,
        chunks: Vec<Vec<Entity>>,
    ) -> Outcome<Vec<(u64, trestle_proto::google::rpc::Status)>> {
        let chunks = chunks.into_iter().map(|entities| Message::Chunk(ImportChunk { entities }));
        let messages = std::iter::once(Message::Spec(self.spec(mode))).chain(chunks);
        let imported = self.import_messages(messages.map(Some).collect()).await;
        match imported.failure {
            Some(error) => Err(error),
            None => Ok(imported.failures()),
        }
    }

    /// The first message of an import.
    pub fn spec(&self, mode: Option<WriteMode>) -> ImportSpec {
        ImportSpec { table: self.name(), mode: mode.map(i32::from) }
    }

    /// Imports with messages of any kind, in any order.
    pub async fn import_messages(&self, messages: Vec<Option<Message>>) -> Imported {
        let messages = messages.into_iter().map(|message| proto::ImportEntitiesRequest { message });
        let mut imported = Imported::default();
        let requests = futures::stream::iter(messages.collect::<Vec<_>>());
        let mut responses = match self.client().import_entities(requests).await {
            Ok(response) => response.into_inner(),
            Err(status) => {
                imported.failure = Some(CallError::from(status));
                return imported;
            }
        };
        loop {
            match responses.message().await {
                Ok(Some(response)) => imported.responses.push(response),
                Ok(None) => return imported,
                Err(status) => {
                    imported.failure = Some(CallError::from(status));
                    return imported;
                }
            }
        }
    }
}

/// The responses to an import.
#[derive(Debug, Default)]
pub struct Imported {
    /// One for each chunk.
    pub responses: Vec<proto::ImportEntitiesResponse>,
    /// The error that ended it, if any.
    pub failure: Option<CallError>,
}

impl Imported {
    /// The entities that were not written, by position.
    pub fn failures(&self) -> Vec<(u64, trestle_proto::google::rpc::Status)> {
        let results = self.responses.iter().flat_map(|response| &response.results);
        results.filter_map(|result| Some((result.index, result.error.clone()?))).collect()
    }
}

fn version(etag: String, timestamp: Option<prost_types::Timestamp>) -> Version {
    Version { etag, timestamp: timestamp.expect("a write has a time") }
}
