//! Sends parts of a backup.

use std::{
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
};

use futures::TryStreamExt as _;
use trestle_command::errors::CliError;

use crate::{
    failure::broken,
    known_targets::KnownTargets,
    lists::{CutList, Listed, Lister},
    manifest::ListRef,
    names::{NameKey, PartName},
    packed,
    repository::Repository,
    rules::DataDirectory,
    sealed::Recipients,
    throttle::ReadThrottle,
};

/// How rows are compressed: what zstd itself has as its default.
pub(crate) const LEVEL: i32 = 3;

/// What a backup is made with.
pub(crate) struct BackupWriter {
    pub(crate) repository: Repository,
    pub(crate) names: Arc<NameKey>,
    pub(crate) throttle: ReadThrottle,
    pub(crate) recipients: Option<Arc<Recipients>>,
    pub(crate) parts: AtomicU64,
    pub(crate) bytes: AtomicU64,
}

impl BackupWriter {
    /// Prepares a target for the backups of a data directory, encrypted for the keys in a file if there is one, and
    /// read at a rate, in bytes a second, if one is given and not 0.
    ///
    /// # Errors
    /// A target of something else, and files that cannot be used.
    pub(crate) async fn open(
        store: &DataDirectory,
        target: &str,
        encrypt: Option<PathBuf>,
        max_rate: Option<u64>,
    ) -> Result<Self, CliError> {
        let store_id = (store.rules.store_id)(&store.path);
        let store_id =
            store_id.map_err(CliError::file("cannot use the id of the data directory"))?;
        let recipients = Recipients::read_if_named(encrypt).await?;
        let failed = || CliError::file("cannot use the targets that the data directory had");
        let known = KnownTargets::of(&store.path).map_err(failed())?;
        if known.has(target).map_err(failed())? && !Repository::is_marked(target).await? {
            let text = KnownTargets::problem(&store.path, target);
            return Err(CliError::Source { text, busy: false });
        }
        let repository = Repository::create(target, &store_id, recipients.as_ref()).await?;
        known.note(&store.path, target).map_err(failed())?;
        let names = NameKey::of(&store.path);
        let names = names.map_err(CliError::file("cannot use the key of the names of backups"))?;
        Ok(Self {
            repository,
            names: Arc::new(names),
            recipients: recipients.map(Arc::new),
            throttle: ReadThrottle::new(max_rate.filter(|rate| *rate > 0)),
            parts: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
        })
    }

    /// Sends a part, encrypted if the backup is, unless it is there.
    ///
    /// # Errors
    /// The target.
    pub(crate) async fn send(
        &self,
        name: PartName,
        plain: Vec<u8>,
        level: i32,
    ) -> Result<(), CliError> {
        self.send_for(self.recipients.clone(), name, plain, level).await
    }

    async fn send_for(
        &self,
        recipients: Option<Arc<Recipients>>,
        name: PartName,
        plain: Vec<u8>,
        level: i32,
    ) -> Result<(), CliError> {
        match self.repository.has(name) {
            true => Ok(()),
            false => self.put(recipients, name.path(), plain, level).await,
        }
    }

    /// Sends the changes of a window, encrypted if the backups are.
    ///
    /// # Errors
    /// The target.
    pub(crate) async fn send_window(&self, path: String, plain: Vec<u8>) -> Result<(), CliError> {
        self.put(self.recipients.clone(), path, plain, LEVEL).await
    }

    /// Sends names of parts to a path, which are never encrypted.
    ///
    /// # Errors
    /// The target.
    pub(crate) async fn send_names(&self, path: String, names: Vec<u8>) -> Result<(), CliError> {
        self.put(None, path, names, 0).await
    }

    async fn put(
        &self,
        recipients: Option<Arc<Recipients>>,
        path: String,
        plain: Vec<u8>,
        level: i32,
    ) -> Result<(), CliError> {
        let to = path.clone();
        let pack = move || {
            let packed = packed::pack(&path, &plain, level);
            match recipients {
                Some(recipients) => recipients.seal(&packed),
                None => Ok(packed),
            }
        };
        let packed = tokio::task::spawn_blocking(pack).await.map_err(|error| broken(&error))?;
        let packed = packed.map_err(|error| broken(&error))?;
        self.parts.fetch_add(1, Relaxed);
        self.bytes.fetch_add(packed.len() as u64, Relaxed);
        self.repository.put(&to, packed).await
    }

    /// Sends a part that is named by what it contains.
    ///
    /// # Errors
    /// The target.
    pub(crate) async fn send_content(&self, plain: Vec<u8>) -> Result<PartName, CliError> {
        let (name, plain) = self.named(plain).await?;
        self.send(name, plain, LEVEL).await?;
        Ok(name)
    }

    async fn send_list(&self, cut: CutList) -> Result<ListRef, CliError> {
        let list = self.send_content(cut.list).await?;
        let (parts, names) = self.named(cut.parts).await?;
        self.send_for(None, parts, names, 0).await?;
        Ok(ListRef { list, parts })
    }

    async fn named(&self, plain: Vec<u8>) -> Result<(PartName, Vec<u8>), CliError> {
        let names = Arc::clone(&self.names);
        let name = move || (names.of_content(&plain), plain);
        tokio::task::spawn_blocking(name).await.map_err(|error| broken(&error))
    }
}

/// Sends entries in lists.
pub(crate) async fn send_lists<E: Listed>(
    writer: &BackupWriter,
    entries: impl futures::Stream<Item = Result<E, CliError>>,
) -> Result<Vec<ListRef>, CliError> {
    let (mut lister, mut lists) = (Lister::new(), Vec::new());
    let mut entries = std::pin::pin!(entries);
    while let Some(entry) = entries.try_next().await? {
        if let Some(list) = lister.push(entry) {
            lists.push(writer.send_list(list).await?);
        }
    }
    if let Some(list) = lister.finish() {
        lists.push(writer.send_list(list).await?);
    }
    Ok(lists)
}
