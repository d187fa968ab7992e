//! A data directory that a copy becomes.

use std::{
    fs::{self, File, TryLockError},
    io::{self, Read as _, Write as _},
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
    sync::Arc,
};

use trestle_command::errors::CliError;
use trestle_kv::{DiskSpace, Engine};
use trestle_kv_fjall::{FjallEngine, FjallOptions, StoreWriter};
use trestle_model::time::Ticks;
use trestle_objects::{ObjectStorage, ObjectsUrl};

use super::{
    failure::{blocking, broken, unopened, unopened_objects},
    marker::{CopyMarker, CopyRefused, CopyStart, FILE, admit},
    place::StorePlace,
};
use crate::{storage, store_id};

/// See the module. It is locked while this exists.
pub(super) struct CopyDirectory {
    path: PathBuf,
    pub(super) admitted: CopyStart,
    _lock: File,
}

/// A directory cannot be begun.
#[derive(Debug, thiserror::Error)]
pub(super) enum BeginError {
    #[error(transparent)]
    Refused(#[from] CopyRefused),
    #[error("another copy writes the directory")]
    Locked,
    #[error(transparent)]
    Directory(#[from] io::Error),
}

impl BeginError {
    /// The error of the command.
    pub(super) fn into_command(self, place: &StorePlace) -> CliError {
        let shown = place.shown();
        match self {
            Self::Refused(error) => place.refused(&error),
            Self::Locked => CliError::Source { text: format!("{self}: `{shown}`"), busy: true },
            Self::Directory(error) => {
                CliError::file(format!("cannot write the data directory `{shown}`"))(error)
            }
        }
    }
}

impl CopyDirectory {
    /// Makes a directory and marks it, or goes on in one that this copy began.
    ///
    /// # Errors
    /// Every kind of [`BeginError`]. Nothing is changed in a directory of something else.
    pub(super) fn begin(path: &Path, marker: &CopyMarker) -> Result<Self, BeginError> {
        fs::create_dir_all(path)?;
        let file = path.join(FILE);
        let is_empty = || {
            let mut others = fs::read_dir(path)?.map(|entry| Ok(entry?.file_name()));
            let is_other = |name: &io::Result<_>| !matches!(name, Ok(name) if name == "lost+found" || name == FILE);
            Ok::<_, io::Error>(others.find(is_other).transpose()?.is_none())
        };
        if !file.try_exists()? {
            admit(None, is_empty()?, &marker.source)?;
        }
        let mut lock =
            File::options().create(true).truncate(false).read(true).write(true).open(&file)?;
        lock.try_lock().map_err(|error| match error {
            TryLockError::WouldBlock => BeginError::Locked,
            TryLockError::Error(error) => error.into(),
        })?;
        // Another command may have finished, and removed it, before the lock.
        if !is_at(&lock, &file)? {
            return Err(BeginError::Locked);
        }
        let mut found = String::new();
        lock.read_to_string(&mut found)?;
        // Nothing else is made before it has its text.
        let found = Some(found).filter(|found| !found.is_empty());
        let admitted = match admit(found.as_deref(), is_empty()?, &marker.source) {
            Ok(admitted) => admitted,
            Err(refused) => {
                // A server that started meanwhile has the directory.
                if found.is_none() {
                    fs::remove_file(&file)?;
                }
                return Err(refused.into());
            }
        };
        if admitted == CopyStart::New {
            lock.write_all(marker.to_string().as_bytes())?;
            lock.sync_all()?;
            File::open(path)?.sync_all()?;
        }
        Ok(Self { path: path.to_owned(), admitted, _lock: lock })
    }

    /// Its objects, which are at a URL or in files of it, on the disk of its rows.
    ///
    /// # Errors
    /// An object store that cannot be used.
    pub(super) async fn objects(
        &self,
        url: Option<&ObjectsUrl>,
        disk: DiskSpace,
    ) -> Result<ObjectStorage, CliError> {
        let opened = ObjectStorage::open(&self.path, url, Some(disk)).await;
        opened.map_err(|error| unopened_objects(&error))
    }

    /// Its rows, whose versions go on after a floor.
    ///
    /// # Errors
    /// A store that cannot be made or opened.
    pub(super) async fn engine(&self, floor: Ticks) -> Result<Arc<FjallEngine>, CliError> {
        let path = self.path.join(storage::ENGINE_DIR);
        let opened = blocking(move || {
            if !FjallEngine::exists(&path).map_err(|error| unopened(&error))? {
                remove(&path).map_err(|error| broken(&error))?;
                let writer = StoreWriter::create(&path, storage::keyspaces())
                    .map_err(|error| unopened(&error))?;
                writer.finish(floor).map_err(|error| unopened(&error))?;
            }
            let options = FjallOptions::new(&path, storage::keyspaces());
            FjallEngine::open(options).map_err(|error| unopened(&error))
        });
        Ok(Arc::new(opened.await??))
    }

    /// Makes it a data directory of its own.
    ///
    /// # Errors
    /// A directory that cannot be written.
    pub(super) async fn finish(self, engine: Arc<dyn Engine>) -> Result<(), CliError> {
        let Self { path, _lock: lock, .. } = self;
        let shown = path.display().to_string();
        let finish = move || {
            drop(engine);
            store_id::of(&path).map_err(io::Error::other)?;
            rustix::fs::syncfs(File::open(&path)?)?;
            fs::remove_file(path.join(FILE))?;
            drop(lock);
            File::open(&path)?.sync_all()
        };
        let finished = blocking(finish).await?;
        finished.map_err(CliError::file(format!("cannot write the data directory `{shown}`")))
    }
}

/// Whether a file is what a path names.
fn is_at(file: &File, path: &Path) -> io::Result<bool> {
    let file = file.metadata()?;
    match fs::metadata(path) {
        Ok(found) => Ok((found.dev(), found.ino()) == (file.dev(), file.ino())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

/// Removes a directory that no engine opens.
fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_dir_all(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn marker(source: &str) -> CopyMarker {
        let text = |text: &str| text.to_owned();
        CopyMarker { source: text(source), from: text("./data"), run: text("1") }
    }

    #[test]
    fn a_directory_is_new_or_that_of_the_same_copy_and_else_not_touched() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("deep/copy");
        let begin = |source: &str| CopyDirectory::begin(&path, &marker(source));
        let first = begin("s 1").unwrap();
        assert_eq!(first.admitted, CopyStart::New);
        assert!(matches!(begin("s 1"), Err(BeginError::Locked)));
        drop(first);
        fs::create_dir(path.join("kv")).unwrap();
        assert_eq!(begin("s 1").unwrap().admitted, CopyStart::Resumed);
        assert!(matches!(begin("s 2"), Err(BeginError::Refused(CopyRefused::Another { .. }))));
        let text = fs::read_to_string(path.join(FILE)).unwrap();
        assert_eq!(text, marker("s 1").to_string());

        // Interrupted before the marker had its text.
        fs::remove_dir(path.join("kv")).unwrap();
        fs::write(path.join(FILE), "").unwrap();
        assert_eq!(begin("s 2").unwrap().admitted, CopyStart::New);

        fs::remove_file(path.join(FILE)).unwrap();
        fs::write(path.join("own"), "x").unwrap();
        assert!(matches!(begin("s 2"), Err(BeginError::Refused(CopyRefused::Occupied))));
        assert!(!path.join(FILE).exists() && path.join("own").exists());
    }

    #[test]
    fn a_marker_that_was_removed_is_that_of_no_directory() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(FILE);
        let file = File::create(&path).unwrap();
        assert!(is_at(&file, &path).unwrap());
        fs::remove_file(&path).unwrap();
        assert!(!is_at(&file, &path).unwrap());
        File::create(&path).unwrap();
        assert!(!is_at(&file, &path).unwrap());
    }

    #[tokio::test]
    async fn rows_that_were_not_begun_are_made_anew_and_others_stay() {
        let folder = tempfile::tempdir().unwrap();
        let target = CopyDirectory::begin(folder.path(), &marker("s")).unwrap();
        let kv = folder.path().join(storage::ENGINE_DIR);
        fs::create_dir(&kv).unwrap();
        fs::write(kv.join("torn"), "x").unwrap();
        let floor = Ticks::from_unix(9_000_000_000, 0).unwrap();

        let engine = target.engine(floor).await.unwrap();
        assert!(engine.now() >= floor && !kv.join("torn").exists());
        drop(engine);
        let again = target.engine(Ticks::MIN).await.unwrap();
        assert!(again.now() >= floor, "it was not made anew");
        target.finish(again).await.unwrap();
        assert!(!folder.path().join(FILE).exists() && folder.path().join("store-id").exists());
    }
}
