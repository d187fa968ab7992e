//! What a write does to an entity: pure decisions from the stored entity and the request to the new entity.

use bytes::Bytes;
use trestle_service::{clock::Ticks, etag::Condition, fault::Violations, quota};

use crate::{
    authorize::Action,
    entity::{Entity, EntityKey},
    error::TableError,
    stored,
};

/// What a write does to an entity that is there already.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Replaces its properties.
    Replace,
    /// Sets the properties of the request, keeps the others.
    Merge,
}

/// An entity ready to be written: checked, and encoded ahead of the commit.
#[derive(Debug, Clone)]
pub struct Prepared {
    entity: Entity,
    body: Vec<u8>,
}

impl Prepared {
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

/// One write, as the client asked for it.
#[derive(Debug, Clone)]
pub enum Operation {
    /// The entity must not exist.
    Insert(Prepared),
    /// The entity must exist and fulfil a condition.
    Update {
        /// Its new properties.
        entity: Prepared,
        /// What happens to the stored properties.
        mode: Mode,
        /// What the stored entity must fulfil.
        condition: Condition,
    },
    /// The entity may exist.
    Upsert {
        /// Its properties.
        entity: Prepared,
        /// What happens to stored properties.
        mode: Mode,
    },
    /// The entity must exist and fulfil a condition.
    Delete {
        /// Its key.
        key: EntityKey,
        /// What the stored entity must fulfil.
        condition: Condition,
    },
}

/// What becomes of the stored entity.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Effect {
    /// It is now this.
    Put {
        /// The stored form.
        value: Bytes,
        /// Its version.
        written_at: Ticks,
    },
    /// It is gone.
    Delete,
}

impl Operation {
    /// The entity that is written.
    pub fn key(&self) -> &EntityKey {
        match self {
            Self::Insert(entity) | Self::Update { entity, .. } | Self::Upsert { entity, .. } => {
                &entity.entity.key
            }
            Self::Delete { key, .. } => key,
        }
    }

    /// What the write does, for the permissions that it needs.
    pub(crate) fn action(&self) -> Action {
        match self {
            Self::Insert(_) => Action::Insert,
            Self::Update { .. } => Action::Update,
            Self::Upsert { .. } => Action::Upsert,
            Self::Delete { .. } => Action::Delete,
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

    /// What it counts for in the limits of an account as far as the request tells, in tokens.
    pub fn weight(&self) -> u64 {
        quota::weight(self.bytes())
    }

    /// What it turned out to count for beyond its weight, in tokens: a merge also writes what it
    /// keeps, and a deletion removes more than the key that it names.
    pub(crate) fn debt(&self, stored: Option<&Bytes>, effect: &Effect) -> u64 {
        let bytes = match effect {
            Effect::Put { value, .. } => value.len(),
            Effect::Delete => stored.map_or(0, Bytes::len),
        };
        quota::weight(bytes).saturating_sub(self.weight())
    }

    /// Decides from the stored entity, if there is one, and the time of this write.
    ///
    /// Whether the entity exists is checked before its version.
    ///
    /// # Errors
    /// When the stored entity does not fulfil the operation, or a merge outgrows the limits of an entity.
    pub fn decide(&self, current: Option<&Bytes>, now: Ticks) -> Result<Effect, TableError> {
        let previous = current.map(|value| stored::written_at(value)).transpose()?;
        // A clock that was set back must not give an entity an older or equal version.
        let written_at = previous.map_or(now, |previous| now.max(previous.next()));
        match self {
            Self::Insert(entity) => match current {
                Some(_) => Err(TableError::EntityExists(self.key().clone())),
                None => Ok(put(&entity.body, written_at)),
            },
            Self::Update { entity, mode, condition } => {
                self.require(previous, *condition)?;
                write(entity, *mode, current, written_at)
            }
            Self::Upsert { entity, mode } => write(entity, *mode, current, written_at),
            Self::Delete { condition, .. } => {
                self.require(previous, *condition)?;
                Ok(Effect::Delete)
            }
        }
    }

    fn require(&self, previous: Option<Ticks>, condition: Condition) -> Result<(), TableError> {
        match (previous, condition) {
            (None, _) => Err(TableError::EntityNotFound(self.key().clone())),
            (Some(stored), Condition::Match(wanted)) if stored != wanted => {
                Err(TableError::ConditionNotMet(self.key().clone()))
            }
            (Some(_), _) => Ok(()),
        }
    }
}

fn write(
    update: &Prepared,
    mode: Mode,
    current: Option<&Bytes>,
    written_at: Ticks,
) -> Result<Effect, TableError> {
    match (mode, current) {
        (Mode::Replace, _) | (Mode::Merge, None) => Ok(put(&update.body, written_at)),
        (Mode::Merge, Some(value)) => {
            let merged = Entity::merge(stored::decode(value)?, update.entity.clone());
            let mut violations = Violations::default();
            let _noted = merged.check_limits("entity", &mut violations);
            let merged = violations.check(merged)?;
            Ok(put(&stored::encode_body(&merged), written_at))
        }
    }
}

fn put(body: &[u8], written_at: Ticks) -> Effect {
    Effect::Put { value: stored::seal(body, written_at), written_at }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::Value;

    const T1: u64 = 600_000_000_000_000_000;

    fn ticks(offset: u64) -> Ticks {
        Ticks::new(T1 + offset).expect("in range")
    }

    fn entity(properties: &[(&str, i32)]) -> Entity {
        let key = EntityKey { partition_key: "p".to_owned(), row_key: "r".to_owned() };
        let owned = |(name, number): &(&str, i32)| ((*name).to_owned(), Value::Int32(*number));
        Entity { key, properties: properties.iter().map(owned).collect() }
    }

    fn stored_at(offset: u64, properties: &[(&str, i32)]) -> Bytes {
        stored::seal(&stored::encode_body(&entity(properties)), ticks(offset))
    }

    fn request(properties: &[(&str, i32)]) -> Prepared {
        Prepared::new(entity(properties))
    }

    /// What became of an entity stored at tick 5 with `a` = 1 and `b` = 2, or of an absent one.
    fn outcome(operation: &Operation, exists: bool) -> Result<Option<Entity>, &'static str> {
        let current = exists.then(|| stored_at(5, &[("a", 1), ("b", 2)]));
        match operation.decide(current.as_ref(), ticks(9)) {
            Ok(Effect::Delete) => Ok(None),
            Ok(Effect::Put { value, written_at }) => {
                assert_eq!(written_at, ticks(9));
                assert_eq!(stored::written_at(&value), Ok(written_at));
                Ok(Some(stored::decode(&value).expect("readable")))
            }
            Err(TableError::EntityExists(_)) => Err("exists"),
            Err(TableError::EntityNotFound(_)) => Err("not found"),
            Err(TableError::ConditionNotMet(_)) => Err("condition"),
            Err(other) => panic!("unexpected: {other}"),
        }
    }

    #[test]
    fn every_operation_follows_the_table_of_conditions() {
        let new = || request(&[("b", 3)]);
        let replaced = || Ok(Some(entity(&[("b", 3)])));
        let merged = || Ok(Some(entity(&[("a", 1), ("b", 3)])));
        let (equal, stale) = (Condition::Match(ticks(5)), Condition::Match(ticks(4)));
        let update = |mode, condition| Operation::Update { entity: new(), mode, condition };
        let key = || entity(&[]).key;
        let delete = |condition| Operation::Delete { key: key(), condition };
        let upsert = |mode| Operation::Upsert { entity: new(), mode };

        let cases = [
            (Operation::Insert(new()), Err("exists"), replaced()),
            (update(Mode::Replace, equal), replaced(), Err("not found")),
            (update(Mode::Replace, stale), Err("condition"), Err("not found")),
            (update(Mode::Replace, Condition::Exists), replaced(), Err("not found")),
            (upsert(Mode::Replace), replaced(), replaced()),
            (update(Mode::Merge, equal), merged(), Err("not found")),
            (update(Mode::Merge, stale), Err("condition"), Err("not found")),
            (update(Mode::Merge, Condition::Exists), merged(), Err("not found")),
            (upsert(Mode::Merge), merged(), replaced()),
            (delete(equal), Ok(None), Err("not found")),
            (delete(stale), Err("condition"), Err("not found")),
            (delete(Condition::Exists), Ok(None), Err("not found")),
        ];

        for (operation, present, absent) in cases {
            assert_eq!(outcome(&operation, true), present, "present: {operation:?}");
            assert_eq!(outcome(&operation, false), absent, "absent: {operation:?}");
        }
    }

    #[test]
    fn a_write_is_newer_than_the_stored_entity_even_when_the_clock_is_not() {
        let current = stored_at(100, &[]);
        let upsert = Operation::Upsert { entity: request(&[]), mode: Mode::Replace };

        let effect = upsert.decide(Some(&current), ticks(7));

        assert!(matches!(effect, Ok(Effect::Put { written_at, .. }) if written_at == ticks(101)));
    }

    #[test]
    fn a_merge_that_outgrows_an_entity_is_refused() {
        let names: Vec<String> = (0..253).map(|index| format!("n{index:03}")).collect();
        let numbered = |range: std::ops::Range<usize>| -> Vec<(&str, i32)> {
            names.get(range).unwrap_or_default().iter().map(|name| (name.as_str(), 1)).collect()
        };
        let current = stored_at(1, &numbered(0..251));
        let merge =
            |range| Operation::Upsert { entity: request(&numbered(range)), mode: Mode::Merge };

        let at_the_bound = merge(251..252).decide(Some(&current), ticks(2));
        let past_it = merge(251..253).decide(Some(&current), ticks(2));

        assert!(at_the_bound.is_ok());
        let Err(TableError::Invalid(fault)) = past_it else { panic!("accepted") };
        assert_eq!(fault.reason, trestle_service::fault::Reason::TooManyProperties);
    }

    #[test]
    fn an_unreadable_entity_is_reported_and_not_overwritten() {
        let current = Bytes::from_static(b"\xFFgarbage");
        let upsert = Operation::Upsert { entity: request(&[]), mode: Mode::Replace };

        assert!(matches!(upsert.decide(Some(&current), ticks(1)), Err(TableError::Corrupt(_))));
    }
}
