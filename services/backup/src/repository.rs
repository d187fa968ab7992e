//! The place that the backups of one store are in.
//!
//! ```text
//! trestle-backup                 the format and the store, JSON
//! backups/ID.manifest            a backup; written last
//! chunks/ab/NAME                 runs of rows, and lists
//! objects/AREA/ab/PATH-N         pieces of the objects of the data directory
//! running/ID, pruning/ID         who works here
//! ended/ID                       who does no longer, where deletes are refused
//! ```
//!
//! Nothing is written twice, so the place may refuse to replace and to delete. Only `prune` deletes, and `running`
//! entries are deleted by who wrote them, if that is permitted.

use std::{
    collections::{BTreeSet, HashSet},
    sync::Mutex,
    time::Duration,
};

use bytes::Bytes;
use futures::TryStreamExt as _;
use object_store::{
    Error, ObjectMeta, ObjectStoreExt as _, PutMode, PutOptions, PutPayload, path::Path,
};
use ring::digest::{SHA256, digest};
use serde::{Deserialize, Serialize};
use trestle_command::errors::CliError;
use trestle_objects::CopyTarget;
use xxhash_rust::xxh3::xxh3_128;

use crate::{
    manifest::BackupManifest,
    packed::{self, STORED_BYTES_MAX, UnreadablePart},
};

const MARKER: &str = "trestle-backup";
const FORMAT: u32 = 1;
const BACKUPS: &str = "backups";
/// What is below it are chunks.
pub(crate) const CHUNKS: &str = "chunks";
/// What is below it are pieces of objects.
pub(crate) const OBJECTS: &str = "objects";
const SUFFIX: &str = ".manifest";
/// Entries of who makes a backup.
pub(crate) const RUNNING: &str = "running";
/// Entries of who deletes.
pub(crate) const PRUNING: &str = "pruning";
/// Entries of who has ended, where the others cannot be deleted.
const ENDED: &str = "ended";
/// After this time an entry of either kind is that of a process that was killed: both stop long before.
pub(crate) const ENTRY_LASTS: Duration = Duration::from_secs(24 * 60 * 60);

#[derive(Serialize, Deserialize)]
struct Marker {
    format: u32,
    store_id: String,
}

/// The place.
pub(crate) struct Repository {
    target: CopyTarget,
    /// As it was given, for messages.
    pub(crate) text: String,
    /// The hashes of the paths that are known to be there.
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
    /// The place cannot be read.
    #[error("{0}")]
    Store(Error),
}

impl Repository {
    /// An existing place.
    ///
    /// # Errors
    /// One that cannot be used, or has no backups.
    pub(crate) async fn open(text: &str) -> Result<Self, CliError> {
        let target = CopyTarget::open(text).map_err(|error| unusable(text, &error))?;
        let repository = Self::of(target, text);
        let is_one = matches!(repository.marker().await, Ok(Some(_)));
        match is_one || !repository.backups().await?.is_empty() {
            true => Ok(repository),
            false => Err(CliError::Usage(format!(
                "no backups are at this target, it has no file `{MARKER}`: target=`{text}`"
            ))),
        }
    }

    /// A place for the backups of this store, which is made where it is not there.
    ///
    /// # Errors
    /// One that cannot be used, or that has the backups of another store.
    pub(crate) async fn create(text: &str, store_id: &str) -> Result<Self, CliError> {
        let target = CopyTarget::create(text).map_err(|error| unusable(text, &error))?;
        let repository = Self::of(target, text);
        if repository.marker().await?.is_none() {
            repository.check_empty().await?;
            let marker = Marker { format: FORMAT, store_id: store_id.to_owned() };
            let marker = serde_json::json!(marker).to_string();
            repository.put(MARKER, packed::pack(MARKER, marker.as_bytes(), 0)).await?;
        }
        match repository.marker().await? {
            Some(marker) if marker.store_id == store_id => Ok(repository),
            _ => Err(CliError::Usage(format!(
                "the target has the backups of another data directory, use another path: target=`{text}`"
            ))),
        }
    }

    fn of(target: CopyTarget, text: &str) -> Self {
        Self { target, text: text.to_owned(), known: Mutex::default(), written: Mutex::default() }
    }

    /// Rejects a place that has something of others where the parts of backups would be: they could not be
    /// distinguished.
    async fn check_empty(&self) -> Result<(), CliError> {
        for prefix in [BACKUPS, CHUNKS, OBJECTS] {
            let mut found = self.target.store.list(Some(&Path::from(prefix)));
            if let Some(first) = found.try_next().await.map_err(|error| self.failed(&error))? {
                let (text, found) = (&self.text, first.location);
                return Err(CliError::Usage(format!(
                    "the target has something else, use another path: target=`{text}`, found=`{found}`"
                )));
            }
        }
        Ok(())
    }

    async fn marker(&self) -> Result<Option<Marker>, CliError> {
        match self.read(MARKER).await {
            Err(PartError::Missing) => Ok(None),
            Err(PartError::Store(error)) => Err(self.failed(&error)),
            Err(error) => Err(CliError::Usage(format!(
                "the target is not one of this version: file=`{MARKER}`: {error}"
            ))),
            Ok(text) => match serde_json::from_slice::<Marker>(&text) {
                Ok(marker) if marker.format == FORMAT => Ok(Some(marker)),
                _ => Err(CliError::Usage(format!(
                    "the target has another format: file=`{MARKER}`, known=`{FORMAT}`"
                ))),
            },
        }
    }

    /// What is wrong with the file that marks the place. Its backups are readable without it.
    ///
    /// # Errors
    /// The place cannot be read.
    pub(crate) async fn marker_problem(&self) -> Result<Option<(&'static str, String)>, CliError> {
        match self.read(MARKER).await {
            Ok(_) => Ok(None),
            Err(PartError::Store(error)) => Err(self.failed(&error)),
            Err(error) => Ok(Some((MARKER, error.to_string()))),
        }
    }

    /// Looks what is there, so that it is not sent again.
    ///
    /// # Errors
    /// The place cannot be read.
    pub(crate) async fn look(&self) -> Result<(), CliError> {
        for prefix in [CHUNKS, OBJECTS] {
            let mut found = self.target.store.list(Some(&Path::from(prefix)));
            while let Some(part) = found.try_next().await.map_err(|error| self.failed(&error))? {
                if part.size > 0 {
                    self.note(part.location.as_ref());
                }
            }
        }
        Ok(())
    }

    /// Whether a part is known to be there.
    pub(crate) fn has(&self, path: &str) -> bool {
        let is_known = |known: &HashSet<u128>| known.contains(&xxh3_128(path.as_bytes()));
        let has = self.known.lock().is_ok_and(|known| is_known(&known));
        if has {
            // Its name may not be durable: who wrote it may have been killed.
            self.note_directory(path);
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
        if let Ok(mut known) = self.known.lock() {
            known.insert(xxh3_128(path.as_bytes()));
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

    /// The plain bytes of a part.
    ///
    /// # Errors
    /// Every kind of [`PartError`].
    pub(crate) async fn read(&self, path: &str) -> Result<Vec<u8>, PartError> {
        let stored = self.get(path).await.map_err(PartError::Store)?.ok_or(PartError::Missing)?;
        Ok(packed::unpack(path, &stored)?)
    }

    /// Makes all that was written durable.
    ///
    /// # Errors
    /// The file system of the place.
    pub(crate) async fn sync(&self) -> Result<(), CliError> {
        let target = self.target.clone();
        let written = self.written.lock().map(|written| written.clone()).unwrap_or_default();
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
        match manifest.id == id {
            true => Ok(manifest),
            false => Err(format!("the manifest is that of another backup: id=`{}`", manifest.id)),
        }
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

    /// Registers who works here, unless one of the other kind does. By the clock of the place alone.
    ///
    /// # Errors
    /// One of the other kind works here.
    pub(crate) async fn enter(&self, kind: &str, other: &str, id: &str) -> Result<Path, CliError> {
        let path = format!("{kind}/{id}");
        self.put(&path, id.as_bytes().to_vec()).await?;
        let location = Path::from(path);
        let own = self.target.store.head(&location).await.map_err(|error| self.failed(&error))?;
        let ended = self.list(ENDED).await?;
        let is_ended = |entry: &ObjectMeta| {
            ended.iter().any(|it| it.location.filename() == entry.location.filename())
        };
        let lasts = i64::try_from(ENTRY_LASTS.as_secs()).unwrap_or(i64::MAX);
        for entry in self.list(other).await? {
            let age = own.last_modified.signed_duration_since(entry.last_modified).num_seconds();
            if age < lasts && !is_ended(&entry) {
                self.leave(&location).await?;
                let (text, entry) = (&self.text, entry.location);
                return Err(CliError::Source {
                    text: format!(
                        "the target is in use, try again later: target=`{text}`, entry=`{entry}`"
                    ),
                    busy: true,
                });
            }
        }
        Ok(location)
    }

    /// Removes an entry. Where the place refuses deletes, another one marks that it has ended.
    ///
    /// # Errors
    /// The place refuses that too.
    pub(crate) async fn leave(&self, entry: &Path) -> Result<(), CliError> {
        if self.delete(entry).await.is_ok() {
            return Ok(());
        }
        let id = entry.filename().unwrap_or_default();
        self.put(&format!("{ENDED}/{id}"), id.as_bytes().to_vec()).await
    }

    /// Deletes the entries of who has ended.
    ///
    /// # Errors
    /// The place.
    pub(crate) async fn forget_ended(&self) -> Result<(), CliError> {
        for ended in self.list(ENDED).await? {
            let id = ended.location.filename().unwrap_or_default();
            for kind in [RUNNING, PRUNING] {
                self.delete(&Path::from(format!("{kind}/{id}"))).await?;
            }
            self.delete(&ended.location).await?;
        }
        Ok(())
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

fn unusable(text: &str, error: &str) -> CliError {
    CliError::Usage(format!("the target cannot be used: target=`{text}`: {error}"))
}

/// The path of a manifest.
pub(crate) fn manifest_path(id: &str) -> String {
    format!("{BACKUPS}/{id}{SUFFIX}")
}

fn backup_of(path: &Path) -> Option<String> {
    path.filename()?.strip_suffix(SUFFIX).map(str::to_owned)
}

/// The path of a chunk.
pub(crate) fn chunk_path(name: &str) -> String {
    format!("chunks/{}/{name}", name.get(..2).unwrap_or("00"))
}

/// Whether a path is one that a part of a backup has.
pub(crate) fn is_part(path: &Path) -> bool {
    let is_hex = |text: &str, length: usize| {
        text.len() == length && text.bytes().all(|it| it.is_ascii_hexdigit())
    };
    match path.as_ref().split('/').collect::<Vec<_>>().as_slice() {
        [CHUNKS, folder, name] => is_hex(folder, 2) && is_hex(name, 64),
        [OBJECTS, "blob" | "log", folder, _, ..] => {
            let name = path.filename().unwrap_or_default();
            let mut ends = name.rsplitn(3, '-');
            let (index, mark) = (ends.next().unwrap_or_default(), ends.next().unwrap_or_default());
            is_hex(folder, 2) && is_hex(mark, 16) && index.parse::<u64>().is_ok()
        }
        _ => false,
    }
}

/// The name of a chunk: the SHA-256 of what it contains.
pub(crate) fn chunk_name(plain: &[u8]) -> String {
    digest(&SHA256, plain).as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_parts_of_backups_look_like_them() {
        let name = chunk_name(b"x");
        let is_part = |path: &str| is_part(&Path::from(path));
        assert!(is_part(&chunk_path(&name)));
        assert!(is_part("objects/blob/0a/00-01-00000000000000ff-0"));
        assert!(is_part("objects/log/0a/main/app/1.parquet-00000000000000ff-12"));
        for other in ["objects/keep.txt", "chunks/foreign", "chunks/ab/cd", "backups/a.manifest"] {
            assert!(!is_part(other), "{other}");
        }
    }

    async fn repository(folder: &std::path::Path) -> Repository {
        Repository::create(folder.to_str().unwrap(), "id").await.unwrap()
    }

    #[tokio::test]
    async fn backups_and_prunes_exclude_each_other_until_they_end() {
        let folder = tempfile::tempdir().unwrap();
        let place = repository(folder.path()).await;
        let first = place.enter(RUNNING, PRUNING, "a").await.unwrap();
        place.enter(RUNNING, PRUNING, "b").await.unwrap();
        let busy = place.enter(PRUNING, RUNNING, "c").await.unwrap_err().to_string();
        assert!(busy.contains("is in use"), "{busy}");
        place.leave(&first).await.unwrap();
        assert!(place.enter(PRUNING, RUNNING, "d").await.is_err(), "`b` is at work");
        // As where deletes are refused.
        place.put("ended/b", b"b".to_vec()).await.unwrap();
        let prune = place.enter(PRUNING, RUNNING, "e").await.unwrap();
        assert!(place.enter(RUNNING, PRUNING, "f").await.is_err());
        place.leave(&prune).await.unwrap();
        place.forget_ended().await.unwrap();
        assert!(place.list(RUNNING).await.unwrap().is_empty());
        place.enter(RUNNING, PRUNING, "f").await.unwrap();
    }

    #[tokio::test]
    async fn a_place_of_something_else_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("objects")).unwrap();
        std::fs::write(folder.path().join("objects/keep.txt"), "x").unwrap();
        let refused = Repository::create(folder.path().to_str().unwrap(), "id").await;
        let error = refused.err().unwrap().to_string();
        assert!(error.contains("has something else") && error.contains("keep.txt"), "{error}");
    }
}
