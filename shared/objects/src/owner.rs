//! Which start owns the objects of a store. Each raises a number in the store, under a condition; a process that finds
//! a later start of other records writes and deletes nothing from then on. So of two servers with copies of one data
//! directory, or of one database, only the later one goes on, and deletes no object that only the other refers to.
//! Processes that serve one database own the objects together: the start of each is recorded in it.

use std::{
    fmt,
    ops::Range,
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError},
    time::Duration,
};

use async_trait::async_trait;
use bytes::Bytes;
use futures::{StreamExt as _, TryStreamExt as _, stream::BoxStream};
use object_store::{
    CopyOptions, Error, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta,
    ObjectStore, ObjectStoreExt as _, PutMultipartOptions, PutOptions, PutPayload, PutResult,
    Result, UpdateVersion, path::Path,
};

use trestle_model::time::{Clock as _, SystemClock};

use crate::binding::{BindingRecord, StoreBinding};

/// The object in the store.
pub(crate) const OBJECT: &str = "trestle-owner";
/// How long a process may delete before it looks again whether it still owns the objects.
const VERIFIED_FOR: Duration = Duration::from_secs(1);

/// The content of the object in the store: `OWNER START NONCE`; of earlier versions only `OWNER`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct OwnerClaim {
    /// The id of the records.
    pub(crate) owner: String,
    /// The number of the start.
    pub(crate) start: u64,
    /// Random: two starts may have the same number where the store ignores conditions.
    pub(crate) nonce: String,
}

impl OwnerClaim {
    fn parse(text: &str) -> Option<Self> {
        let mut words = text.split_whitespace().map(str::to_owned);
        let owner = words.next()?;
        let start = words.next().map_or(Some(0), |start| start.parse().ok())?;
        Some(Self { owner, start, nonce: words.next().unwrap_or_default() })
    }

    /// What a store has, and the version that a condition names; none where no data directory owns it.
    ///
    /// # Errors
    /// A failed store, or an object that is malformed.
    pub(crate) async fn read(store: &dyn ObjectStore) -> Result<Option<(Self, UpdateVersion)>> {
        let found = match store.get(&Path::from(OBJECT)).await {
            Err(Error::NotFound { .. }) => return Ok(None),
            found => found?,
        };
        let ObjectMeta { e_tag, version, .. } = found.meta.clone();
        let bytes = found.bytes().await?;
        let claim = std::str::from_utf8(&bytes).ok().and_then(Self::parse);
        let malformed = || failed(format!("`{OBJECT}` is malformed"));
        let claim = claim.ok_or_else(malformed)?;
        Ok(Some((claim, UpdateVersion { e_tag, version })))
    }
}

impl fmt::Display for OwnerClaim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { owner, start, nonce } = self;
        write!(f, "{owner} {start} {nonce}")
    }
}

/// Whether this process owns the objects of its store. Clones share it.
#[derive(Debug, Clone)]
pub struct StoreOwner(Arc<OwnerState>);

#[derive(Debug)]
struct OwnerState {
    store: Arc<dyn ObjectStore>,
    url: String,
    claim: OwnerClaim,
    /// Where other processes that own the objects too record their claims, if there may be any.
    shared: Option<Arc<dyn BindingRecord>>,
    lost: OnceLock<String>,
    verified: Mutex<Option<VerifiedClaim>>,
}

/// The last time that this process owned the objects, by which claim in the store.
#[derive(Debug)]
struct VerifiedClaim {
    /// Elapsed time, which goes on while the machine is suspended.
    at: Duration,
    claim: OwnerClaim,
}

impl StoreOwner {
    /// The owner of `store` by this claim, which the store has, or by one that is recorded beside it.
    pub(crate) fn new(
        store: Arc<dyn ObjectStore>,
        url: String,
        claim: OwnerClaim,
        shared: Option<Arc<dyn BindingRecord>>,
    ) -> Self {
        let (lost, verified) = (OnceLock::new(), Mutex::default());
        Self(Arc::new(OwnerState { store, url, claim, shared, lost, verified }))
    }

    /// Why this process does not own the objects any more; none while it does.
    #[must_use]
    pub fn lost(&self) -> Option<&str> {
        self.0.lost.get().map(String::as_str)
    }

    /// Looks whether this process still owns the objects.
    ///
    /// # Errors
    /// A failed store; nothing is known then.
    pub async fn check(&self) -> Result<()> {
        let OwnerState { url, claim, lost, .. } = &*self.0;
        let at = SystemClock.elapsed();
        let mut found = self.found().await?;
        while !self.is_own(&found).await? {
            let again = self.found().await?;
            // Another one by now: a claim that was recorded and left out since it was read.
            if again != found {
                found = again;
                continue;
            }
            let reason = format!(
                "another server uses the objects of this one: url=`{url}`, start=`{}`, of this \
                 process=`{}`; stop one of them, see docs/operations.md, Blobs in a cloud",
                found.start, claim.start
            );
            if lost.set(reason.clone()).is_ok() {
                tracing::error!(reason, "objects are neither written nor deleted any more");
            }
            return Ok(());
        }
        *self.verified() = Some(VerifiedClaim { at, claim: found });
        Ok(())
    }

    /// The claim that the store has.
    async fn found(&self) -> Result<OwnerClaim> {
        let OwnerState { store, url, .. } = &*self.0;
        let absent = || failed(format!("`{OBJECT}` is absent: url=`{url}`"));
        OwnerClaim::read(&**store).await?.map(|(found, _)| found).ok_or_else(absent)
    }

    /// Whether a claim is that of this process, or of another one with the same records.
    async fn is_own(&self, found: &OwnerClaim) -> Result<bool> {
        let OwnerState { claim, shared, .. } = &*self.0;
        if found == claim || self.verified().as_ref().is_some_and(|it| it.claim == *found) {
            return Ok(true);
        }
        let Some(record) = shared else { return Ok(false) };
        let text = record.read().await.map_err(|error| failed(error.to_string()))?;
        let binding = text.as_deref().map(str::parse::<StoreBinding>).transpose();
        let binding = binding.map_err(|error| failed(error.to_string()))?;
        Ok(binding.is_some_and(|binding| binding.check(found).is_ok()))
    }

    fn verified(&self) -> MutexGuard<'_, Option<VerifiedClaim>> {
        self.0.verified.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// # Errors
    /// The objects are owned by another process.
    fn require(&self) -> Result<()> {
        self.lost().map_or(Ok(()), |reason| Err(failed(reason.to_owned())))
    }

    /// # Errors
    /// The objects are owned by another process, or that is not known.
    async fn verify(&self) -> Result<()> {
        let at = self.verified().as_ref().map(|verified| verified.at);
        if at.is_none_or(|at| SystemClock.elapsed().saturating_sub(at) > VERIFIED_FOR) {
            self.check().await?;
        }
        self.require()
    }
}

fn failed(reason: String) -> Error {
    Error::Generic { store: "owner", source: reason.into() }
}

/// A store whose objects are written and deleted by their owner only.
#[derive(Debug)]
pub(crate) struct OwnedStore {
    inner: Arc<dyn ObjectStore>,
    owner: StoreOwner,
}

impl OwnedStore {
    pub(crate) fn new(inner: Arc<dyn ObjectStore>, owner: StoreOwner) -> Self {
        Self { inner, owner }
    }
}

impl fmt::Display for OwnedStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt(f)
    }
}

#[async_trait]
impl ObjectStore for OwnedStore {
    async fn put_opts(
        &self,
        location: &Path,
        payload: PutPayload,
        options: PutOptions,
    ) -> Result<PutResult> {
        self.owner.require()?;
        self.inner.put_opts(location, payload, options).await
    }

    async fn put_multipart_opts(
        &self,
        location: &Path,
        options: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        self.owner.require()?;
        self.inner.put_multipart_opts(location, options).await
    }

    async fn get_opts(&self, location: &Path, options: GetOptions) -> Result<GetResult> {
        self.inner.get_opts(location, options).await
    }

    async fn get_ranges(&self, location: &Path, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        self.inner.get_ranges(location, ranges).await
    }

    fn delete_stream(
        &self,
        locations: BoxStream<'static, Result<Path>>,
    ) -> BoxStream<'static, Result<Path>> {
        let (inner, owner) = (Arc::clone(&self.inner), self.owner.clone());
        let deleted = async move { owner.verify().await.map(|()| inner.delete_stream(locations)) };
        futures::stream::once(deleted).try_flatten().boxed()
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        self.inner.list(prefix)
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        self.inner.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        self.owner.require()?;
        self.inner.copy_opts(from, to, options).await
    }
}
