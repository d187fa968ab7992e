//! Which store of records and which object store belong together. Both sides record it: names of objects are unique in
//! one store of records only, so two on the same objects would overwrite and delete those of each other.
//!
//! On the side of the records it is a text: the file `blob-store` of a data directory, or a row of a database that
//! several processes serve. It has a line with the URL, a line with a random id, and a line for each claim that may be
//! in the object store: its number and its nonce. There it is the object `trestle-owner`, see [`crate::owner`]. A start
//! adds its claim to the text first, and leaves out those before the one in the object store, so that more than two
//! lines are those of starts that failed. An object store with another claim was used by a copy of the records,
//! whatever the numbers are: a copy that lost a race must not own it by starting again.

use std::{
    fmt, fs, io,
    path::{Path as FilePath, PathBuf},
    str::FromStr,
    time::Duration,
};

use async_trait::async_trait;
use object_store::{Error, ObjectStore, PutMode, PutOptions, PutPayload, path::Path};
use uuid::Uuid;

use crate::{
    ObjectsUrl, OpenObjectsError,
    owner::{OBJECT, OwnerClaim},
};

/// The file in the data directory.
pub(crate) const FILE: &str = "blob-store";
/// Most claims of failed starts that the text has: the store would have to apply one after as many later starts.
const CLAIMS_MAX: usize = 64;
/// How often a start claims a store that other starts claim meanwhile.
const ATTEMPTS_MAX: u32 = 32;
/// How much longer it waits before each next time.
const PAUSE: Duration = Duration::from_millis(20);

/// Where a store of records keeps which objects are its own.
#[async_trait]
pub trait BindingRecord: fmt::Debug + Send + Sync {
    /// What is kept; none at first.
    ///
    /// # Errors
    /// A failed read.
    async fn read(&self) -> Result<Option<String>, OpenObjectsError>;

    /// Keeps `text` on stable storage, in place of `found`. Returns false where another process replaced that
    /// meanwhile.
    ///
    /// # Errors
    /// A failed write.
    async fn replace(&self, found: Option<&str>, text: &str) -> Result<bool, OpenObjectsError>;
}

/// The file of a data directory, which one process has at a time.
#[derive(Debug, Clone)]
pub(crate) struct BindingFile(pub(crate) PathBuf);

#[async_trait]
impl BindingRecord for BindingFile {
    async fn read(&self) -> Result<Option<String>, OpenObjectsError> {
        Ok(read(&self.0)?)
    }

    async fn replace(&self, _: Option<&str>, text: &str) -> Result<bool, OpenObjectsError> {
        fs::create_dir_all(&self.0)?;
        trestle_kv::replace_file(&self.0, FILE, text.as_bytes())?;
        Ok(true)
    }
}

fn read(data_dir: &FilePath) -> io::Result<Option<String>> {
    match fs::read_to_string(data_dir.join(FILE)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        text => text.map(Some),
    }
}

/// What a store of records keeps of its objects.
#[derive(Debug, Clone, PartialEq, Eq)]
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

/// How a try to claim a store ended.
enum ClaimTry {
    Claimed(ClaimedStore),
    /// Another start came between.
    Raced,
}

impl FromStr for StoreBinding {
    type Err = io::Error;

    fn from_str(text: &str) -> io::Result<Self> {
        let mut lines = text.lines().map(str::to_owned);
        let (url, owner) = (lines.next(), lines.next());
        let claims = lines.map(|line| {
            let (start, nonce) = line.split_once(' ')?;
            let is_nonce = !nonce.is_empty() && !nonce.contains(char::is_whitespace);
            start.parse().ok().filter(|_| is_nonce).map(|start| (start, nonce.to_owned()))
        });
        let (Some(url), Some(owner), Some(claims)) = (url, owner, claims.collect()) else {
            return Err(io::Error::new(
                io::ErrorKind::InvalidData,
                "the record of its objects is malformed",
            ));
        };
        Ok(Self { url, owner, claims })
    }
}

impl fmt::Display for StoreBinding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}\n{}", self.url, self.owner)?;
        self.claims.iter().try_for_each(|(start, nonce)| writeln!(f, "{start} {nonce}"))
    }
}

impl StoreBinding {
    /// That of a data directory; none where blobs are in files of it.
    ///
    /// # Errors
    /// A file that cannot be read, or is malformed.
    pub(crate) fn in_directory(data_dir: &FilePath) -> io::Result<Option<Self>> {
        read(data_dir)?.map(|text| text.parse()).transpose()
    }

    /// Of records that have no objects yet.
    pub(crate) fn new(url: &ObjectsUrl) -> Self {
        Self { url: url.to_string(), owner: Uuid::new_v4().to_string(), claims: Vec::new() }
    }

    /// Claims the object store at a URL by a number that is greater than those before, in the record and then in the
    /// store.
    ///
    /// # Errors
    /// [`OpenObjectsError::Elsewhere`] for a record of another URL, [`OpenObjectsError::Claimed`] for a store of other
    /// records, [`OpenObjectsError::Copied`] for one that a copy of these records used later,
    /// [`OpenObjectsError::Store`], or a failed record.
    pub(crate) async fn claim(
        record: &dyn BindingRecord,
        url: &ObjectsUrl,
        store: &dyn ObjectStore,
    ) -> Result<ClaimedStore, OpenObjectsError> {
        // Before anything is asked of a place that may be another one.
        Self::recorded(record, url).await?;
        for attempt in 0..ATTEMPTS_MAX {
            tokio::time::sleep(PAUSE * attempt).await;
            if let ClaimTry::Claimed(claimed) = Self::try_claim(record, url, store).await? {
                if !claimed.is_conditional {
                    tracing::warn!(
                        %url,
                        "the object store ignores the conditions of requests: objects are compared before \
                         they are written, and two servers on them may be detected seconds late"
                    );
                }
                return Ok(claimed);
            }
        }
        Err(OpenObjectsError::Store("other starts claim the objects: start again".to_owned()))
    }

    /// What is kept of the objects at a URL, and its text where it is kept already.
    async fn recorded(
        record: &dyn BindingRecord,
        url: &ObjectsUrl,
    ) -> Result<(Option<String>, Self), OpenObjectsError> {
        let text = record.read().await?;
        let stored = text.as_deref().map(str::parse).transpose();
        let stored =
            stored.map_err(|error: io::Error| OpenObjectsError::Record(error.to_string()))?;
        let binding: Self = stored.unwrap_or_else(|| Self::new(url));
        match binding.url == url.to_string() {
            true => Ok((text, binding)),
            false => Err(OpenObjectsError::Elsewhere { found: binding.url }),
        }
    }

    async fn try_claim(
        record: &dyn BindingRecord,
        url: &ObjectsUrl,
        store: &dyn ObjectStore,
    ) -> Result<ClaimTry, OpenObjectsError> {
        let failed = |error: Error| OpenObjectsError::of(&error);
        // In this order: a claim is recorded before it is in the store.
        let found = OwnerClaim::read(store).await.map_err(failed)?;
        let (text, mut binding) = Self::recorded(record, url).await?;
        let known = match &found {
            None => 0,
            Some((found, _)) => match binding.check(found) {
                Ok(known) => known,
                Err(error) => return raced_unless_same(store, found, error).await,
            },
        };
        binding.claims.drain(..known);
        // The one that the store has stays, whatever follows it.
        let first = usize::from(found.is_some()).min(binding.claims.len());
        let too_many = binding.claims.len().saturating_sub(CLAIMS_MAX - 1);
        binding.claims.drain(first..first + too_many);
        let (owner, nonce) = (binding.owner.clone(), Uuid::new_v4().to_string());
        let claim = OwnerClaim { owner, start: binding.last_start().saturating_add(1), nonce };
        binding.claims.push((claim.start, claim.nonce.clone()));
        if !record.replace(text.as_deref(), &binding.to_string()).await? {
            return Ok(ClaimTry::Raced);
        }
        let mode = found.map_or(PutMode::Create, |(_, version)| PutMode::Update(version));
        let Some(mut is_conditional) = binding.put(store, &claim, mode.clone()).await? else {
            return Ok(ClaimTry::Raced);
        };
        if is_conditional {
            // The store has another version now, and an object of this name: both must fail.
            for mode in [mode, PutMode::Create] {
                is_conditional &= put(store, &claim, mode).await.is_err();
            }
        }
        Ok(ClaimTry::Claimed(ClaimedStore { claim, is_conditional }))
    }

    /// The number of the last start; 0 before the first.
    fn last_start(&self) -> u64 {
        self.claims.last().map_or(0, |(start, _)| *start)
    }

    /// Checks that a claim in the store is one of these records, or of a version without numbers. Returns its position
    /// in the claims here.
    ///
    /// # Errors
    /// [`OpenObjectsError::Claimed`], [`OpenObjectsError::Copied`].
    pub(crate) fn check(&self, found: &OwnerClaim) -> Result<usize, OpenObjectsError> {
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

    /// Writes a claim. Returns whether the store applied the condition; none where another start came between.
    ///
    /// # Errors
    /// As [`StoreBinding::claim`].
    async fn put(
        &self,
        store: &dyn ObjectStore,
        claim: &OwnerClaim,
        mode: PutMode,
    ) -> Result<Option<bool>, OpenObjectsError> {
        let failed = |error: Error| OpenObjectsError::of(&error);
        let is_conditional = match put(store, claim, mode).await {
            Ok(()) => return Ok(Some(true)),
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
        Ok((found == *claim).then_some(is_conditional))
    }
}

/// A claim that is not recorded is that of others, unless the store has another one by now: then a start of the same
/// records replaced it, and left it out of the record, since both were read.
async fn raced_unless_same(
    store: &dyn ObjectStore,
    found: &OwnerClaim,
    error: OpenObjectsError,
) -> Result<ClaimTry, OpenObjectsError> {
    let now = OwnerClaim::read(store).await.map_err(|error| OpenObjectsError::of(&error))?;
    match now {
        Some((now, _)) if now == *found => Err(error),
        _ => Ok(ClaimTry::Raced),
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
