//! The gRPC layer: parses the request, calls the domain, renders the response. Decides nothing itself.

mod access_log;
mod import;
mod parse;
mod query;
mod render;

use std::sync::Arc;

use tonic::{Request, Response, Status, Streaming};
use trestle_identity::{access_policy::recheck::PolicyRechecks, caller::Caller};
use trestle_kv::Engine;
use trestle_model::fault::{Fault, Violations};
use trestle_model::name::{AccountName, TableName};
use trestle_model::time::Ticks;
use trestle_proto::table::v1::{
    self as proto,
    table_service_server::{SERVICE_NAME, TableService},
};
use trestle_rpc::call_statistics::StatisticsRecorder;
use trestle_rpc::response_stream::ResponseStream;
use trestle_rpc::served_store::StoreProcesses;
use trestle_rpc::service_properties;
use trestle_rpc::status::IntoStatus as _;

use self::access_log::{AccessLogFields, record_cost};
use crate::{
    TableDeps,
    authorize::{self, EntityAccess, TableAction},
    error::TableError,
    operation::EntityOperation,
    query::NameFilter,
    read::EntityReader,
    sweep::DeletedTableSweeper,
    table_settings::TableSettings,
    tables::{ListTables, Tables},
    throttle::{self, Throttle},
    write::{EntityWriter, NewVersion},
};

/// Most partitions in the response of GetServiceStats.
const HOTTEST_MAX: usize = 10;

/// The implementation of `trestle.table.v1.TableService`.
#[derive(Clone)]
pub struct TableApi {
    engine: Arc<dyn Engine>,
    tables: Tables,
    writer: EntityWriter,
    reader: EntityReader,
    settings: TableSettings,
    sweeper: DeletedTableSweeper,
    throttle: Arc<Throttle>,
    processes: StoreProcesses,
    started_at: Ticks,
}

impl TableApi {
    /// Serves the tables in the engine.
    pub(crate) fn new(deps: TableDeps) -> Self {
        let TableDeps { engine, clock, quotas, storage, processes, meter } = deps;
        let throttle = Arc::new(Throttle::new(quotas, &meter));
        throttle::observe(&throttle, &meter);
        let started_at = clock.now();
        Self {
            tables: Tables::new(Arc::clone(&engine), Arc::clone(&clock)).with_quotas(storage),
            writer: EntityWriter::new(Arc::clone(&engine), Arc::clone(&throttle)),
            reader: EntityReader::new(Arc::clone(&engine), clock, Arc::clone(&throttle)),
            settings: TableSettings::new(Arc::clone(&engine)),
            sweeper: DeletedTableSweeper::new(Arc::clone(&engine)),
            started_at,
            engine,
            throttle,
            processes,
        }
    }

    /// How many tables exist, up to a maximum.
    pub(crate) async fn count_tables(&self, tables_max: usize) -> Result<usize, TableError> {
        self.tables.count(tables_max).await
    }

    /// Measures what accounts store.
    pub(crate) async fn measure(&self) -> Result<(), Fault> {
        self.tables.measure().await
    }

    /// The background work on deleted tables.
    pub(crate) fn sweeper(&self) -> &DeletedTableSweeper {
        &self.sweeper
    }

    /// The quotas and their use.
    pub(crate) fn throttle(&self) -> &Throttle {
        &self.throttle
    }

    /// Ends streams whose stored access policy stops granting them.
    pub(crate) fn rechecks(&self) -> PolicyRechecks {
        let tables = self.tables.clone();
        PolicyRechecks::new(move |caller| {
            let tables = tables.clone();
            Box::pin(async move { tables.admit(&caller).await.map_err(Fault::from) })
        })
    }

    /// The account of a request, and its message, for a caller who may do this action.
    ///
    /// A message is available only through this check and [`TableApi::authorize_entities`].
    async fn authorize<T: AccessLogFields>(
        &self,
        request: Request<T>,
        action: TableAction,
    ) -> Result<(AccountName, T), Fault> {
        let caller = caller_of(&request)?;
        self.tables.admit(&caller).await?;
        authorize::check(&caller, action)?;
        Ok((caller.account.clone(), request.into_inner()))
    }

    /// The access of a caller to entities, and the message. Reader and writer check each entity against the access.
    async fn authorize_entities<T: AccessLogFields>(
        &self,
        request: Request<T>,
    ) -> Result<(EntityAccess, T), Fault> {
        let caller = caller_of(&request)?;
        self.tables.admit(&caller).await?;
        Ok((EntityAccess::new(caller)?, request.into_inner()))
    }

    async fn write(
        &self,
        access: &EntityAccess,
        table: &TableName,
        operation: EntityOperation,
    ) -> Result<NewVersion, Fault> {
        let table = self.tables.authorized(access, table).await?;
        Ok(self.writer.one(&table, operation).await?)
    }
}

/// The caller of a request, whose names are recorded before anything is checked.
fn caller_of<T: AccessLogFields>(request: &Request<T>) -> Result<Arc<Caller>, Fault> {
    StatisticsRecorder::of(request.extensions())
        .record(|statistics| request.get_ref().record(statistics));
    Caller::of(request)
}

/// The status of a failed call.
fn rejected(error: impl Into<Fault>) -> Status {
    error.into().into_status(SERVICE_NAME)
}

#[tonic::async_trait]
impl TableService for TableApi {
    type StreamEntitiesStream = ResponseStream<proto::StreamEntitiesResponse>;
    type ImportEntitiesStream = ResponseStream<proto::ImportEntitiesResponse>;

    async fn create_table(
        &self,
        request: Request<proto::CreateTableRequest>,
    ) -> Result<Response<proto::CreateTableResponse>, Status> {
        let (account, message) =
            self.authorize(request, TableAction::CreateTable).await.map_err(rejected)?;
        let table =
            self.tables.create(&account, parse::new_table(message.table).map_err(rejected)?).await;
        let table = Some(render::table(table.map_err(rejected)?));
        Ok(Response::new(proto::CreateTableResponse { table }))
    }

    async fn get_table(
        &self,
        request: Request<proto::GetTableRequest>,
    ) -> Result<Response<proto::GetTableResponse>, Status> {
        let (account, message) =
            self.authorize(request, TableAction::ListTables).await.map_err(rejected)?;
        let table = self.tables.get(&account, parse::table(message.table).map_err(rejected)?).await;
        let table = Some(render::table(table.map_err(rejected)?));
        Ok(Response::new(proto::GetTableResponse { table }))
    }

    async fn list_tables(
        &self,
        request: Request<proto::ListTablesRequest>,
    ) -> Result<Response<proto::ListTablesResponse>, Status> {
        let (account, message) =
            self.authorize(request, TableAction::ListTables).await.map_err(rejected)?;
        let mut violations = Violations::default();
        let page_size = parse::page_size(message.page_size, &mut violations);
        let filter = parse::filter(NameFilter::parse(&message.filter), &mut violations);
        let filter = parse::finish(violations, filter).map_err(rejected)?;
        let request = ListTables {
            filter_text: message.filter,
            filter,
            page_size,
            page_token: message.page_token,
        };
        let page = self.tables.list(&account, request).await.map_err(rejected)?;
        Ok(Response::new(proto::ListTablesResponse {
            tables: page.tables.into_iter().map(render::table).collect(),
            next_page_token: page.next_page_token.unwrap_or_default(),
        }))
    }

    async fn delete_table(
        &self,
        request: Request<proto::DeleteTableRequest>,
    ) -> Result<Response<proto::DeleteTableResponse>, Status> {
        let (account, message) =
            self.authorize(request, TableAction::DeleteTable).await.map_err(rejected)?;
        let deleted =
            self.tables.delete(&account, parse::table(message.table).map_err(rejected)?).await;
        deleted.map_err(rejected)?;
        Ok(Response::new(proto::DeleteTableResponse {}))
    }

    async fn get_table_access_policies(
        &self,
        request: Request<proto::GetTableAccessPoliciesRequest>,
    ) -> Result<Response<proto::GetTableAccessPoliciesResponse>, Status> {
        let (account, message) =
            self.authorize(request, TableAction::AccessPolicies).await.map_err(rejected)?;
        let table = parse::table(message.table).map_err(rejected)?;
        let policies = self.settings.access_policies(&account, &table).await;
        let policies = policies.map_err(rejected)?;
        Ok(Response::new(proto::GetTableAccessPoliciesResponse { policies }))
    }

    async fn set_table_access_policies(
        &self,
        request: Request<proto::SetTableAccessPoliciesRequest>,
    ) -> Result<Response<proto::SetTableAccessPoliciesResponse>, Status> {
        let (account, message) =
            self.authorize(request, TableAction::AccessPolicies).await.map_err(rejected)?;
        let table = parse::table(message.table).map_err(rejected)?;
        let set = self.settings.set_access_policies(&account, &table, message.policies).await;
        set.map_err(rejected)?;
        Ok(Response::new(proto::SetTableAccessPoliciesResponse {}))
    }

    async fn insert_entity(
        &self,
        request: Request<proto::InsertEntityRequest>,
    ) -> Result<Response<proto::InsertEntityResponse>, Status> {
        let (access, message) = self.authorize_entities(request).await.map_err(rejected)?;
        let (table, operation) = parse::insert(message).map_err(rejected)?;
        let (etag, timestamp) =
            render::version(self.write(&access, &table, operation).await.map_err(rejected)?);
        Ok(Response::new(proto::InsertEntityResponse { etag, timestamp }))
    }

    async fn get_entity(
        &self,
        request: Request<proto::GetEntityRequest>,
    ) -> Result<Response<proto::GetEntityResponse>, Status> {
        let recorder = StatisticsRecorder::of(request.extensions());
        let (access, message) = self.authorize_entities(request).await.map_err(rejected)?;
        let response = query::get(&self.reader, &access, message).await.map_err(rejected)?;
        record_cost(&recorder, response.cost.as_ref());
        Ok(Response::new(response))
    }

    async fn update_entity(
        &self,
        request: Request<proto::UpdateEntityRequest>,
    ) -> Result<Response<proto::UpdateEntityResponse>, Status> {
        let (access, message) = self.authorize_entities(request).await.map_err(rejected)?;
        let (table, operation) = parse::update(message).map_err(rejected)?;
        let (etag, timestamp) =
            render::version(self.write(&access, &table, operation).await.map_err(rejected)?);
        Ok(Response::new(proto::UpdateEntityResponse { etag, timestamp }))
    }

    async fn upsert_entity(
        &self,
        request: Request<proto::UpsertEntityRequest>,
    ) -> Result<Response<proto::UpsertEntityResponse>, Status> {
        let (access, message) = self.authorize_entities(request).await.map_err(rejected)?;
        let (table, operation) = parse::upsert(message).map_err(rejected)?;
        let (etag, timestamp) =
            render::version(self.write(&access, &table, operation).await.map_err(rejected)?);
        Ok(Response::new(proto::UpsertEntityResponse { etag, timestamp }))
    }

    async fn delete_entity(
        &self,
        request: Request<proto::DeleteEntityRequest>,
    ) -> Result<Response<proto::DeleteEntityResponse>, Status> {
        let (access, message) = self.authorize_entities(request).await.map_err(rejected)?;
        let (table, operation) = parse::delete(message).map_err(rejected)?;
        self.write(&access, &table, operation).await.map_err(rejected)?;
        Ok(Response::new(proto::DeleteEntityResponse {}))
    }

    async fn execute_batch(
        &self,
        request: Request<proto::ExecuteBatchRequest>,
    ) -> Result<Response<proto::ExecuteBatchResponse>, Status> {
        let (access, message) = self.authorize_entities(request).await.map_err(rejected)?;
        let (table, operations) = parse::batch(message).map_err(rejected)?;
        // Deletes pass at a quota, so the layer in front of the service cannot reject the call.
        if !operations.iter().all(EntityOperation::is_delete) {
            self.tables.check_bytes(access.account()).map_err(rejected)?;
        }
        let table = self.tables.authorized(&access, &table).await.map_err(rejected)?;
        let versions = self.writer.batch(&table, operations).await.map_err(rejected)?;
        let results = versions.into_iter().map(|version| {
            let (etag, timestamp) = render::version(version);
            proto::BatchResult { etag, timestamp }
        });
        Ok(Response::new(proto::ExecuteBatchResponse { results: results.collect() }))
    }

    async fn query_entities(
        &self,
        request: Request<proto::QueryEntitiesRequest>,
    ) -> Result<Response<proto::QueryEntitiesResponse>, Status> {
        let recorder = StatisticsRecorder::of(request.extensions());
        let (access, message) = self.authorize_entities(request).await.map_err(rejected)?;
        let response = query::page(&self.reader, access, message).await.map_err(rejected)?;
        record_cost(&recorder, response.cost.as_ref());
        Ok(Response::new(response))
    }

    async fn stream_entities(
        &self,
        request: Request<proto::StreamEntitiesRequest>,
    ) -> Result<Response<Self::StreamEntitiesStream>, Status> {
        let recorder = StatisticsRecorder::of(request.extensions());
        let (access, message) = self.authorize_entities(request).await.map_err(rejected)?;
        let stream =
            query::stream(&self.reader, access, message, recorder).await.map_err(rejected)?;
        Ok(Response::new(stream))
    }

    async fn import_entities(
        &self,
        request: Request<Streaming<proto::ImportEntitiesRequest>>,
    ) -> Result<Response<Self::ImportEntitiesStream>, Status> {
        let recorder = StatisticsRecorder::of(request.extensions());
        let (access, messages) = self.authorize_entities(request).await.map_err(rejected)?;
        let import =
            import::Import::new(self.tables.clone(), self.writer.clone(), access, recorder);
        Ok(Response::new(import.run(messages)))
    }

    async fn explain_query(
        &self,
        request: Request<proto::ExplainQueryRequest>,
    ) -> Result<Response<proto::ExplainQueryResponse>, Status> {
        let recorder = StatisticsRecorder::of(request.extensions());
        let (access, message) = self.authorize_entities(request).await.map_err(rejected)?;
        let response = query::explain(&self.reader, access, message).await.map_err(rejected)?;
        record_cost(&recorder, response.cost.as_ref());
        Ok(Response::new(response))
    }

    async fn get_service_properties(
        &self,
        request: Request<proto::GetServicePropertiesRequest>,
    ) -> Result<Response<proto::GetServicePropertiesResponse>, Status> {
        let (account, _) =
            self.authorize(request, TableAction::ReadProperties).await.map_err(rejected)?;
        let properties = self.settings.properties(&account).await.map_err(rejected)?;
        let properties = Some(properties);
        Ok(Response::new(proto::GetServicePropertiesResponse { properties }))
    }

    async fn set_service_properties(
        &self,
        request: Request<proto::SetServicePropertiesRequest>,
    ) -> Result<Response<proto::SetServicePropertiesResponse>, Status> {
        let (account, message) =
            self.authorize(request, TableAction::WriteProperties).await.map_err(rejected)?;
        let change = service_properties::required(message.properties).map_err(rejected)?;
        self.settings.set_properties(&account, change).await.map_err(rejected)?;
        Ok(Response::new(proto::SetServicePropertiesResponse {}))
    }

    async fn get_service_stats(
        &self,
        request: Request<proto::GetServiceStatsRequest>,
    ) -> Result<Response<proto::GetServiceStatsResponse>, Status> {
        let shows_keys = Caller::of(&request).is_ok_and(|caller| {
            authorize::check(&caller, TableAction::ReadHottestPartitions).is_ok()
        });
        let (account, _) =
            self.authorize(request, TableAction::ReadStats).await.map_err(rejected)?;
        let pending = self
            .sweeper
            .pending()
            .await
            .map_err(|error: TableError| Fault::from(error))
            .map_err(rejected)?;
        let mut stats = render::stats(&self.engine.status(), self.started_at, pending);
        let hottest = if shows_keys { HOTTEST_MAX } else { 0 };
        let hottest = self.throttle.hottest(Some(&account), hottest);
        stats.hottest_partitions = hottest.into_iter().map(render::hot_partition).collect();
        stats.quotas = self.tables.quotas(&account);
        stats.processes = self.processes.list();
        Ok(Response::new(stats))
    }
}
