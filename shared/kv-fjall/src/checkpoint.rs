//! A copy of the whole store as it is at one instant, beside an engine that goes on.
//!
//! Tables are never changed once they are written, so a hard link to each is a copy of it. The list of them (`current`
//! and the `vN` that it names) is small and copied, as are the journals: a recovery may cut one in place.
//! No group is written between the end of the journals and the reading of `current`, and journals come first: what is
//! flushed in between is in both, and a recovery skips what the tables have.
//!
//! The tables stay for as long as their version is held, which stops neither flushes nor the release of memory, unlike
//! an open snapshot.

mod files;
mod frozen;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use self::files::CopiedJournals;
use self::frozen::FrozenTree;
use super::inventory::{DATABASE, KEYSPACES};
use super::shared::{EngineState, not_now};
use super::{directory, inventory, last_durability, manifest};
use trestle_model::time::Ticks;

/// How long flushes are waited for, so that less is copied.
const FLUSHES_WITHIN: Duration = Duration::from_secs(10);
const FLUSH_POLL: Duration = Duration::from_millis(5);
/// Journals that are longer together are logged: the next start of the copy reads them.
const JOURNALS_BYTES: u64 = 64 * 1024 * 1024;
/// How often it is begun anew where a file disappeared under it.
const ATTEMPTS: usize = 3;

/// Copies of the whole store of an engine, each as it is at one instant. Clones share it. It does not keep the store
/// open.
#[derive(Clone)]
pub struct Checkpointer(pub(super) Weak<EngineState>);

/// A copy that was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CheckpointMade {
    /// The newest version that was written: every change with a version up to it is in the copy, and none after it. It
    /// may be long before the call, where little is written, and up to a second after it, where the engine was opened
    /// after a crash and wrote nothing since.
    pub at: Ticks,
}

/// A copy that could not be made. What there was of it is removed.
#[derive(Debug, thiserror::Error)]
pub enum CheckpointError {
    /// The engine ended.
    #[error("a checkpoint needs an open store: the store is closed")]
    Closed,
    /// A write of the engine failed, so where its journal ends is unclear.
    #[error("a checkpoint needs a store that takes writes: {reason}")]
    Stopped {
        /// The first failure.
        reason: Arc<str>,
    },
    /// The directory is on another file system, or on one without hard links, or a file has too many of them.
    #[error(
        "a checkpoint needs hard links from its directory to the files of the store, on one file system that has \
         them: path=`{}`",
        path.display()
    )]
    Links {
        /// The directory of the copy.
        path: PathBuf,
        /// The error.
        source: io::Error,
    },
    /// The file system rejected. The directory exists, for one, or its parent does not.
    #[error("a checkpoint cannot be made: path=`{}`", path.display())]
    Io {
        /// The directory of the copy, or the file.
        path: PathBuf,
        /// The error.
        source: io::Error,
    },
}

impl Checkpointer {
    /// Copies the whole store as it is at one instant into a directory that does not exist yet, on the same file
    /// system, whose parent exists. [`crate::StoreReader`] opens it, and any engine of this or a later release.
    /// Tables are hard links: they take no space until the store replaces its own. Everything else is copied and
    /// synced; the name of the directory is durable once its parent is synced.
    ///
    /// Blocks, up to ten seconds for flushes and as long as the copy needs; call it where a thread may block. Writes
    /// wait only while what was added to the journals meanwhile is copied, and reads never. The store is not closed
    /// before it returns.
    ///
    /// # Errors
    /// Every kind of [`CheckpointError`].
    pub fn make(&self, into: &Path) -> Result<CheckpointMade, CheckpointError> {
        let store = self.0.upgrade().ok_or(CheckpointError::Closed)?;
        flush(&store);
        let mut attempt = 1;
        loop {
            fs::create_dir(into)
                .map_err(|source| CheckpointError::Io { path: into.to_owned(), source })?;
            let made = Copying { store: &store, into }.copy();
            if made.is_err()
                && let Err(error) = fs::remove_dir_all(into)
            {
                tracing::warn!(%error, path = %into.display(), "a failed checkpoint cannot be removed");
                return made;
            }
            match made {
                Err(CheckpointError::Io { source, .. })
                    if source.kind() == io::ErrorKind::NotFound && attempt < ATTEMPTS => {}
                made => return made,
            }
            attempt += 1;
        }
    }
}

/// Flushes everything, as far as there is room, so that the journals before the last are deleted.
#[expect(clippy::disallowed_methods, reason = "it runs where a thread may block")]
fn flush(store: &EngineState) {
    if !store.may_flush() {
        return;
    }
    for tree in &store.trees {
        if let Err(error) = tree.handle.rotate_memtable() {
            not_now(&error, "a memtable cannot be sealed before a checkpoint");
        }
    }
    let started = Instant::now();
    for tree in &store.trees {
        // One that failed never ends.
        while tree.handle.sealed_memtable_count() > 0
            && started.elapsed() < FLUSHES_WITHIN
            && store.stopped().is_none()
        {
            std::thread::sleep(FLUSH_POLL);
        }
    }
}

/// One attempt.
struct Copying<'a> {
    store: &'a EngineState,
    into: &'a Path,
}

impl Copying<'_> {
    fn copy(&self) -> Result<CheckpointMade, CheckpointError> {
        let (from, into) = (&self.store.path, self.into);
        let (source, target) = (from.join(DATABASE), into.join(DATABASE));
        let failed = |source| CheckpointError::Io { path: into.to_owned(), source };
        fs::create_dir(&target).map_err(failed)?;
        fs::create_dir(target.join(KEYSPACES)).map_err(failed)?;
        // Most of the journals, while writes go on.
        let mut journals = CopiedJournals::new(&source, &target);
        journals.copy().map_err(failed)?;
        let (at, trees) = self.instant(&mut journals, &|| {})?;
        let bytes = journals.finish().map_err(failed)?;
        if bytes > JOURNALS_BYTES {
            tracing::warn!(bytes, path = %into.display(), "journals of a checkpoint are long");
        }
        self.link(&trees, &target.join(KEYSPACES))?;
        drop(trees);
        self.copy_rest(&source, &target).map_err(failed)?;
        Ok(CheckpointMade { at })
    }

    /// The rest of the journals and what the tables are, with no write in between. Tests step in `between`.
    fn instant(
        &self,
        journals: &mut CopiedJournals,
        between: &dyn Fn(),
    ) -> Result<(Ticks, Vec<FrozenTree<impl Sized + use<>>>), CheckpointError> {
        let failed = |source| CheckpointError::Io { path: self.into.to_owned(), source };
        let written = self.store.written.lock();
        let since = Instant::now();
        if let Some(reason) = self.store.stopped() {
            return Err(CheckpointError::Stopped { reason });
        }
        journals.copy().map_err(failed)?;
        between();
        let trees = frozen::freeze(&self.store.trees).map_err(failed)?;
        tracing::debug!(held_us = since.elapsed().as_micros(), "writes waited for a checkpoint");
        Ok((written.newest(), trees))
    }

    fn link<V>(&self, trees: &[FrozenTree<V>], keyspaces: &Path) -> Result<(), CheckpointError> {
        for tree in trees {
            tree.link(keyspaces).map_err(|source| match source.kind() {
                io::ErrorKind::CrossesDevices
                | io::ErrorKind::PermissionDenied
                | io::ErrorKind::TooManyLinks
                | io::ErrorKind::Unsupported => {
                    CheckpointError::Links { path: self.into.to_owned(), source }
                }
                _ => CheckpointError::Io { path: self.into.to_owned(), source },
            })?;
        }
        directory::sync(keyspaces)
            .map_err(|source| CheckpointError::Io { path: keyspaces.to_owned(), source })
    }

    /// What does not change while the engine is open. The manifest comes last: without it no engine opens the copy.
    fn copy_rest(&self, source: &Path, target: &Path) -> io::Result<()> {
        files::copy(&source.join(inventory::VERSION), &target.join(inventory::VERSION))?;
        // The database needs one that exists.
        fs::File::create(target.join(inventory::DATABASE_LOCK))?.sync_all()?;
        directory::sync(target)?;
        last_durability::store(self.into, self.store.durability)?;
        directory::sync(self.into)?;
        manifest::write(self.into, self.store.keyspaces.list())
    }
}

#[cfg(test)]
mod tests;
