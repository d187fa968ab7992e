//! The content of blobs, which Azurite stores in files of many: extents.

use std::{
    collections::HashMap,
    io::ErrorKind,
    os::unix::fs::FileExt as _,
    path::{Path, PathBuf},
    sync::Arc,
};

use bytes::Bytes;
use serde::Deserialize;
use trestle_command::errors::CliError;

use super::{blob_documents::ExtentPiece, loki, regular_file};
use crate::blobs::{BlobFailure, ImportedContent, PagesWithData};

/// The list of extents in its database.
const EXTENTS: &str = "$EXTENTS_COLLECTION$";

/// An extent in the list of extents.
#[derive(Deserialize)]
struct ExtentDocument {
    id: String,
    /// The name of its file.
    path: String,
}

/// The files of extents.
#[derive(Debug, Default)]
pub(super) struct Extents {
    directory: PathBuf,
    /// Names of files by the ids of extents.
    files: HashMap<String, String>,
}

impl Extents {
    /// Reads the list of extents, if there is one; without it an extent is a file of its id.
    pub(super) async fn open(
        directory: PathBuf,
        database: Option<&Path>,
    ) -> Result<Self, CliError> {
        let mut files = HashMap::new();
        if let Some(path) = database {
            let text = loki::read(path).await?;
            let database = loki::parse(&text, path)?;
            let lists = database.collections.iter().filter(|it| it.name == EXTENTS);
            for (number, json) in lists.flat_map(|list| list.documents(0)) {
                let document: ExtentDocument = serde_json::from_str(json).map_err(|error| {
                    let what = format!("document {number} of `{EXTENTS}`");
                    CliError::Usage(format!("{what} is not as Azurite writes it: {error}"))
                })?;
                files.insert(document.id, document.path);
            }
        }
        Ok(Self { directory, files })
    }

    /// Bytes of one extent.
    fn read(&self, id: &str, offset: u64, bytes: usize) -> Result<Vec<u8>, String> {
        let name = self.files.get(id).map_or(id, String::as_str);
        // Names come from an untrusted file.
        if name.is_empty() || !name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-') {
            let rule = "its content is in a file with a name that Azurite does not use";
            return Err(format!("{rule}: `{name}`"));
        }
        let mut data = vec![0; bytes];
        let read = regular_file::open_in(&self.directory, name);
        let read = read.and_then(|file| file.read_exact_at(&mut data, offset));
        read.map_err(|error| match error.kind() {
            ErrorKind::NotFound => {
                format!("its content is missing: file=`{name}` does not exist")
            }
            ErrorKind::UnexpectedEof => {
                format!("its content is missing: file=`{name}` ends before it")
            }
            _ => format!("its content cannot be read: file=`{name}`, {error}"),
        })?;
        Ok(data)
    }
}

/// The content of a state of a blob.
pub(super) struct StoredContent {
    pub(super) extents: Arc<Extents>,
    /// By offset.
    pub(super) pieces: Arc<Vec<ExtentPiece>>,
}

impl StoredContent {
    /// The parts of pieces within a range of the blob.
    fn within(&self, offset: u64, length: u64) -> impl Iterator<Item = ExtentPiece> {
        let end = offset.saturating_add(length);
        let ends_before = |piece: &ExtentPiece| piece.end() <= offset;
        let first = self.pieces.partition_point(ends_before);
        let pieces = self.pieces.get(first..).unwrap_or_default().iter();
        pieces.take_while(move |piece| piece.offset < end).map(move |piece| {
            let from = piece.offset.max(offset);
            let mut part = ExtentPiece { offset: from, location: piece.location.clone() };
            part.location.offset = part.location.offset.saturating_add(from - piece.offset);
            part.location.count = piece.end().min(end) - from;
            part
        })
    }
}

impl ExtentPiece {
    fn end(&self) -> u64 {
        self.offset.saturating_add(self.location.count)
    }
}

impl ImportedContent for StoredContent {
    async fn read(&self, offset: u64, length: u64) -> Result<Bytes, BlobFailure> {
        let (extents, parts) = (Arc::clone(&self.extents), self.within(offset, length));
        let parts: Vec<_> = parts.collect();
        let read = tokio::task::spawn_blocking(move || {
            let mut data = Vec::new();
            for ExtentPiece { location, .. } in parts {
                let bytes = usize::try_from(location.count).map_err(|error| error.to_string())?;
                data.extend(extents.read(&location.id, location.offset, bytes)?);
            }
            Ok(data)
        });
        let failed = |error: tokio::task::JoinError| CliError::file("cannot read")(error.into());
        read.await.map_err(failed)?.map(Bytes::from).map_err(BlobFailure::Item)
    }

    async fn pages(&self, offset: u64, length: u64) -> Result<Vec<PagesWithData>, BlobFailure> {
        let parts = self.within(offset, length);
        let pages =
            |it: ExtentPiece| PagesWithData { offset: it.offset, length: it.location.count };
        Ok(parts.map(pages).collect())
    }
}

#[cfg(test)]
mod tests;
