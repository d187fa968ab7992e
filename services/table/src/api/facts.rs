//! What the access log learns from messages: the names in requests, the cost in answers.

use trestle_proto::table::v1::{self as proto, batch_operation::Operation as Batched};
use trestle_service::facts::{Facts, Work};

/// A request that names something. What it names is told before it is checked, so that the log also
/// tells what a refused call was about.
pub(super) trait Names {
    /// Tells the names.
    fn tell(&self, work: &mut Work);
}

macro_rules! names_a_table {
    ($($request:ident),+ $(,)?) => {$(
        impl Names for proto::$request {
            fn tell(&self, work: &mut Work) {
                work.names(&self.table);
            }
        }
    )+};
}

macro_rules! names_nothing {
    ($($request:ident),+ $(,)?) => {$(
        impl Names for proto::$request {
            fn tell(&self, _: &mut Work) {}
        }
    )+};
}

macro_rules! writes_an_entity {
    ($($request:ident),+ $(,)?) => {$(
        impl Names for proto::$request {
            fn tell(&self, work: &mut Work) {
                work.names(&self.table);
                work.written = 1;
                if let Some(entity) = &self.entity {
                    work.key(&entity.partition_key, &entity.row_key);
                }
            }
        }
    )+};
}

names_a_table!(
    GetTableRequest,
    DeleteTableRequest,
    GetTableAccessPoliciesRequest,
    SetTableAccessPoliciesRequest,
    QueryEntitiesRequest,
    StreamEntitiesRequest,
    ExplainQueryRequest,
);
names_nothing!(
    ListTablesRequest,
    GetServicePropertiesRequest,
    SetServicePropertiesRequest,
    GetServiceStatsRequest,
);
writes_an_entity!(InsertEntityRequest, UpdateEntityRequest, UpsertEntityRequest);

impl Names for proto::CreateTableRequest {
    fn tell(&self, work: &mut Work) {
        if let Some(table) = &self.table {
            work.names(&table.name);
        }
    }
}

impl Names for proto::GetEntityRequest {
    fn tell(&self, work: &mut Work) {
        work.names(&self.table);
        work.key(&self.partition_key, &self.row_key);
    }
}

impl Names for proto::DeleteEntityRequest {
    fn tell(&self, work: &mut Work) {
        work.names(&self.table);
        work.written = 1;
        work.key(&self.partition_key, &self.row_key);
    }
}

impl Names for proto::ExecuteBatchRequest {
    /// A batch has one partition; that of its first operation stands for all.
    fn tell(&self, work: &mut Work) {
        work.names(&self.table);
        work.written = self.operations.len() as u64;
        let first = self.operations.first().and_then(|first| first.operation.as_ref());
        let entity = match first {
            Some(Batched::Insert(insert)) => insert.entity.as_ref(),
            Some(Batched::Update(update)) => update.entity.as_ref(),
            Some(Batched::Upsert(upsert)) => upsert.entity.as_ref(),
            Some(Batched::Delete(delete)) => return work.partition(&delete.partition_key),
            None => None,
        };
        if let Some(entity) = entity {
            work.partition(&entity.partition_key);
        }
    }
}

/// The names of an import come with its first message.
impl<T> Names for tonic::Streaming<T> {
    fn tell(&self, _: &mut Work) {}
}

/// Tells what an answer, or one message of a stream of them, has cost.
pub(super) fn tell_cost(facts: &Facts, cost: Option<&proto::QueryCost>) {
    if let Some(cost) = cost {
        facts.note(|work| {
            work.scanned += cost.scanned;
            work.returned += cost.returned;
            work.bytes += cost.bytes;
        });
    }
}
