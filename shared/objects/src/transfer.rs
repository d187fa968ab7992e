//! Copying an object from one store to another, under the same path.

use bytes::Bytes;
use object_store::{Error, ObjectStore, ObjectStoreExt as _, PutPayload, path::Path};

use crate::{ObjectArea, WriteObjectError};

/// The result of copying an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ObjectTransfer {
    /// It was written; its bytes.
    Copied(u64),
    /// The target had it already, with the same content; its bytes.
    Present(u64),
    /// The source has no such object.
    Missing,
    /// That of the source has another length, in bytes; it was not written.
    OtherLength(u64),
}

/// An object was not copied.
#[derive(Debug, thiserror::Error)]
pub enum TransferError {
    /// The source failed.
    #[error("an object cannot be read: path=`{path}`: {source}")]
    Read {
        /// Its path.
        path: String,
        /// The error of the store.
        source: Error,
    },
    /// The source returned another number of bytes than the object has.
    #[error(
        "an object was not read to its end: path=`{path}`, bytes=`{found}`, expected=`{expected}`"
    )]
    Short {
        /// Its path.
        path: String,
        /// What was read.
        found: u64,
        /// What it has.
        expected: u64,
    },
    /// The target failed, or has another object of this name.
    #[error(transparent)]
    Write(#[from] WriteObjectError),
}

/// The bytes of an object; none where there is no such object.
///
/// # Errors
/// A failed store.
pub async fn object_size(from: &dyn ObjectStore, path: &str) -> Result<Option<u64>, TransferError> {
    match from.head(&Path::from(path)).await {
        Ok(found) => Ok(Some(found.size)),
        Err(Error::NotFound { .. }) => Ok(None),
        Err(source) => Err(TransferError::Read { path: path.to_owned(), source }),
    }
}

/// Copies an object of a known length whole, in memory. It is durable when this returns. An object of this name in the
/// target is never replaced: it is the same, or an error.
///
/// # Errors
/// Every kind of [`TransferError`].
pub async fn copy_object(
    from: &dyn ObjectStore,
    to: &ObjectArea,
    path: &str,
    bytes: u64,
) -> Result<ObjectTransfer, TransferError> {
    let Some(content) = read(from, path).await? else { return Ok(ObjectTransfer::Missing) };
    let found = content.len() as u64;
    if found != bytes {
        return Ok(ObjectTransfer::OtherLength(found));
    }
    if object_size(&*to.store, path).await?.is_none() {
        to.put(path, PutPayload::from(content)).await?;
        return Ok(ObjectTransfer::Copied(bytes));
    }
    match read(&*to.store, path).await? {
        Some(found) if found == content => Ok(ObjectTransfer::Present(bytes)),
        _ => Err(WriteObjectError::Occupied { path: path.to_owned() }.into()),
    }
}

async fn read(from: &dyn ObjectStore, path: &str) -> Result<Option<Bytes>, TransferError> {
    let failed = |source| TransferError::Read { path: path.to_owned(), source };
    let found = match from.get(&Path::from(path)).await {
        Ok(found) => found,
        Err(Error::NotFound { .. }) => return Ok(None),
        Err(source) => return Err(failed(source)),
    };
    let expected = found.meta.size;
    let content = found.bytes().await.map_err(failed)?;
    let found = content.len() as u64;
    match found == expected {
        true => Ok(Some(content)),
        false => Err(TransferError::Short { path: path.to_owned(), found, expected }),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use object_store::memory::InMemory;

    use super::*;

    #[tokio::test]
    async fn an_object_is_copied_once_and_never_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let in_files = ObjectArea::in_directory(&folder.path().join("blob"), None).unwrap();
        for to in [in_files, ObjectArea::in_memory()] {
            let from: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
            let put = async |path: &str, content: &'static str| {
                from.put(&Path::from(path), PutPayload::from(content)).await.unwrap();
            };
            put("main/1", "content").await;
            put("empty", "").await;

            for expected in [ObjectTransfer::Copied(7), ObjectTransfer::Present(7)] {
                assert_eq!(copy_object(&*from, &to, "main/1", 7).await.unwrap(), expected);
            }
            assert_eq!(object_size(&*to.store, "main/1").await.unwrap(), Some(7));
            let copied = read(&*to.store, "main/1").await.unwrap();
            assert_eq!(copied.as_deref(), Some(&b"content"[..]));
            let empty = copy_object(&*from, &to, "empty", 0).await.unwrap();
            assert_eq!(empty, ObjectTransfer::Copied(0));
            let missing = copy_object(&*from, &to, "absent", 7).await.unwrap();
            assert_eq!(missing, ObjectTransfer::Missing);
            assert_eq!(object_size(&*to.store, "absent").await.unwrap(), None);
            put("main/2", "conten").await;
            let cut = copy_object(&*from, &to, "main/2", 7).await.unwrap();
            assert_eq!(cut, ObjectTransfer::OtherLength(6));
            assert_eq!(object_size(&*to.store, "main/2").await.unwrap(), None);

            put("main/1", "another").await;
            let error = copy_object(&*from, &to, "main/1", 7).await.unwrap_err();
            assert!(error.to_string().contains("another object has this name"), "{error}");
            let kept = read(&*to.store, "main/1").await.unwrap();
            assert_eq!(kept.as_deref(), Some(&b"content"[..]));
        }
    }
}
