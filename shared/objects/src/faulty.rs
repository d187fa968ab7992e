//! An object store in memory that fails as a test plans it.

use std::{
    collections::VecDeque,
    fmt, io,
    ops::Range,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use bytes::Bytes;
use futures::{StreamExt as _, stream::BoxStream};
use object_store::{
    CopyOptions, Error, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta,
    ObjectStore, PutMultipartOptions, PutOptions, PutPayload, PutResult, Result, memory::InMemory,
    path::Path,
};

/// What becomes of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ObjectFault {
    /// It succeeds.
    None,
    /// It fails and does nothing.
    Failed,
    /// It fails on a full disk.
    Full,
    /// It fails after it was done: its acknowledgement is lost.
    Unacknowledged,
    /// A read returns too few bytes, or changed ones.
    Damaged,
    /// It succeeds after a long time.
    Slow,
}

/// How long a slow call takes.
const SLOW: Duration = Duration::from_secs(60);

/// See the module.
#[derive(Debug, Default)]
pub struct FaultyObjects {
    inner: InMemory,
    plan: Mutex<VecDeque<ObjectFault>>,
}

impl FaultyObjects {
    /// The next calls go as planned, those after them succeed.
    pub fn plan(&self, faults: impl IntoIterator<Item = ObjectFault>) {
        *self.plan.lock().unwrap_or_else(PoisonError::into_inner) = faults.into_iter().collect();
    }

    fn next(&self) -> ObjectFault {
        let mut plan = self.plan.lock().unwrap_or_else(PoisonError::into_inner);
        plan.pop_front().unwrap_or(ObjectFault::None)
    }

    async fn run<T>(&self, call: impl Future<Output = Result<T>>) -> Result<(T, ObjectFault)> {
        let failed = || Error::Generic { store: "faulty", source: "planned".into() };
        match self.next() {
            ObjectFault::Failed => Err(failed()),
            ObjectFault::Full => {
                let full = io::Error::from(io::ErrorKind::StorageFull);
                Err(Error::Generic { store: "faulty", source: full.into() })
            }
            ObjectFault::Unacknowledged => call.await.and(Err(failed())),
            ObjectFault::Slow => {
                tokio::time::sleep(SLOW).await;
                Ok((call.await?, ObjectFault::None))
            }
            fault => Ok((call.await?, fault)),
        }
    }
}

impl fmt::Display for FaultyObjects {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("FaultyObjects")
    }
}

#[async_trait::async_trait]
impl ObjectStore for FaultyObjects {
    async fn put_opts(
        &self,
        location: &Path,
        payload: PutPayload,
        options: PutOptions,
    ) -> Result<PutResult> {
        Ok(self.run(self.inner.put_opts(location, payload, options)).await?.0)
    }

    async fn put_multipart_opts(
        &self,
        location: &Path,
        options: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        self.inner.put_multipart_opts(location, options).await
    }

    async fn get_opts(&self, location: &Path, options: GetOptions) -> Result<GetResult> {
        self.inner.get_opts(location, options).await
    }

    async fn get_ranges(&self, location: &Path, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        let (mut parts, fault) = self.run(self.inner.get_ranges(location, ranges)).await?;
        if fault == ObjectFault::Damaged
            && let Some(data) = parts.first_mut()
        {
            let mut damaged = data.to_vec();
            match damaged.last_mut().filter(|last| **last % 2 == 0) {
                Some(last) => *last ^= 0x10,
                None => drop(damaged.pop()),
            }
            *data = damaged.into();
        }
        Ok(parts)
    }

    fn delete_stream(
        &self,
        locations: BoxStream<'static, Result<Path>>,
    ) -> BoxStream<'static, Result<Path>> {
        match self.next() {
            ObjectFault::Failed => {
                let failed = || Error::Generic { store: "faulty", source: "planned".into() };
                locations.map(move |_| Err(failed())).boxed()
            }
            _ => self.inner.delete_stream(locations),
        }
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        self.inner.list(prefix)
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        self.inner.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        self.inner.copy_opts(from, to, options).await
    }
}
