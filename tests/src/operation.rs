//! Building the operations of a batch.

use trestle_proto::table::v1::{
    Entity, WriteMode,
    batch_operation::{Delete, Insert, Operation, Update, Upsert},
};

/// Inserts an entity.
pub fn insert_op(entity: Entity) -> Operation {
    let entity = Some(entity);
    Operation::Insert(Insert { entity })
}

/// Updates an entity.
pub fn update_op(entity: Entity, mode: WriteMode, if_match: Option<&str>) -> Operation {
    Operation::Update(Update {
        entity: Some(entity),
        mode: mode.into(),
        if_match: if_match.map(str::to_owned),
    })
}

/// Upserts an entity.
pub fn upsert_op(entity: Entity, mode: WriteMode) -> Operation {
    Operation::Upsert(Upsert { entity: Some(entity), mode: mode.into() })
}

/// Deletes an entity.
pub fn delete_op(partition: &str, row: &str, if_match: Option<&str>) -> Operation {
    Operation::Delete(Delete {
        partition_key: partition.to_owned(),
        row_key: row.to_owned(),
        if_match: if_match.map(str::to_owned),
    })
}
