//! Requests to the table service, as raw messages and as typed batches and imports: any
//! request gets a response, and never a server error.
#![no_main]

use arbitrary::Arbitrary;
use bytes::Bytes;
use libfuzzer_sys::fuzz_target;
use trestle_fuzz::{Entity, Key, Server};
use trestle_proto::table::v1::{
    self as proto, BatchDelete, BatchInsert, BatchUpdate, BatchUpsert, ImportChunk, ImportSpec,
    batch_operation::Operation, import_entities_request::Message,
};

#[derive(Debug, Arbitrary)]
enum Call {
    Raw(u8, Vec<Vec<u8>>),
    Batch(Vec<Write>),
    Import(Option<i32>, Vec<Vec<Entity>>),
    Query { filter: String, size: Option<i32>, token: String, select: Vec<String> },
    Stream { filter: String, limit: Option<i64>, token: String },
}

#[derive(Debug, Arbitrary)]
enum Write {
    Nothing,
    Insert(Option<Entity>),
    Update(Entity, i32, Option<String>),
    Upsert(Entity, i32),
    Delete(Key, Key, Option<String>),
}

fuzz_target!(|calls: Vec<Call>| {
    let server = Server::new();
    for call in &calls {
        let (method, messages) = call.messages();
        server.send(method, &messages);
    }
});

impl Call {
    fn messages(&self) -> (&'static str, Vec<Bytes>) {
        match self {
            Self::Raw(method, messages) => {
                let methods = trestle_fuzz::methods();
                let messages = messages.iter().map(|bytes| Bytes::copy_from_slice(bytes));
                (methods[usize::from(*method) % methods.len()], messages.collect())
            }
            Self::Batch(writes) => {
                let operations = writes
                    .iter()
                    .map(|write| proto::BatchOperation { operation: write.operation() });
                let request =
                    proto::ExecuteBatchRequest { table: table(), operations: operations.collect() };
                ("ExecuteBatch", vec![encode(&request)])
            }
            Self::Import(mode, chunks) => ("ImportEntities", import(*mode, chunks)),
            Self::Query { filter, size, token, select } => {
                let request = proto::QueryEntitiesRequest {
                    table: table(),
                    filter: filter.clone(),
                    page_size: *size,
                    page_token: token.clone(),
                    select: Some(proto::PropertyMask { paths: select.clone() }),
                };
                ("QueryEntities", vec![encode(&request)])
            }
            Self::Stream { filter, limit, token } => {
                let request = proto::StreamEntitiesRequest {
                    table: table(),
                    filter: filter.clone(),
                    limit: *limit,
                    resume_token: token.clone(),
                    ..Default::default()
                };
                ("StreamEntities", vec![encode(&request)])
            }
        }
    }
}

impl Write {
    fn operation(&self) -> Option<Operation> {
        Some(match self {
            Self::Nothing => return None,
            Self::Insert(entity) => {
                Operation::Insert(BatchInsert { entity: entity.as_ref().map(Entity::proto) })
            }
            Self::Update(entity, mode, if_match) => Operation::Update(BatchUpdate {
                entity: Some(entity.proto()),
                mode: mode % 4,
                if_match: if_match.clone(),
            }),
            Self::Upsert(entity, mode) => {
                Operation::Upsert(BatchUpsert { entity: Some(entity.proto()), mode: mode % 4 })
            }
            Self::Delete(partition, row, if_match) => Operation::Delete(BatchDelete {
                partition_key: partition.text(),
                row_key: row.text(),
                if_match: if_match.clone(),
            }),
        })
    }
}

fn import(mode: Option<i32>, chunks: &[Vec<Entity>]) -> Vec<Bytes> {
    let spec = ImportSpec { table: table(), mode: mode.map(|mode| mode % 4) };
    let chunk = |entities: &Vec<Entity>| {
        let entities = entities.iter().map(Entity::proto).collect();
        Message::Chunk(ImportChunk { entities })
    };
    let messages = std::iter::once(Message::Spec(spec)).chain(chunks.iter().map(chunk));
    let request = |message| proto::ImportEntitiesRequest { message: Some(message) };
    messages.map(|message| encode(&request(message))).collect()
}

fn table() -> String {
    "tbl".to_owned()
}

fn encode(message: &impl prost::Message) -> Bytes {
    message.encode_to_vec().into()
}
