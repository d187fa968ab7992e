//! Which data directory and which object store belong together. Both sides record it: names of objects are unique in
//! one data directory only, so two on the same objects would overwrite and delete those of each other.
//!
//! In the data directory it is the file `blob-store`: a line with the URL, a line with a random id, and since it exists
//! a line with the number of the last start. In the store it is the object `trestle-owner`, see [`crate::owner`]. A
//! start raises both numbers, the file first: a directory whose number is less than that of the store is an old copy.

use std::{
    fs::{self, File},
    io::{self, Write as _},
    path::Path as FilePath,
};

use object_store::{Error, ObjectStore, PutMode, PutOptions, PutPayload, path::Path};
use uuid::Uuid;

use crate::{
    ObjectsUrl, OpenObjectsError,
    owner::{OBJECT, OwnerClaim},
};

/// The file in the data directory.
const FILE: &str = "blob-store";

/// What the data directory records of its store.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct StoreBinding {
    pub(crate) url: String,
    owner: String,
    start: u64,
}

/// A store that this start owns.
#[derive(Debug)]
pub(crate) struct ClaimedStore {
    /// What the store has.
    pub(crate) claim: OwnerClaim,
    /// Whether the store applies the conditions of requests.
    pub(crate) is_conditional: bool,
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
        let (url, owner, start) = (lines.next(), lines.next(), lines.next());
        let start = start.map_or(Some(0), |start| start.trim().parse().ok());
        let (Some(url), Some(owner), Some(start), None) = (url, owner, start, lines.next()) else {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "blob-store is malformed"));
        };
        Ok(Some(Self { url, owner, start }))
    }

    /// Records a new one, on stable storage.
    ///
    /// # Errors
    /// A directory that cannot be written.
    pub(crate) fn create(data_dir: &FilePath, url: &ObjectsUrl) -> io::Result<Self> {
        let binding = Self { url: url.to_string(), owner: Uuid::new_v4().to_string(), start: 0 };
        fs::create_dir_all(data_dir)?;
        binding.write(data_dir)?;
        Ok(binding)
    }

    fn write(&self, data_dir: &FilePath) -> io::Result<()> {
        let part = data_dir.join(format!("{FILE}.part"));
        let mut file = File::create(&part)?;
        writeln!(file, "{}\n{}\n{}", self.url, self.owner, self.start)?;
        file.sync_all()?;
        fs::rename(&part, data_dir.join(FILE))?;
        File::open(data_dir)?.sync_all()
    }

    /// Raises the number of the start, in the data directory and then in the store.
    ///
    /// # Errors
    /// [`OpenObjectsError::Claimed`] for a store of another data directory, [`OpenObjectsError::Copied`] for one that a
    /// copy of this data directory used later, [`OpenObjectsError::Store`].
    pub(crate) async fn claim(
        &mut self,
        data_dir: &FilePath,
        store: &dyn ObjectStore,
    ) -> Result<ClaimedStore, OpenObjectsError> {
        let found = OwnerClaim::read(store).await.map_err(|error| OpenObjectsError::of(&error))?;
        if let Some((found, _)) = &found {
            self.check(found, self.start)?;
        }
        self.start += 1;
        self.write(data_dir)?;
        let (owner, nonce) = (self.owner.clone(), Uuid::new_v4().to_string());
        let claim = OwnerClaim { owner, start: self.start, nonce };
        let mode = found.map_or(PutMode::Create, |(_, version)| PutMode::Update(version));
        let mut is_conditional = self.put(store, &claim, mode.clone()).await?;
        if is_conditional {
            // The store has another version now, and an object of this name: both must fail.
            for mode in [mode, PutMode::Create] {
                is_conditional &= put(store, &claim, mode).await.is_err();
            }
        }
        if !is_conditional {
            tracing::warn!(
                url = self.url,
                "the object store ignores the conditions of requests: objects are compared before \
                 they are written, and two servers on them may be detected seconds late"
            );
        }
        Ok(ClaimedStore { claim, is_conditional })
    }

    /// # Errors
    /// [`OpenObjectsError::Claimed`], [`OpenObjectsError::Copied`].
    fn check(&self, found: &OwnerClaim, here: u64) -> Result<(), OpenObjectsError> {
        let url = || self.url.clone();
        if found.owner != self.owner {
            return Err(OpenObjectsError::Claimed { url: url() });
        }
        match found.start > here {
            true => Err(OpenObjectsError::Copied { url: url(), there: found.start, here }),
            false => Ok(()),
        }
    }

    /// Writes a claim. Returns whether the store applied the condition.
    ///
    /// # Errors
    /// As [`StoreBinding::claim`].
    async fn put(
        &self,
        store: &dyn ObjectStore,
        claim: &OwnerClaim,
        mode: PutMode,
    ) -> Result<bool, OpenObjectsError> {
        let failed = |error: Error| OpenObjectsError::of(&error);
        let is_conditional = match put(store, claim, mode).await {
            Ok(()) => return Ok(true),
            // Also after a try whose response was lost.
            Err(Error::AlreadyExists { .. } | Error::Precondition { .. }) => true,
            Err(Error::NotImplemented { .. } | Error::NotSupported { .. }) => {
                put(store, claim, PutMode::Overwrite).await.map_err(failed)?;
                false
            }
            Err(error) => return Err(failed(error)),
        };
        let found = OwnerClaim::read(store).await.map_err(failed)?;
        let (found, _) = found.ok_or_else(|| OpenObjectsError::Store("no owner".to_owned()))?;
        if found == *claim {
            return Ok(is_conditional);
        }
        // Another start came between.
        self.check(&found, claim.start.saturating_sub(1))?;
        Err(OpenObjectsError::Store("another start claims the objects: start again".to_owned()))
    }
}

async fn put(
    store: &dyn ObjectStore,
    claim: &OwnerClaim,
    mode: PutMode,
) -> object_store::Result<()> {
    let (object, payload) = (Path::from(OBJECT), PutPayload::from(claim.to_string()));
    let options = PutOptions { mode, ..PutOptions::default() };
    store.put_opts(&object, payload, options).await.map(drop)
}
