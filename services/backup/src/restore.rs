//! `backup restore`.
//!
//! The directory has the file `RESTORING` from before the first byte until all is durable, and no version opens one
//! that has it. What was restored so far is no store: it is removed when the command is repeated.

mod contents;
mod instant;
mod named;

use std::{
    fs::{self, File},
    io,
    path::Path,
};

use futures::{StreamExt as _, TryStreamExt as _, stream};
use object_store::PutPayload;
use serde_json::json;
use tokio::sync::mpsc;
use trestle_command::{
    errors::CliError,
    output::{Output, bytes, counted},
};
use trestle_kv::Entry;
use trestle_kv_fjall::{FillError, StoreWriter};
use trestle_model::time::Ticks;
use trestle_objects::{ObjectStorage, ObjectsUrl};

use self::contents::RestoredObjects;
use crate::{
    args::RestoreArgs,
    failure::broken,
    lists::{ChunkRef, Damage, ObjectRef},
    manifest::{BackupManifest, KeyspaceRows},
    pieces::pieces,
    replay::not_restored,
    repository::Repository,
    rules::{DataDirectory, ObjectAreaName, RESTORING, StoreRules},
    show::with_damage,
    verify::{self, AT_ONCE, BadPart},
};

/// Chunks that are read ahead.
const AHEAD: usize = 2;
/// What a directory of an interrupted restore may have beside its rows, and not `blob-store`: that proves that the
/// objects at a URL are those of this restore, which writes each again as it is.
const RESTORED: [&str; 3] = ["blob", "log", "store-id"];

pub(crate) async fn run(
    args: &RestoreArgs,
    rules: StoreRules,
    out: &mut Output,
) -> Result<(), CliError> {
    let objects = args.blob_url.as_deref().map(str::parse).transpose();
    let objects: Option<ObjectsUrl> =
        objects.map_err(|rule| CliError::Usage(format!("--blob-url: {rule}")))?;
    let path = args.data_dir.clone();
    let path = path.ok_or_else(|| CliError::Usage("--data-dir is required".to_owned()))?;
    let store = DataDirectory { path, rules };
    let text = args.backup.target.text()?;
    let repository = Repository::open(text, args.key.read().await?).await?;
    if let Some(to) = args.to {
        let which = (to, args.backup.id.as_deref(), objects.as_ref());
        return instant::run(&repository, &store, which, out).await;
    }
    let manifest =
        repository.open_backup(args.backup.id.as_deref(), &store.rules.keyspaces).await?;
    let id = &manifest.id;
    let _lock = begin(&store.path, store.rules.engine_dir)?;
    let bar = out.progress(None, 0);
    bar.set_message("objects");
    let job = Restore { repository: &repository, manifest: &manifest, store: &store };
    let restored = job.objects(objects.as_ref()).await?;
    // Last: what an earlier version looks at is whole only then.
    bar.set_message("rows");
    job.rows().await?;
    end(&store).map_err(cannot_write(&store.path))?;
    bar.finish_and_clear();
    let directory = store.path.display().to_string();
    let human = format!(
        "restored {id} of {} into {directory}: {} ({}), {} ({})",
        manifest.instant,
        counted(manifest.rows(), "row"),
        bytes(manifest.row_bytes()),
        counted(restored.count, "object"),
        bytes(restored.bytes),
    );
    let record = json!({
        "id": id,
        "instant": manifest.instant,
        "data_dir": directory,
        "rows": manifest.rows(),
        "objects": restored.count,
        "damaged": manifest.damage.count + restored.lost,
    });
    out.either(&human, &with_damage(record, &restored.damage))?;
    match manifest.damage.count {
        0 => restored.verdict(out),
        found => {
            out.note(&format!(
                "the backup lacks what could not be read when it was made: {}; see `trestle backup show`",
                counted(found, "object")
            ));
            Err(CliError::Rejected)
        }
    }
}

fn cannot_write(path: &Path) -> impl FnOnce(io::Error) -> CliError + use<> {
    CliError::file(format!("cannot write the data directory `{}`", path.display()))
}

/// Makes the directory, or empties one whose restore was interrupted. The lock is that of the restore.
fn begin(path: &Path, engine_dir: &str) -> Result<File, CliError> {
    fs::create_dir_all(path).map_err(cannot_write(path))?;
    let marker = path.join(RESTORING);
    let found = || {
        let names = fs::read_dir(path)?.map(|entry| Ok(entry?.file_name()));
        names.collect::<io::Result<Vec<_>>>()
    };
    let found = found().map_err(cannot_write(path))?;
    let is_empty = found.iter().all(|name| name == "lost+found");
    if !marker.exists() && !is_empty {
        return Err(CliError::Usage(format!(
            "--data-dir must name a directory that is new or empty: `{}`",
            path.display()
        )));
    }
    let begin = || {
        let lock = File::create(&marker)?;
        lock.try_lock().map_err(io::Error::from)?;
        lock.sync_all()?;
        // The names above it are synced with those of the rows; until then nothing can be lost.
        File::open(path)?.sync_all()?;
        for name in RESTORED.into_iter().chain([engine_dir]) {
            let path = path.join(name);
            let removed =
                if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) };
            match removed {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        Ok(lock)
    };
    begin().map_err(|error: io::Error| match error.kind() {
        io::ErrorKind::WouldBlock => CliError::Source {
            text: format!("another restore writes the directory: `{}`", path.display()),
            busy: true,
        },
        _ => cannot_write(path)(error),
    })
}

/// Makes it a data directory of its own.
fn end(store: &DataDirectory) -> io::Result<()> {
    (store.rules.store_id)(&store.path)?;
    rustix::fs::syncfs(File::open(&store.path)?)?;
    fs::remove_file(store.path.join(RESTORING))?;
    File::open(&store.path)?.sync_all()
}

/// A row cannot be restored.
#[derive(Debug, thiserror::Error)]
enum RestoreError {
    #[error(transparent)]
    Fill(#[from] FillError),
    #[error(transparent)]
    Part(#[from] BadPart),
    #[error("{0}")]
    Row(String),
    #[error(transparent)]
    Command(#[from] CliError),
}

impl From<RestoreError> for CliError {
    fn from(error: RestoreError) -> Self {
        match error {
            RestoreError::Command(error) => error,
            error => not_restored(&error),
        }
    }
}

struct Restore<'a> {
    repository: &'a Repository,
    manifest: &'a BackupManifest,
    store: &'a DataDirectory,
}

impl Restore<'_> {
    async fn rows(&self) -> Result<(), CliError> {
        let writer = self.filled().await?;
        finish(writer, self.instant()?).await
    }

    /// The instant of the backup.
    fn instant(&self) -> Result<Ticks, CliError> {
        let at = Ticks::new(self.manifest.at);
        Ok(at.ok_or_else(|| RestoreError::Row("the instant is no time".to_owned()))?)
    }

    /// A store with the rows of the backup, which no engine opens yet.
    async fn filled(&self) -> Result<StoreWriter, CliError> {
        let rules = self.store.rules.clone();
        let path = self.store.path.join(rules.engine_dir);
        let create = move || StoreWriter::create(&path, rules.keyspaces);
        let mut writer = blocking(create).await?.map_err(|error| broken(&error))?;
        for keyspace in &self.manifest.keyspaces {
            writer = self.keyspace(keyspace, writer).await?;
        }
        Ok(writer)
    }

    async fn keyspace(
        &self,
        keyspace: &KeyspaceRows,
        mut writer: StoreWriter,
    ) -> Result<StoreWriter, CliError> {
        let (chunks, mut received) = mpsc::channel::<Vec<Entry>>(AHEAD);
        let (name, rules) = (keyspace.name.clone(), self.store.rules.clone());
        let filled = tokio::task::spawn_blocking(move || {
            let rows = std::iter::from_fn(move || received.blocking_recv()).flatten();
            let rows = rows.filter_map(|row| restored(&rules, row).transpose());
            writer.fill(&name, rows).map(|_| writer)
        });
        let sent = self.send(keyspace, &chunks).await;
        drop(chunks);
        let filled = filled.await.map_err(|error| broken(&error))?;
        // The error of a reader comes first: what it did not send looks like the end.
        let rows = sent?;
        let writer = filled.map_err(CliError::from)?;
        match rows == keyspace.rows {
            true => Ok(writer),
            false => Err(RestoreError::Row(format!(
                "a keyspace has another number of rows: keyspace=`{}`, found=`{rows}`, expected=`{}`",
                keyspace.name, keyspace.rows
            ))
            .into()),
        }
    }

    /// Sends the rows of a keyspace in their order; how many.
    async fn send(
        &self,
        keyspace: &KeyspaceRows,
        sender: &mpsc::Sender<Vec<Entry>>,
    ) -> Result<u64, CliError> {
        let mut rows = 0;
        for at in &keyspace.lists {
            let chunks: Vec<ChunkRef> =
                verify::list(self.repository, at.list).await?.map_err(RestoreError::Part)?;
            let read = stream::iter(chunks).map(|chunk| async move {
                let read = verify::chunk(self.repository, &chunk).await?;
                Ok::<_, CliError>(read.map_err(RestoreError::Part)?)
            });
            let mut read = std::pin::pin!(read.buffered(AT_ONCE));
            while let Some(chunk) = read.try_next().await? {
                rows += chunk.len() as u64;
                // The writer has an error of its own where it ended.
                if sender.send(chunk).await.is_err() {
                    return Ok(rows);
                }
            }
        }
        Ok(rows)
    }

    async fn storage(&self, url: Option<&ObjectsUrl>) -> Result<ObjectStorage, CliError> {
        let storage = ObjectStorage::open(&self.store.path, url, None).await;
        storage.map_err(|error| broken(&error))
    }

    async fn objects(&self, url: Option<&ObjectsUrl>) -> Result<RestoredObjects, CliError> {
        let storage = self.storage(url).await?;
        let mut restored = RestoredObjects::default();
        for at in &self.manifest.objects.lists {
            let objects: Vec<ObjectRef> =
                verify::list(self.repository, at.list).await?.map_err(RestoreError::Part)?;
            let put = stream::iter(objects).map(|object| self.object(&storage, object));
            let put: Vec<_> = put.buffer_unordered(AT_ONCE).try_collect().await?;
            put.into_iter().for_each(|object| restored.add(object));
        }
        Ok(restored)
    }

    /// Writes an object; its bytes, or which part of it cannot be used. The rest of the store is restored without it.
    async fn object(
        &self,
        storage: &ObjectStorage,
        object: ObjectRef,
    ) -> Result<Result<u64, Damage>, CliError> {
        let mut read = Vec::new();
        for at in pieces(object.bytes) {
            match verify::piece(self.repository, &object, at).await? {
                Ok(piece) => read.push(bytes::Bytes::from(piece)),
                Err(bad) => {
                    let (object, reason) = (object.shown(), bad.to_string());
                    return Ok(Err(Damage { object, reason }));
                }
            }
        }
        let area = match object.name().map(|name| name.area) {
            Some(ObjectAreaName::Logs) => &storage.logs,
            _ => &storage.blobs,
        };
        let put = area.put(&object.path, PutPayload::from_iter(read)).await;
        put.map(|_| Ok(object.bytes)).map_err(|error| broken(&error))
    }
}

fn restored(rules: &StoreRules, row: Entry) -> Result<Option<Entry>, RestoreError> {
    (rules.restored)(row).map_err(RestoreError::Row)
}

/// Makes it a store that engines open, whose versions go on after `floor`.
pub(crate) async fn finish(writer: StoreWriter, floor: Ticks) -> Result<(), CliError> {
    let finished = blocking(move || writer.finish(floor)).await?;
    finished.map_err(|error| broken(&error))
}

pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, CliError> {
    tokio::task::spawn_blocking(work).await.map_err(|error| broken(&error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_that_is_not_empty_is_not_touched_unless_its_restore_was_interrupted() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("new");
        let lock = begin(&path, "kv").unwrap();
        fs::create_dir(path.join("kv")).unwrap();
        fs::write(path.join("kv/x"), "x").unwrap();
        let busy = begin(&path, "kv").unwrap_err().to_string();
        assert!(busy.starts_with("another restore") && path.join("kv").exists(), "{busy}");
        drop(lock);
        begin(&path, "kv").unwrap();
        assert!(!path.join("kv").exists() && path.join(RESTORING).exists());

        fs::remove_file(path.join(RESTORING)).unwrap();
        fs::write(path.join("own"), "x").unwrap();
        let error = begin(&path, "kv").unwrap_err().to_string();
        assert!(error.starts_with("--data-dir must name"), "{error}");
        assert!(path.join("own").exists() && !path.join(RESTORING).exists());
    }
}
