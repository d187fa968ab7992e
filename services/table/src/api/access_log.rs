//! What the access log records of messages: the names in requests, the cost in responses.

use trestle_proto::table::v1::{self as proto, batch_operation::Operation as Batched};
use trestle_rpc::call_statistics::{CallStatistics, StatisticsRecorder};

/// A request with names to record. They are recorded before they are checked, so that the log also shows the resource
/// of a rejected call.
pub(super) trait AccessLogFields {
    /// Records the names.
    fn record(&self, statistics: &mut CallStatistics);
}

macro_rules! records_a_table {
    ($($request:ident),+ $(,)?) => {$(
        impl AccessLogFields for proto::$request {
            fn record(&self, statistics: &mut CallStatistics) {
                statistics.set_table(&self.table);
            }
        }
    )+};
}

macro_rules! records_nothing {
    ($($request:ident),+ $(,)?) => {$(
        impl AccessLogFields for proto::$request {
            fn record(&self, _: &mut CallStatistics) {}
        }
    )+};
}

macro_rules! records_an_entity {
    ($($request:ident),+ $(,)?) => {$(
        impl AccessLogFields for proto::$request {
            fn record(&self, statistics: &mut CallStatistics) {
                statistics.set_table(&self.table);
                statistics.written = 1;
                if let Some(entity) = &self.entity {
                    statistics.set_key(&entity.partition_key, &entity.row_key);
                }
            }
        }
    )+};
}

records_a_table!(
    GetTableRequest,
    DeleteTableRequest,
    GetTableAccessPoliciesRequest,
    SetTableAccessPoliciesRequest,
    QueryEntitiesRequest,
    StreamEntitiesRequest,
    ExplainQueryRequest,
);
records_nothing!(
    ListTablesRequest,
    GetServicePropertiesRequest,
    SetServicePropertiesRequest,
    GetServiceStatsRequest,
);
records_an_entity!(InsertEntityRequest, UpdateEntityRequest, UpsertEntityRequest);

impl AccessLogFields for proto::CreateTableRequest {
    fn record(&self, statistics: &mut CallStatistics) {
        if let Some(table) = &self.table {
            statistics.set_table(&table.name);
        }
    }
}

impl AccessLogFields for proto::GetEntityRequest {
    fn record(&self, statistics: &mut CallStatistics) {
        statistics.set_table(&self.table);
        statistics.set_key(&self.partition_key, &self.row_key);
    }
}

impl AccessLogFields for proto::DeleteEntityRequest {
    fn record(&self, statistics: &mut CallStatistics) {
        statistics.set_table(&self.table);
        statistics.written = 1;
        statistics.set_key(&self.partition_key, &self.row_key);
    }
}

impl AccessLogFields for proto::ExecuteBatchRequest {
    /// A batch has one partition: that of its first operation.
    fn record(&self, statistics: &mut CallStatistics) {
        statistics.set_table(&self.table);
        statistics.written = self.operations.len() as u64;
        let first = self.operations.first().and_then(|first| first.operation.as_ref());
        let entity = match first {
            Some(Batched::Insert(insert)) => insert.entity.as_ref(),
            Some(Batched::Update(update)) => update.entity.as_ref(),
            Some(Batched::Upsert(upsert)) => upsert.entity.as_ref(),
            Some(Batched::Delete(delete)) => {
                return statistics.set_partition(&delete.partition_key);
            }
            None => None,
        };
        if let Some(entity) = entity {
            statistics.set_partition(&entity.partition_key);
        }
    }
}

/// The table of an import is in its first message.
impl<T> AccessLogFields for tonic::Streaming<T> {
    fn record(&self, _: &mut CallStatistics) {}
}

/// Records the cost of a response, or of one message of a stream of them.
pub(super) fn record_cost(recorder: &StatisticsRecorder, cost: Option<&proto::QueryCost>) {
    if let Some(cost) = cost {
        recorder.record(|statistics| {
            statistics.scanned += cost.scanned;
            statistics.returned += cost.returned;
            statistics.bytes += cost.bytes;
        });
    }
}
