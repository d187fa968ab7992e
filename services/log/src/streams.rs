//! The streams of every account: creating, finding, changing, listing and deleting them.

mod change;
mod list;
#[cfg(test)]
mod tests;
mod usage;

use std::sync::Arc;

use trestle_kv::{Engine, Entry};
use trestle_model::name::AccountName;
use trestle_rpc::quota::StorageQuotas;

pub(crate) use self::{
    change::StreamSettingsChange,
    list::{LIST_BYTES_MAX, ListStreams, from_token},
};
use crate::{
    error::LogError,
    keys,
    names::StreamName,
    stored::StoredForm as _,
    stream::{Head, StreamId, StreamRecord},
};

/// A stream as a call found it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct OpenStream {
    /// The account.
    pub(crate) account: AccountName,
    /// Its name.
    pub(crate) name: StreamName,
    /// Its id and its settings.
    pub(crate) record: StreamRecord,
}

impl OpenStream {
    /// The stream that a record is of.
    pub(crate) fn of(account: &AccountName, name: &StreamName, record: StreamRecord) -> Arc<Self> {
        Arc::new(Self { account: account.clone(), name: name.clone(), record })
    }

    /// The stream of a row.
    ///
    /// # Errors
    /// [`LogError::Corrupt`].
    pub(crate) fn from_row(row: &Entry) -> Result<Arc<Self>, LogError> {
        let (account, name) = keys::stream_name_of(&row.key)?;
        let account = AccountName::parse(&account);
        let account = account.ok_or_else(|| LogError::corrupt("key of a stream"))?;
        let record = StreamRecord::decode(&row.value)?;
        Ok(Arc::new(Self { account, name, record }))
    }
}

/// The streams of every account.
#[derive(Clone)]
pub(crate) struct Streams {
    engine: Arc<dyn Engine>,
    /// Generates ids of streams.
    random: fn() -> u128,
    storage: StorageQuotas,
}

impl Streams {
    /// Works on `engine`.
    pub(crate) fn new(engine: Arc<dyn Engine>, random: fn() -> u128) -> Self {
        Self { engine, random, storage: StorageQuotas::default() }
    }

    /// With quotas of accounts on what they store.
    pub(crate) fn with_quotas(self, storage: StorageQuotas) -> Self {
        Self { storage, ..self }
    }

    /// A stream by its name.
    ///
    /// # Errors
    /// [`LogError::StreamNotFound`], or a failed read.
    pub(crate) async fn open(
        &self,
        account: &AccountName,
        name: &StreamName,
    ) -> Result<StreamRecord, LogError> {
        let found = self.find(account, name).await?;
        found.ok_or_else(|| LogError::StreamNotFound(name.clone()))
    }

    /// A stream by its name, if it exists.
    ///
    /// # Errors
    /// A failed read.
    pub(crate) async fn find(
        &self,
        account: &AccountName,
        name: &StreamName,
    ) -> Result<Option<StreamRecord>, LogError> {
        let value = self.engine.get(&keys::stream(account, name)).await?;
        value.map(|value| StreamRecord::decode(&value)).transpose()
    }

    /// The position of a stream; none where it was deleted.
    ///
    /// # Errors
    /// A failed read.
    pub(crate) async fn head(&self, id: StreamId) -> Result<Option<Head>, LogError> {
        let value = self.engine.get(&keys::head(id)).await?;
        value.map(|value| Head::decode(&value)).transpose()
    }
}
