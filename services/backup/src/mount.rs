//! A backup as a store: rows and objects are read from the target when they are needed, and nothing is written.

mod cache;
mod changed;
mod objects;
mod rows;
#[cfg(test)]
mod tests;

use std::{ops::RangeInclusive, path::PathBuf, sync::Arc};

use clap::Args;
use trestle_command::errors::CliError;
use trestle_kv::ReadOnlyEngine;
use trestle_model::time::Ticks;
use trestle_objects::ObjectStorage;

use self::{
    changed::ChangedRows,
    objects::{BackedUpObjects, NAME},
    rows::BackedUpRows,
};
use crate::{
    args::{DiffArgs, KeyArgs, RestoreArgs, ShowArgs},
    instants::{Instants, base_objects},
    lists::{ChunkRef, ObjectRef},
    manifest::{BackupManifest, time_text},
    repository::Repository,
    restore_instant::{RestoreInstant, restore_instant},
    rules::{ObjectAreaName, StoreRules},
    sealed::Identities,
    verify,
};

/// Which backup a server shows.
#[derive(Debug, Clone, Default, Args)]
pub struct MountArgs {
    /// Serve a backup, read-only, in place of a data directory: a directory, s3://…, gs://… or az://…
    #[arg(long = "backup", value_name = "TARGET", conflicts_with_all = ["data_dir", "ephemeral"])]
    target: Option<String>,
    /// Which backup of it [default: the newest one]
    #[arg(long = "backup-id", value_name = "ID", requires = "target")]
    id: Option<String>,
    /// Show it with the changes up to this instant, such as 2026-01-31T08:00:00.5Z, or the last one: latest
    #[arg(
        long = "backup-to",
        value_name = "TIME",
        requires = "target",
        value_parser = restore_instant
    )]
    to: Option<RestoreInstant>,
    /// Read an encrypted one by the secret keys of age in this file
    #[arg(long, value_name = "FILE", env = "TRESTLE_BACKUP_DECRYPT")]
    decrypt: Option<PathBuf>,
}

/// A backup to serve.
pub struct MountedBackup {
    /// Its rows.
    pub engine: ReadOnlyEngine,
    /// Its objects.
    pub objects: ObjectStorage,
    /// Its id.
    pub id: String,
    /// Its instant, for people.
    pub instant: String,
    /// What is not as it could be, in words, such as another backup that cannot be read.
    pub notes: Vec<String>,
}

impl MountArgs {
    /// Opens the backup, if one is named: its lists are read, and the changes up to an instant.
    ///
    /// # Errors
    /// One that cannot be read.
    pub async fn open(&self, rules: StoreRules) -> Result<Option<MountedBackup>, CliError> {
        let Some(target) = self.target.as_deref() else { return Ok(None) };
        let keys = Identities::read_if_named(self.decrypt.clone()).await?;
        open(target, (self.id.as_deref(), self.to), keys, rules).await.map(Some)
    }
}

impl RestoreArgs {
    /// Opens the backup to read parts of it.
    ///
    /// # Errors
    /// One that cannot be read.
    pub async fn open(&self, rules: StoreRules) -> Result<MountedBackup, CliError> {
        open_named((&self.backup, self.to, &self.key), rules).await
    }
}

impl DiffArgs {
    /// Opens the backup to read it.
    ///
    /// # Errors
    /// One that cannot be read.
    pub async fn open(&self, rules: StoreRules) -> Result<MountedBackup, CliError> {
        open_named((&self.backup, self.to, &self.key), rules).await
    }
}

async fn open_named(
    (backup, to, key): (&ShowArgs, Option<RestoreInstant>, &KeyArgs),
    rules: StoreRules,
) -> Result<MountedBackup, CliError> {
    open(backup.target.text()?, (backup.id.as_deref(), to), key.read().await?, rules).await
}

/// Opens a backup: the one of an id or the newest, and for an instant the changes after it up to that.
///
/// # Errors
/// One that cannot be read.
async fn open(
    target: &str,
    (id, to): (Option<&str>, Option<RestoreInstant>),
    keys: Option<Identities>,
    rules: StoreRules,
) -> Result<MountedBackup, CliError> {
    let repository = Arc::new(Repository::open(target, keys).await?);
    if let Some(to) = to {
        return mount_instant(repository, (to, id), rules).await;
    }
    let manifest = repository.open_backup(id, &rules.keyspaces).await?;
    mount(repository, &manifest, rules).await
}

async fn mount(
    repository: Arc<Repository>,
    manifest: &BackupManifest,
    rules: StoreRules,
) -> Result<MountedBackup, CliError> {
    let rows = rows(&repository, manifest, &rules).await?;
    let objects: Vec<ObjectRef> = verify::entries(&repository, &manifest.objects.lists).await?;
    let count = objects.len() as u64;
    let objects = areas(&repository, objects).map_err(|rule| differs(manifest, rule))?;
    if count != manifest.objects.count {
        return Err(differs(manifest, "its lists have other objects than it counts"));
    }
    let at = Ticks::new(manifest.at);
    let at = at.ok_or_else(|| differs(manifest, "the instant is no time"))?;
    Ok(MountedBackup {
        engine: ReadOnlyEngine::new(rules.keyspaces, Arc::new(rows), at, NAME),
        objects,
        id: manifest.id.clone(),
        instant: manifest.instant.clone(),
        notes: Vec::new(),
    })
}

/// The store at an instant between backups: the newest one before it or that of an id, and the changes after that.
async fn mount_instant(
    repository: Arc<Repository>,
    (to, id): (RestoreInstant, Option<&str>),
    rules: StoreRules,
) -> Result<MountedBackup, CliError> {
    let instants = Instants::read(&repository, id).await?;
    let plan = instants.plan(to)?;
    repository.use_backup(plan.base, &rules.keyspaces)?;
    let base = rows(&repository, plan.base, &rules).await?;
    let mut objects = base_objects(&repository, plan.base).await?;
    let (rows, replayed) = ChangedRows::over(base, &repository, &plan, &rules).await?;
    let left_out = replayed.left_out();
    objects.extend(replayed.objects);
    let objects = areas(&repository, objects.into_values());
    let objects = objects.map_err(|rule| differs(plan.base, rule))?;
    Ok(MountedBackup {
        engine: ReadOnlyEngine::new(rules.keyspaces, Arc::new(rows), plan.to, NAME),
        objects,
        id: plan.base.id.clone(),
        instant: time_text(plan.to),
        notes: instants
            .notes
            .iter()
            .cloned()
            .chain(instants.later(to, &plan))
            .chain(left_out)
            .collect(),
    })
}

/// The rows of a backup.
async fn rows(
    repository: &Arc<Repository>,
    manifest: &BackupManifest,
    rules: &StoreRules,
) -> Result<BackedUpRows, CliError> {
    let mut rows = BackedUpRows::new(Arc::clone(repository), rules.restored);
    for keyspace in &manifest.keyspaces {
        let chunks: Vec<ChunkRef> = verify::entries(repository, &keyspace.lists).await?;
        let kinds = keyspace.first_kind..=keyspace.last_kind;
        check(&chunks, &kinds, keyspace.rows).map_err(|rule| differs(manifest, &rule))?;
        rows.add(kinds, chunks);
    }
    Ok(rows)
}

/// Objects as those of a store.
///
/// # Errors
/// One of no known area, in words.
fn areas(
    repository: &Arc<Repository>,
    objects: impl IntoIterator<Item = ObjectRef>,
) -> Result<ObjectStorage, &'static str> {
    let areas = [ObjectAreaName::Blobs, ObjectAreaName::Logs];
    let [mut blobs, mut logs] = areas.map(|_| BackedUpObjects::new(Arc::clone(repository)));
    for object in objects {
        match object.name().map(|name| name.area) {
            Some(ObjectAreaName::Blobs) => blobs.add(object),
            Some(ObjectAreaName::Logs) => logs.add(object),
            None => return Err("an object has no known area"),
        }
    }
    Ok(ObjectStorage::read_only(Arc::new(blobs), Arc::new(logs), NAME))
}

fn differs(manifest: &BackupManifest, rule: &str) -> CliError {
    let text = format!("the backup cannot be shown: id=`{}`: {rule}", manifest.id);
    CliError::Source { text, busy: false }
}

/// Whether chunks are those of a keyspace, in the order of their keys, with this number of rows.
fn check(chunks: &[ChunkRef], kinds: &RangeInclusive<u8>, rows: u64) -> Result<(), String> {
    let is_own = |key: &[u8]| key.first().is_some_and(|kind| kinds.contains(kind));
    let is_chunk = |it: &ChunkRef| is_own(&it.first) && is_own(&it.last) && it.first <= it.last;
    let is_ordered =
        |pair: &[ChunkRef]| matches!(pair, [before, after] if before.last < after.first);
    let found = chunks.iter().fold(0, |sum: u64, chunk| sum.saturating_add(chunk.rows));
    match chunks.iter().all(is_chunk) && chunks.windows(2).all(is_ordered) {
        false => Err("its chunks are not in order, or of another keyspace".to_owned()),
        true if found != rows => {
            Err(format!("its lists have other rows than it counts: found=`{found}`"))
        }
        true => Ok(()),
    }
}
