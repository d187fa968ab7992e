//! Which data directory and which object store belong together. Both sides record it: names of objects are unique in
//! one data directory only, so two on the same objects would overwrite and delete those of each other.
//!
//! In the data directory it is the file `blob-store`: a line with the URL, a line with a random id, and a line for each
//! claim that may be in the store: its number and its nonce. In the store it is the object `trestle-owner`, see
//! [`crate::owner`]. A start adds its claim to the file first, and leaves out those before the one in the store, so
//! that more than two lines are those of starts that failed. A store with another claim was used by a copy of the
//! directory, whatever the numbers are: a copy that lost a race must not own the store by starting again.

use std::{fs, io, path::Path as FilePath};

use object_store::{Error, ObjectStore, PutMode, PutOptions, PutPayload, path::Path};
use uuid::Uuid;

use crate::{
    ObjectsUrl, OpenObjectsError,
    owner::{OBJECT, OwnerClaim},
};

/// The file in the data directory.
pub(crate) const FILE: &str = "blob-store";
/// Most claims of failed starts that the file has: the store would have to apply one after as many later starts.
const CLAIMS_MAX: usize = 64;

/// What the data directory records of its store.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct StoreBinding {
    pub(crate) url: String,
    owner: String,
    /// The claims that may be in the store, in their order: number and nonce.
    claims: Vec<(u64, String)>,
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
        let (url, owner) = (lines.next(), lines.next());
        let claims = lines.map(|line| {
            let (start, nonce) = line.split_once(' ')?;
            let is_nonce = !nonce.is_empty() && !nonce.contains(char::is_whitespace);
            start.parse().ok().filter(|_| is_nonce).map(|start| (start, nonce.to_owned()))
        });
        let (Some(url), Some(owner), Some(claims)) = (url, owner, claims.collect()) else {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "blob-store is malformed"));
        };
        Ok(Some(Self { url, owner, claims }))
    }

    /// Records a new one, on stable storage.
    ///
    /// # Errors
    /// A directory that cannot be written.
    pub(crate) fn create(data_dir: &FilePath, url: &ObjectsUrl) -> io::Result<Self> {
        let (url, owner) = (url.to_string(), Uuid::new_v4().to_string());
        let binding = Self { url, owner, claims: Vec::new() };
        fs::create_dir_all(data_dir)?;
        binding.write(data_dir)?;
        Ok(binding)
    }

    fn write(&self, data_dir: &FilePath) -> io::Result<()> {
        let mut text = format!("{}\n{}\n", self.url, self.owner);
        for (start, nonce) in &self.claims {
            text += &format!("{start} {nonce}\n");
        }
        trestle_kv::replace_file(data_dir, FILE, text.as_bytes())
    }

    /// Claims the store by a number that is greater than those before, in the data directory and then in the store.
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
        let known = match &found {
            Some((found, _)) => self.check(found)?,
            None => 0,
        };
        self.claims.drain(..known.max(self.claims.len().saturating_sub(CLAIMS_MAX - 1)));
        let (owner, nonce) = (self.owner.clone(), Uuid::new_v4().to_string());
        let claim = OwnerClaim { owner, start: self.last_start().saturating_add(1), nonce };
        self.claims.push((claim.start, claim.nonce.clone()));
        self.write(data_dir)?;
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

    /// The number of the last start; 0 before the first.
    fn last_start(&self) -> u64 {
        self.claims.last().map_or(0, |(start, _)| *start)
    }

    /// Checks that a claim in the store is one of this data directory, or of a version without numbers. Returns its
    /// position in the claims here.
    ///
    /// # Errors
    /// [`OpenObjectsError::Claimed`], [`OpenObjectsError::Copied`].
    fn check(&self, found: &OwnerClaim) -> Result<usize, OpenObjectsError> {
        let url = || self.url.clone();
        if found.owner != self.owner {
            return Err(OpenObjectsError::Claimed { url: url() });
        }
        let is_found =
            |(start, nonce): &(u64, String)| *start == found.start && *nonce == found.nonce;
        match self.claims.iter().position(is_found) {
            Some(position) => Ok(position),
            None if found.start == 0 && found.nonce.is_empty() => Ok(0),
            None => {
                let (there, here) = (found.start, self.last_start());
                Err(OpenObjectsError::Copied { url: url(), there, here })
            }
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
        // Another start came between, or an earlier one of this data directory was applied late.
        self.check(&found)?;
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
