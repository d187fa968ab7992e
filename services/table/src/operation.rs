//! Writes to one entity: the operation of a request, and its effect on the stored entity.

mod decide;
#[cfg(test)]
mod tests;

use bytes::Bytes;
use trestle_kv::Version;
use trestle_model::etag::Condition;
use trestle_rpc::quota;

use crate::{
    authorize::EntityAction,
    entity::{Entity, EntityKey},
    stored,
};

/// What a write does to an entity that exists.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WriteMode {
    /// Replaces its properties.
    Replace,
    /// Sets the properties of the request, keeps the others.
    Merge,
}

/// An entity ready to be written: checked, and encoded ahead of the commit.
#[derive(Debug, Clone)]
pub struct EncodedEntity {
    entity: Entity,
    body: Vec<u8>,
}

impl EncodedEntity {
    /// Encodes the entity.
    pub fn new(entity: Entity) -> Self {
        let body = stored::encode_body(&entity);
        Self { entity, body }
    }

    /// The size of the encoded entity, in bytes.
    pub fn bytes(&self) -> usize {
        self.body.len()
    }
}

/// One write of a request.
#[derive(Debug, Clone)]
pub enum EntityOperation {
    /// The entity must not exist.
    Insert(EncodedEntity),
    /// The entity must exist and fulfil a condition.
    Update {
        /// Its new properties.
        entity: EncodedEntity,
        /// What happens to the stored properties.
        mode: WriteMode,
        /// What the stored entity must fulfil.
        condition: Condition,
    },
    /// The entity may exist.
    Upsert {
        /// Its properties.
        entity: EncodedEntity,
        /// What happens to stored properties.
        mode: WriteMode,
    },
    /// The entity must exist and fulfil a condition.
    Delete {
        /// Its key.
        key: EntityKey,
        /// What the stored entity must fulfil.
        condition: Condition,
    },
}

/// The new state of the stored entity.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EntityEffect {
    /// It is created or replaced.
    Put {
        /// The stored form.
        value: Bytes,
        /// Its version.
        version: Version,
    },
    /// It is deleted.
    Delete,
}

impl EntityEffect {
    /// The stored form of the entity afterwards; none where it is deleted.
    pub(crate) fn value(&self) -> Option<&Bytes> {
        match self {
            Self::Put { value, .. } => Some(value),
            Self::Delete => None,
        }
    }
}

impl EntityOperation {
    /// Whether it only removes.
    pub(crate) fn is_delete(&self) -> bool {
        matches!(self, Self::Delete { .. })
    }

    /// The entity that is written.
    pub fn key(&self) -> &EntityKey {
        match self {
            Self::Insert(entity) | Self::Update { entity, .. } | Self::Upsert { entity, .. } => {
                &entity.entity.key
            }
            Self::Delete { key, .. } => key,
        }
    }

    /// The action, which determines the permissions that it needs.
    pub(crate) fn action(&self) -> EntityAction {
        match self {
            Self::Insert(_) => EntityAction::Insert,
            Self::Update { .. } => EntityAction::Update,
            Self::Upsert { .. } => EntityAction::Upsert,
            Self::Delete { .. } => EntityAction::Delete,
        }
    }

    /// The size of what the request carries, in bytes.
    pub fn bytes(&self) -> usize {
        match self {
            Self::Insert(entity) | Self::Update { entity, .. } | Self::Upsert { entity, .. } => {
                entity.bytes()
            }
            Self::Delete { key, .. } => key.partition_key.len() + key.row_key.len(),
        }
    }

    /// The cost of the request in tokens, before the stored entity is read.
    pub fn weight(&self) -> u64 {
        quota::weight(self.bytes())
    }

    /// The cost beyond [`EntityOperation::weight`], in tokens: a merge also writes the properties it keeps, and a
    /// deletion removes more than the key in the request.
    pub(crate) fn extra_weight(&self, stored: Option<&Bytes>, effect: &EntityEffect) -> u64 {
        let bytes = match effect {
            EntityEffect::Put { value, .. } => value.len(),
            EntityEffect::Delete => stored.map_or(0, Bytes::len),
        };
        quota::weight(bytes).saturating_sub(self.weight())
    }
}
