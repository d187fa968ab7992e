//! Which data directory and which object store belong together. Both sides record it: names of objects are unique in
//! one data directory only, so two on the same objects would overwrite and delete those of each other.
//!
//! In the data directory it is the file `blob-store`: a line with the URL, and a line with a random id. In the store it
//! is the object `trestle-owner` with that id.

use std::{
    fs::{self, File},
    io::{self, Write as _},
    path::Path as FilePath,
};

use object_store::{
    Error, ObjectStore, ObjectStoreExt as _, PutMode, PutOptions, PutPayload, path::Path,
};
use uuid::Uuid;

use crate::{ObjectsUrl, OpenObjectsError};

/// The file in the data directory.
const FILE: &str = "blob-store";
/// The object in the store.
const OBJECT: &str = "trestle-owner";

/// What the data directory records of its store.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct StoreBinding {
    pub(crate) url: String,
    owner: String,
}

impl StoreBinding {
    /// The recorded one; none where blobs are in files of the data directory.
    ///
    /// # Errors
    /// A file that cannot be read, or is malformed.
    pub(crate) fn read(data_dir: &FilePath) -> io::Result<Option<Self>> {
        let text = match fs::read_to_string(data_dir.join(FILE)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            text => text?,
        };
        let mut lines = text.lines().map(str::to_owned);
        let (Some(url), Some(owner), None) = (lines.next(), lines.next(), lines.next()) else {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "blob-store is malformed"));
        };
        Ok(Some(Self { url, owner }))
    }

    /// Records a new one, on stable storage.
    ///
    /// # Errors
    /// A directory that cannot be written.
    pub(crate) fn create(data_dir: &FilePath, url: &ObjectsUrl) -> io::Result<Self> {
        let binding = Self { url: url.to_string(), owner: Uuid::new_v4().to_string() };
        fs::create_dir_all(data_dir)?;
        let part = data_dir.join(format!("{FILE}.part"));
        let mut file = File::create(&part)?;
        writeln!(file, "{}\n{}", binding.url, binding.owner)?;
        file.sync_all()?;
        fs::rename(&part, data_dir.join(FILE))?;
        File::open(data_dir)?.sync_all()?;
        Ok(binding)
    }

    /// Records the data directory in the store, unless it is recorded.
    ///
    /// # Errors
    /// [`OpenObjectsError::Claimed`] for a store of another data directory, [`OpenObjectsError::Store`].
    pub(crate) async fn claim(&self, store: &dyn ObjectStore) -> Result<(), OpenObjectsError> {
        let (object, payload) = (Path::from(OBJECT), PutPayload::from(self.owner.clone()));
        let if_absent = PutOptions { mode: PutMode::Create, ..PutOptions::default() };
        match store.put_opts(&object, payload, if_absent).await {
            Ok(_) => return Ok(()),
            // Also after a try whose answer was lost.
            Err(Error::AlreadyExists { .. }) => {}
            Err(error) => return Err(OpenObjectsError::of(&error)),
        }
        let found = store.get(&object).await.map_err(|error| OpenObjectsError::of(&error))?;
        let owner = found.bytes().await.map_err(|error| OpenObjectsError::of(&error))?;
        match owner == self.owner {
            true => Ok(()),
            false => Err(OpenObjectsError::Claimed { url: self.url.clone() }),
        }
    }
}
