//! Reads a store that no engine has open, such as a checkpoint, from its first row to its last.

use std::path::Path;

use super::manifest::{self, ManifestVerdict};
use super::options::{FjallOptions, OpenError};
use super::shared::EngineState;
use super::{failure, keyspace_rows, open};
use trestle_kv::{EngineError, Entry, Keyspace};
use trestle_model::time::Ticks;

/// Memory for blocks, in bytes: each is read once.
const CACHE_BYTES: u64 = 16 * 1024 * 1024;
/// Files that are kept open.
const CACHED_FILES: usize = 64;

/// A store that is only read: no thread of an engine commits, keeps house or gives back space. Where the store was not
/// closed, as a checkpoint never is, its journals are recovered first, in memory and in its directory; so that must
/// be writable. One that was closed stays so, also where its reader is killed. The directory is locked until it is
/// dropped.
pub struct StoreReader {
    shared: EngineState,
}

impl StoreReader {
    /// Opens a checkpoint, or the directory of an engine that ended, with every keyspace it has. Reads the journals
    /// after anything but a clean end, about a million rows a second; call it where a thread may block.
    ///
    /// # Errors
    /// Every kind of [`OpenError`]; where there is no store, none is made.
    pub fn open(path: &Path, keyspaces: Vec<Keyspace>) -> Result<Self, OpenError> {
        let unfit = |reason: &str| OpenError::Manifest { path: path.into(), reason: reason.into() };
        if !path.is_dir() {
            return Err(unfit("there is no such directory"));
        }
        let verdict = manifest::check(path, &keyspaces);
        let verdict = verdict.map_err(|source| OpenError::Io { path: path.into(), source })?;
        if verdict == ManifestVerdict::Absent {
            return Err(unfit("there is no store: no manifest"));
        }
        failure::listen();
        let options = FjallOptions {
            cache_bytes: CACHE_BYTES,
            cached_files: CACHED_FILES,
            min_free_bytes: 0,
            ..FjallOptions::new(path, keyspaces)
        };
        Ok(Self { shared: open::open_to_read(&options)? })
    }

    /// The newest version that may have been given in this store: none of a change in it is greater, and every version
    /// of an engine that opens it will be.
    #[must_use]
    pub fn version_floor(&self) -> Ticks {
        self.shared.version_floor
    }

    /// The rows of a keyspace in the order of their keys, all of them at one instant; only those with greater keys than
    /// `after`, if it is given. The engine's own rows are left out. Reads as it is iterated, and ends after an error.
    ///
    /// # Errors
    /// [`EngineError::Rejected`] for a keyspace that it was not opened with. While it is iterated,
    /// [`EngineError::Unavailable`] and [`EngineError::Corrupt`].
    pub fn rows(
        &self,
        keyspace: &str,
        after: Option<&[u8]>,
    ) -> Result<impl Iterator<Item = Result<Entry, EngineError>> + Send + use<'_>, EngineError>
    {
        let EngineState { keyspaces, trees, database, .. } = &self.shared;
        keyspace_rows::rows(database, keyspaces, trees, keyspace, after)
    }
}
