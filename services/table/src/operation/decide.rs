//! Pure decisions: from the stored entity and the operation to the effect.

use bytes::Bytes;
use trestle_kv::Version;
use trestle_model::{etag::Condition, fault::Violations, time::Ticks};

use super::{EncodedEntity, EntityEffect, EntityOperation, WriteMode};
use crate::{entity::Entity, error::TableError, stored};

impl EntityOperation {
    /// Decides from the stored entity, if one exists, and the version of this write, which is greater than any before.
    ///
    /// Whether the entity exists is checked before its version.
    ///
    /// # Errors
    /// When the stored entity does not satisfy the operation, or the result of a merge exceeds the limits of an entity.
    pub fn decide(
        &self,
        current: Option<&Bytes>,
        version: Version,
    ) -> Result<EntityEffect, TableError> {
        let previous = current.map(|value| stored::written_at(value)).transpose()?;
        match self {
            Self::Insert(entity) => match current {
                Some(_) => Err(TableError::EntityExists(self.key().clone())),
                None => Ok(put(&entity.body, version)),
            },
            Self::Update { entity, mode, condition } => {
                self.require(previous, *condition)?;
                write(entity, *mode, current, version)
            }
            Self::Upsert { entity, mode } => write(entity, *mode, current, version),
            Self::Delete { condition, .. } => {
                self.require(previous, *condition)?;
                Ok(EntityEffect::Delete)
            }
        }
    }

    fn require(&self, previous: Option<Ticks>, condition: Condition) -> Result<(), TableError> {
        match (previous, condition) {
            (None, _) => Err(TableError::EntityNotFound(self.key().clone())),
            (Some(_), Condition::Exists) => Ok(()),
            (Some(stored), Condition::Match(expected)) if stored == expected => Ok(()),
            (Some(_), Condition::Match(_) | Condition::Foreign) => {
                Err(TableError::ConditionNotMet(self.key().clone()))
            }
        }
    }
}

fn write(
    update: &EncodedEntity,
    mode: WriteMode,
    current: Option<&Bytes>,
    version: Version,
) -> Result<EntityEffect, TableError> {
    match (mode, current) {
        (WriteMode::Replace, _) | (WriteMode::Merge, None) => Ok(put(&update.body, version)),
        (WriteMode::Merge, Some(value)) => {
            let merged = Entity::merge(stored::decode(value)?, update.entity.clone());
            let mut violations = Violations::default();
            let _broken = merged.check_limits("entity", &mut violations);
            let merged = violations.check(merged)?;
            Ok(put(&stored::encode_body(&merged), version))
        }
    }
}

fn put(body: &[u8], version: Version) -> EntityEffect {
    EntityEffect::Put { value: stored::seal(body, version.ticks()), version }
}
