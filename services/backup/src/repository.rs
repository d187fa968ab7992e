//! The place that the backups of one store are in.
//!
//! ```text
//! trestle-backup                 the format, the store, and the keys of encryption, JSON
//! backups/ID.manifest            a backup; written last
//! parts/ab/NAME                  runs of rows, lists, and pieces of the objects of the data directory
//! running/ID, pruning/ID         who works here
//! ended/ID                       who does no longer, where deletes are refused
//! ```
//!
//! Nothing is written twice, so the place may refuse to replace and to delete. Only `prune` deletes, and `running`
//! entries are deleted by who wrote them, if that is permitted.

mod entries;
mod marker;

use std::{
    collections::{BTreeSet, HashSet},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
};

use bytes::Bytes;
use futures::TryStreamExt as _;
use object_store::{
    Error, ObjectMeta, ObjectStoreExt as _, PutMode, PutOptions, PutPayload, path::Path,
};
use trestle_command::errors::CliError;
use trestle_kv::Keyspace;
use trestle_objects::CopyTarget;

pub(crate) use self::entries::{ENTRY_LASTS, PRUNING, RUNNING};
use crate::{
    manifest::BackupManifest,
    names::{PARTS, PartName},
    packed::{self, STORED_BYTES_MAX, UnreadablePart},
    sealed::{self, Identities, SealError},
    window::{CHANGES, WindowName},
};

const BACKUPS: &str = "backups";
const SUFFIX: &str = ".manifest";

/// The place.
pub(crate) struct Repository {
    target: CopyTarget,
    /// As it was given, for messages.
    pub(crate) text: String,
    /// What opens encrypted parts.
    keys: Option<Arc<Identities>>,
    /// The store whose backups are here, if the mark of the place can be read.
    store_id: Option<String>,
    /// Whether the backup that is read is encrypted.
    is_sealed: AtomicBool,
    /// The names of the parts that are known to be there, by half of each.
    known: Mutex<HashSet<u128>>,
    /// The directories of what was written.
    written: Mutex<BTreeSet<String>>,
}

/// A part cannot be read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PartError {
    /// It is not there.
    #[error("it is missing")]
    Missing,
    /// It is not what was written.
    #[error(transparent)]
    UnreadablePart(#[from] UnreadablePart),
    /// It cannot be opened.
    #[error(transparent)]
    SealError(#[from] SealError),
    /// It is not, and the backup is: another one wrote it.
    #[error("it is not encrypted, and the backup is")]
    Plain,
    /// It is encrypted, and there are no keys.
    #[error("it is encrypted, give the file of its key by --decrypt")]
    NoKey,
    /// The place cannot be read.
    #[error("{0}")]
    Store(Error),
}

impl Repository {
    fn of(target: CopyTarget, text: &str, keys: Option<Identities>) -> Self {
        Self {
            target,
            text: text.to_owned(),
            keys: keys.map(Arc::new),
            store_id: None,
            is_sealed: AtomicBool::new(false),
            known: Mutex::default(),
            written: Mutex::default(),
        }
    }

    /// Looks what is there, so that it is not sent again.
    ///
    /// # Errors
    /// The place cannot be read.
    pub(crate) async fn look(&self) -> Result<(), CliError> {
        let mut found = self.target.store.list(Some(&Path::from(PARTS)));
        while let Some(part) = found.try_next().await.map_err(|error| self.failed(&error))? {
            if part.size > 0 {
                self.note(part.location.as_ref());
            }
        }
        Ok(())
    }

    /// Whether a part is known to be there.
    pub(crate) fn has(&self, name: PartName) -> bool {
        let has = self.known.lock().is_ok_and(|known| known.contains(&name.mark()));
        if has {
            // Its name may not be durable: who wrote it may have been killed.
            self.note_directory(&name.path());
        }
        has
    }

    fn note_directory(&self, path: &str) {
        if let (Ok(mut written), Some((directory, _))) =
            (self.written.lock(), path.rsplit_once('/'))
        {
            written.insert(directory.to_owned());
        }
    }

    fn note(&self, path: &str) {
        if let (Ok(mut known), Some(name)) = (self.known.lock(), PartName::of_path(path)) {
            known.insert(name.mark());
        }
    }

    /// Writes a part, unless it is there.
    ///
    /// # Errors
    /// The place rejects it.
    pub(crate) async fn put(&self, path: &str, part: Vec<u8>) -> Result<(), CliError> {
        let location = Path::parse(path).map_err(|error| self.failed(&error.into()))?;
        let payload = PutPayload::from(part);
        let options = |mode| PutOptions { mode, ..PutOptions::default() };
        let put = self.target.store.put_opts(&location, payload.clone(), options(PutMode::Create));
        let put = match put.await {
            // Some stores have no conditions. What has the name already is equal: names are not used twice.
            Err(Error::NotImplemented { .. } | Error::NotSupported { .. }) => {
                self.target.store.put_opts(&location, payload, options(PutMode::Overwrite)).await
            }
            put => put,
        };
        match put {
            Ok(_) | Err(Error::AlreadyExists { .. } | Error::Precondition { .. }) => {
                self.note(path);
                self.note_directory(path);
                Ok(())
            }
            Err(error) => Err(self.failed(&error)),
        }
    }

    async fn get(&self, path: &str) -> Result<Option<Bytes>, Error> {
        let found = async {
            let found = self.target.store.get(&Path::parse(path)?).await?;
            match found.meta.size <= STORED_BYTES_MAX {
                true => found.bytes().await,
                // No part: what is read of it is rejected.
                false => Ok(Bytes::new()),
            }
        };
        match found.await {
            Err(Error::NotFound { .. }) => Ok(None),
            found => found.map(Some),
        }
    }

    /// The plain bytes of a part that is never encrypted.
    ///
    /// # Errors
    /// Every kind of [`PartError`].
    pub(crate) async fn read(&self, path: &str) -> Result<Vec<u8>, PartError> {
        self.read_as(path, false).await
    }

    /// The plain bytes of a part that is encrypted if the backup is.
    ///
    /// # Errors
    /// Every kind of [`PartError`].
    pub(crate) async fn read_sealed(&self, path: &str) -> Result<Vec<u8>, PartError> {
        self.read_as(path, self.is_sealed.load(Relaxed)).await
    }

    async fn read_as(&self, path: &str, is_sealed: bool) -> Result<Vec<u8>, PartError> {
        let stored = self.get(path).await.map_err(PartError::Store)?.ok_or(PartError::Missing)?;
        let (owned, keys) = (path.to_owned(), self.keys.clone());
        let opened = move || {
            if is_sealed && !sealed::is_sealed(&stored) {
                return Err(PartError::Plain);
            }
            if !sealed::is_sealed(&stored) {
                return Ok(packed::unpack(&owned, &stored)?);
            }
            let packed = keys.ok_or(PartError::NoKey)?.open(&stored)?;
            Ok(packed::unpack(&owned, &packed)?)
        };
        // Megabytes of it, so that parts are opened beside each other.
        let opened = tokio::task::spawn_blocking(opened).await;
        opened.map_err(|error| PartError::Store(Error::JoinError { source: error })).flatten()
    }

    /// Reads the parts of a backup from now on: where it is encrypted, parts that are not are none of it.
    ///
    /// # Errors
    /// A backup that is encrypted for others.
    pub(crate) fn unlock(&self, manifest: &BackupManifest) -> Result<(), CliError> {
        let (recipients, id) = (&manifest.recipients, &manifest.id);
        self.is_sealed.store(!recipients.is_empty(), Relaxed);
        let rule = match &self.keys {
            _ if recipients.is_empty() => return Ok(()),
            Some(keys) if keys.include(recipients) => return Ok(()),
            Some(_) => "is encrypted for other keys than those of --decrypt",
            None => "is encrypted, give the file of its key by --decrypt",
        };
        let recipients: Vec<_> = recipients.iter().map(String::as_str).collect();
        let recipients = recipients.join(" ");
        Err(CliError::Usage(format!("the backup {rule}: id=`{id}`, keys=`{recipients}`")))
    }

    /// Makes all that was written durable.
    ///
    /// # Errors
    /// The file system of the place.
    pub(crate) async fn sync(&self) -> Result<(), CliError> {
        let target = self.target.clone();
        let written = self.written.lock().map(|mut written| std::mem::take(&mut *written));
        let written = written.unwrap_or_default();
        let synced = tokio::task::spawn_blocking(move || target.sync(&written)).await;
        let synced = synced.map_err(std::io::Error::other).flatten();
        synced.map_err(CliError::file(format!("cannot sync the target `{}`", self.text)))
    }

    /// The ids of the backups, oldest first.
    ///
    /// # Errors
    /// The place cannot be read.
    pub(crate) async fn backups(&self) -> Result<Vec<String>, CliError> {
        let found = self.list(BACKUPS).await?;
        let mut ids: Vec<_> = found.iter().filter_map(|it| backup_of(&it.location)).collect();
        ids.sort_unstable();
        Ok(ids)
    }

    /// The id that was given; without one, that of the newest backup.
    ///
    /// # Errors
    /// No such backup.
    pub(crate) async fn id(&self, given: Option<&str>) -> Result<String, CliError> {
        let mut ids = self.backups().await?;
        let found = match given {
            Some(given) => ids.into_iter().find(|id| id == given),
            None => ids.pop(),
        };
        let what = given.map_or_else(String::new, |id| format!(", id=`{id}`"));
        found
            .ok_or_else(|| CliError::Usage(format!("no such backup: target=`{}`{what}", self.text)))
    }

    /// A manifest.
    ///
    /// # Errors
    /// One that cannot be read.
    pub(crate) async fn manifest(&self, id: &str) -> Result<BackupManifest, String> {
        let text = self.read(&manifest_path(id)).await;
        let text = text.map_err(|error| format!("the manifest cannot be read: {error}"))?;
        let manifest = BackupManifest::parse(&text)?;
        if manifest.id != id {
            return Err(format!("the manifest is that of another backup: id=`{}`", manifest.id));
        }
        match self.store_id.as_ref().is_none_or(|store_id| *store_id == manifest.store_id) {
            true => Ok(manifest),
            false => {
                let found = &manifest.store_id;
                Err(format!("the manifest is that of another data directory: store_id=`{found}`"))
            }
        }
    }

    /// A manifest, for a command that cannot do without.
    ///
    /// # Errors
    /// One that cannot be read.
    pub(crate) async fn required_manifest(&self, id: &str) -> Result<BackupManifest, CliError> {
        self.manifest(id).await.map_err(|reason| CliError::Source {
            text: format!("the backup cannot be read: id=`{id}`: {reason}"),
            busy: false,
        })
    }

    /// The backup of an id, or without one the newest, to read its parts from now on.
    ///
    /// # Errors
    /// No such backup, one that cannot be read, or what [`Repository::use_backup`] rejects.
    pub(crate) async fn open_backup(
        &self,
        id: Option<&str>,
        keyspaces: &[Keyspace],
    ) -> Result<BackupManifest, CliError> {
        let id = self.id(id).await?;
        let manifest = self.required_manifest(&id).await?;
        self.use_backup(&manifest, keyspaces)?;
        Ok(manifest)
    }

    /// Reads the parts of a backup from now on.
    ///
    /// # Errors
    /// One that is encrypted for others, or has a keyspace that this version does not have.
    pub(crate) fn use_backup(
        &self,
        manifest: &BackupManifest,
        keyspaces: &[Keyspace],
    ) -> Result<(), CliError> {
        self.unlock(manifest)?;
        manifest.check_keyspaces(keyspaces).map_err(CliError::Usage)
    }

    /// The names of the windows of changes.
    ///
    /// # Errors
    /// The place cannot be read.
    pub(crate) async fn windows(&self) -> Result<Vec<WindowName>, CliError> {
        self.windows_below(CHANGES, 0).await
    }

    /// The names of the windows of a line from a number on.
    ///
    /// # Errors
    /// The place cannot be read.
    pub(crate) async fn windows_of(
        &self,
        line: &str,
        from: u64,
    ) -> Result<Vec<WindowName>, CliError> {
        self.windows_below(&format!("{CHANGES}/{line}"), from).await
    }

    async fn windows_below(&self, prefix: &str, from: u64) -> Result<Vec<WindowName>, CliError> {
        let mut found = self.target.store.list(Some(&Path::from(prefix)));
        let mut names = Vec::new();
        while let Some(file) = found.try_next().await.map_err(|error| self.failed(&error))? {
            let name = WindowName::of_path(file.location.as_ref());
            names.extend(name.filter(|name| name.seq >= from));
        }
        Ok(names)
    }

    /// What is below a prefix.
    ///
    /// # Errors
    /// The place cannot be read.
    pub(crate) async fn list(&self, prefix: &str) -> Result<Vec<ObjectMeta>, CliError> {
        let found = self.target.store.list(Some(&Path::from(prefix)));
        found.try_collect().await.map_err(|error| self.failed(&error))
    }

    /// Deletes a part; an absent one is not an error.
    ///
    /// # Errors
    /// The place refuses.
    pub(crate) async fn delete(&self, path: &Path) -> Result<(), CliError> {
        match self.target.store.delete(path).await {
            Ok(()) | Err(Error::NotFound { .. }) => Ok(()),
            Err(error) => Err(self.failed(&error)),
        }
    }

    /// The error of a command for one of the place.
    pub(crate) fn failed(&self, error: &Error) -> CliError {
        let busy = !matches!(
            error,
            Error::PermissionDenied { .. }
                | Error::Unauthenticated { .. }
                | Error::InvalidPath { .. }
        );
        CliError::Source { text: format!("the target `{}` failed: {error}", self.text), busy }
    }
}

/// The path of a manifest.
pub(crate) fn manifest_path(id: &str) -> String {
    format!("{BACKUPS}/{id}{SUFFIX}")
}

fn backup_of(path: &Path) -> Option<String> {
    path.filename()?.strip_suffix(SUFFIX).map(str::to_owned)
}

#[cfg(test)]
mod tests;
