//! Creating, changing and deleting streams.

use std::{collections::BTreeMap, time::Duration};

use trestle_kv::{ChangeSpec, Lock, Writes, count, transact};
use trestle_model::name::AccountName;
use trestle_rpc::quota::StorageLimit;

use super::Streams;
use crate::{
    error::LogError,
    keys,
    names::StreamName,
    stored::StoredForm as _,
    stream::{Head, PromotedAttribute, RollPolicy, StreamId, StreamRecord, StreamSettings},
};

/// Most tries to find an id that no stream has.
const ID_TRIES_MAX: usize = 3;

/// What a call changes of the settings; what is none stays.
#[derive(Debug, Clone, Default)]
pub(crate) struct StreamSettingsChange {
    /// The labels.
    pub(crate) labels: Option<BTreeMap<String, String>>,
    /// The retention; none within: records are kept.
    pub(crate) retention: Option<Option<Duration>>,
    /// When records are sealed.
    pub(crate) roll: Option<RollPolicy>,
    /// Attributes with a column of their own.
    pub(crate) promoted: Option<Vec<PromotedAttribute>>,
}

impl StreamSettingsChange {
    fn apply(&self, settings: &mut StreamSettings) {
        let Self { labels, retention, roll, promoted } = self;
        if let Some(labels) = labels {
            settings.labels.clone_from(labels);
        }
        if let Some(retention) = retention {
            settings.retention = *retention;
        }
        if let Some(roll) = roll {
            settings.roll = *roll;
        }
        if let Some(promoted) = promoted {
            settings.promoted.clone_from(promoted);
        }
    }
}

/// Whether a retention is shorter than another; none: records are kept.
fn is_shorter(retention: Option<Duration>, than: Option<Duration>) -> bool {
    match (retention, than) {
        (Some(retention), Some(than)) => retention < than,
        (retention, None) => retention.is_some(),
        (None, Some(_)) => false,
    }
}

impl Streams {
    /// Creates a stream, unless it exists with the same settings. Returns it, and whether it was created.
    ///
    /// # Errors
    /// [`LogError::StreamExists`], or a failed commit.
    pub(crate) async fn create(
        &self,
        account: &AccountName,
        name: &StreamName,
        settings: StreamSettings,
    ) -> Result<(StreamRecord, bool), LogError> {
        let (record, is_new) = self.ensure(account, name, &settings).await?;
        match is_new || record.settings == settings {
            true => Ok((record, is_new)),
            false => Err(LogError::StreamExists(name.clone())),
        }
    }

    /// The stream of this name, created with these settings where there is none. Returns it, and whether it
    /// was created.
    ///
    /// # Errors
    /// A used quota, or a failed commit.
    pub(crate) async fn ensure(
        &self,
        account: &AccountName,
        name: &StreamName,
        settings: &StreamSettings,
    ) -> Result<(StreamRecord, bool), LogError> {
        for _ in 0..ID_TRIES_MAX {
            #[expect(clippy::cast_possible_truncation, reason = "any 64 of the random bits")]
            let id = StreamId((self.random)() as u64);
            if let Some(created) = self.try_create(account, name, settings.clone(), id).await? {
                return Ok(created);
            }
        }
        Err(LogError::KeepsChanging(name.clone()))
    }

    /// None where the id is in use.
    async fn try_create(
        &self,
        account: &AccountName,
        name: &StreamName,
        settings: StreamSettings,
        id: StreamId,
    ) -> Result<Option<(StreamRecord, bool)>, LogError> {
        let count = |streams_max| count(&*self.engine, keys::streams(account, ""), streams_max);
        let room = self.storage.room(account, StorageLimit::Streams, count).await?;
        let full = room.full();
        let (key, deleted) = (keys::stream(account, name), keys::deleted_stream(id));
        let mut spec = ChangeSpec::new(keys::own_domain(&key));
        spec.also(keys::stream_domain(id), Lock::Exclusive);
        spec.also(keys::own_domain(&deleted), Lock::Shared);
        let existing = spec.read(key);
        let (head, deleted) = (spec.read(keys::head(id)), spec.read(deleted));
        transact(&*self.engine, spec, move |reads, version| {
            if let Some(value) = reads.get(existing) {
                let existing = StreamRecord::decode(value)?;
                return Ok((Writes::new(), Some((existing, false))));
            }
            if let Some(full) = &full {
                return Err(full.rejected().into());
            }
            if reads.get(head).is_some() || reads.get(deleted).is_some() {
                return Ok((Writes::new(), None));
            }
            let created_at = version.ticks();
            let record = StreamRecord::new(id, created_at, settings.clone());
            let mut writes = Writes::new();
            writes.put(reads.key(existing).clone(), record.encode());
            writes.put(reads.key(head).clone(), Head::default().encode());
            Ok((writes, Some((record, true))))
        })
        .await?
    }

    /// Changes settings of a stream. Returns it as it is then.
    ///
    /// # Errors
    /// [`LogError::StreamNotFound`], or a failed commit.
    pub(crate) async fn update(
        &self,
        account: &AccountName,
        name: &StreamName,
        change: StreamSettingsChange,
    ) -> Result<StreamRecord, LogError> {
        let key = keys::stream(account, name);
        let mut spec = ChangeSpec::new(keys::own_domain(&key));
        let (stored, name) = (spec.read(key), name.clone());
        transact(&*self.engine, spec, move |reads, _| {
            let not_found = || LogError::StreamNotFound(name.clone());
            let mut record = StreamRecord::decode(reads.get(stored).ok_or_else(not_found)?)?;
            let before = record.settings.retention;
            change.apply(&mut record.settings);
            record.name_columns();
            let mut writes = Writes::new();
            if is_shorter(record.settings.retention, before) {
                // It removes segments, so it is to be accepted while disk space is short.
                writes.delete(reads.key(stored).clone());
            }
            writes.put(reads.key(stored).clone(), record.encode());
            Ok((writes, record))
        })
        .await?
    }

    /// Deletes a stream. The sweeper deletes its rows and objects later. Returns its id.
    ///
    /// # Errors
    /// [`LogError::StreamNotFound`], or a failed commit.
    pub(crate) async fn delete(
        &self,
        account: &AccountName,
        name: &StreamName,
    ) -> Result<StreamId, LogError> {
        let not_found = || LogError::StreamNotFound(name.clone());
        let id = self.find(account, name).await?.ok_or_else(not_found)?.id;
        let (key, deleted) = (keys::stream(account, name), keys::deleted_stream(id));
        let mut spec = ChangeSpec::new(keys::own_domain(&key));
        spec.also(keys::stream_domain(id), Lock::Exclusive);
        spec.also(keys::own_domain(&deleted), Lock::Exclusive);
        let (stored, name) = (spec.read(key), name.clone());
        transact(&*self.engine, spec, move |reads, version| {
            let not_found = || LogError::StreamNotFound(name.clone());
            let record = StreamRecord::decode(reads.get(stored).ok_or_else(not_found)?)?;
            // Deleted and created again meanwhile: the call is about the first.
            if record.id != id {
                return Err(not_found());
            }
            let mut writes = Writes::new();
            writes.delete(reads.key(stored).clone()).delete(keys::head(id));
            writes.put(deleted.clone(), keys::encode_ticks(version.ticks()));
            Ok((writes, id))
        })
        .await?
    }
}
