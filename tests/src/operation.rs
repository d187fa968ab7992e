//! Building the operations of a batch.

use trestle_proto::table::v1::{
    BatchDelete, BatchInsert, BatchUpdate, BatchUpsert, Entity, WriteMode,
    batch_operation::Operation,
};

/// Inserts an entity.
pub fn insert_op(entity: Entity) -> Operation {
    let entity = Some(entity);
    Operation::Insert(BatchInsert { entity })
}

/// Updates an entity.
pub fn update_op(entity: Entity, mode: WriteMode, if_match: Option<&str>) -> Operation {
    Operation::Update(BatchUpdate {
        entity: Some(entity),
        mode: mode.into(),
        if_match: if_match.map(str::to_owned),
    })
}

/// Upserts an entity.
pub fn upsert_op(entity: Entity, mode: WriteMode) -> Operation {
    Operation::Upsert(BatchUpsert { entity: Some(entity), mode: mode.into() })
}

/// Deletes an entity.
pub fn delete_op(partition: &str, row: &str, if_match: Option<&str>) -> Operation {
    Operation::Delete(BatchDelete {
        partition_key: partition.to_owned(),
        row_key: row.to_owned(),
        if_match: if_match.map(str::to_owned),
    })
}
