//! Files to blobs. A small file is one call; a large one is staged in blocks and then committed.
//!
//! The id of a block is a hash of its bytes, so a repeated copy finds the blocks that an interrupted one staged,
//! without a file that records them.

use std::{
    collections::{HashMap, HashSet},
    fs::File,
    io, iter,
    os::unix::fs::FileExt as _,
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::SystemTime,
};

use bytes::Bytes;
use crc64fast_nvme::Digest as Crc64;
use futures::{StreamExt as _, TryStreamExt as _, stream};
use tonic::Code;
use trestle_command::{errors::CliError, files, retry::repeated};
use trestle_proto::blob::v1::{
    BlobConditions, BlockRef, CommitBlocksRequest, GetBlockListRequest, HttpProperties,
    StageBlockRequest, StageBlockSpec, UploadFinish, WriteBlobRequest, WriteBlobSpec,
};
use xxhash_rust::xxh3::xxh3_128;

use super::{BlobTransfer, blocking, source_files::SourceFile};
use crate::blob::BlobAddress;

/// Length of a block, and of the longest file that is sent in one call.
const BLOCK_BYTES: u64 = 8 * 1024 * 1024;
/// Most blocks of a blob. The server's limit.
const BLOCKS_MAX: u64 = 50_000;
/// Data in a message. The server's limit is higher.
const MESSAGE_BYTES: usize = 1024 * 1024;

/// What is stored with the blobs.
pub(super) struct UploadOptions {
    pub(super) content_type: String,
    pub(super) tags: HashMap<String, String>,
    pub(super) lease_id: String,
}

/// An opened file, and the state that it must keep.
struct OpenedFile {
    path: PathBuf,
    file: File,
    size: u64,
    modified: Option<SystemTime>,
    /// Bytes that are counted as copied.
    sent: Arc<AtomicU64>,
}

/// Part of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct BlockRange {
    offset: u64,
    length: u64,
}

impl BlobTransfer {
    /// Copies the files.
    pub(super) async fn upload_all(
        &self,
        files: Vec<SourceFile>,
        options: &UploadOptions,
    ) -> Result<(), CliError> {
        self.progress.set_length(files.iter().map(|file| file.size).sum());
        let uploads = stream::iter(files.into_iter().map(Ok));
        let upload = |file: SourceFile| async move {
            let (name, sent) = (file.path.display().to_string(), Arc::default());
            let uploaded = self.upload(file, options, &sent).await;
            self.end_item((&name, sent.load(Ordering::Relaxed)), uploaded)
        };
        uploads.try_for_each_concurrent(self.parallel, upload).await
    }

    async fn upload(
        &self,
        source: SourceFile,
        options: &UploadOptions,
        sent: &Arc<AtomicU64>,
    ) -> Result<(), CliError> {
        let (path, sent) = (source.path, Arc::clone(sent));
        let file = Arc::new(blocking(move || OpenedFile::open(path, sent)).await?);
        match file.size <= BLOCK_BYTES {
            true => self.write(&file, &source.to, options).await?,
            false => self.write_blocks(&file, &source.to, options).await?,
        }
        Ok(())
    }

    /// The ids of the staged blocks.
    async fn staged(&self, to: &BlobAddress) -> Result<HashSet<Bytes>, CliError> {
        let BlobAddress { container, name: blob } = to.clone();
        let request = GetBlockListRequest { container, blob, ..Default::default() };
        let call = async || Ok(self.session.blobs().get_block_list(request.clone()).await?);
        match repeated::<_, CliError>(call).await {
            Ok(list) => Ok(list.into_inner().uncommitted.into_iter().map(|it| it.id).collect()),
            Err(CliError::Call(status)) if status.code() == Code::NotFound => Ok(HashSet::new()),
            Err(error) => Err(error),
        }
    }

    /// Writes the blob in one call.
    async fn write(
        &self,
        file: &Arc<OpenedFile>,
        to: &BlobAddress,
        options: &UploadOptions,
    ) -> Result<(), CliError> {
        let _slot = self.slot().await?;
        let data = file.read(BlockRange { offset: 0, length: file.size }).await?;
        file.verify_unchanged().await?;
        let spec = WriteBlobSpec {
            container: to.container.clone(),
            blob: to.name.clone(),
            properties: Some(options.properties()),
            tags: options.tags.clone(),
            conditions: Some(options.conditions()),
            ..Default::default()
        };
        let first = WriteBlobRequest { spec: Some(spec), ..Default::default() };
        let call = async || {
            let pieces = pieces(&data).map(|data| WriteBlobRequest { data, ..Default::default() });
            let end = WriteBlobRequest { finish: Some(finish(&data)), ..Default::default() };
            let messages = iter::once(first.clone()).chain(pieces).chain([end]);
            let messages = stream::iter(messages.collect::<Vec<_>>());
            Ok(self.session.blobs().write_blob(messages).await?)
        };
        repeated::<_, CliError>(call).await?;
        self.advance_file(file, file.size);
        Ok(())
    }

    /// Stages the blocks that are not staged, and commits all.
    async fn write_blocks(
        &self,
        file: &Arc<OpenedFile>,
        to: &BlobAddress,
        options: &UploadOptions,
    ) -> Result<(), CliError> {
        let staged = self.staged(to).await?;
        let staged_blocks = stream::iter(blocks(file.size)).map(|range| {
            let (staged, lease_id) = (&staged, options.lease_id.as_str());
            async move { self.stage(file, range, to, (staged, lease_id)).await }
        });
        let ids: Vec<Bytes> = staged_blocks.buffered(self.parallel).try_collect().await?;
        file.verify_unchanged().await?;
        let request = CommitBlocksRequest {
            container: to.container.clone(),
            blob: to.name.clone(),
            blocks: ids.into_iter().map(|id| BlockRef { id, ..Default::default() }).collect(),
            properties: Some(options.properties()),
            tags: options.tags.clone(),
            conditions: Some(options.conditions()),
            ..Default::default()
        };
        let call = async || Ok(self.session.blobs().commit_blocks(request.clone()).await?);
        repeated::<_, CliError>(call).await.map(drop)
    }

    /// Stages a block unless it is staged; its id.
    async fn stage(
        &self,
        file: &Arc<OpenedFile>,
        range: BlockRange,
        to: &BlobAddress,
        (staged, lease_id): (&HashSet<Bytes>, &str),
    ) -> Result<Bytes, CliError> {
        let _slot = self.slot().await?;
        let data = file.read(range).await?;
        let id = Bytes::copy_from_slice(&xxh3_128(&data).to_be_bytes());
        if !staged.contains(&id) {
            let spec = StageBlockSpec {
                container: to.container.clone(),
                blob: to.name.clone(),
                block_id: id.clone(),
                lease_id: lease_id.to_owned(),
                ..StageBlockSpec::default()
            };
            let first = StageBlockRequest { spec: Some(spec), ..Default::default() };
            let call = async || {
                let pieces = pieces(&data);
                let pieces = pieces.map(|data| StageBlockRequest { data, ..Default::default() });
                let end = StageBlockRequest { finish: Some(finish(&data)), ..Default::default() };
                let messages = iter::once(first.clone()).chain(pieces).chain([end]);
                let messages = stream::iter(messages.collect::<Vec<_>>());
                Ok(self.session.blobs().stage_block(messages).await?)
            };
            repeated::<_, CliError>(call).await?;
        }
        self.advance_file(file, range.length);
        Ok(id)
    }

    /// Counts bytes of a file that were sent, or that the server has.
    fn advance_file(&self, file: &OpenedFile, bytes: u64) {
        file.sent.fetch_add(bytes, Ordering::Relaxed);
        self.advance(bytes);
    }
}

impl UploadOptions {
    fn properties(&self) -> HttpProperties {
        HttpProperties { content_type: self.content_type.clone(), ..Default::default() }
    }

    fn conditions(&self) -> BlobConditions {
        BlobConditions { lease_id: self.lease_id.clone(), ..Default::default() }
    }
}

impl OpenedFile {
    fn open(path: PathBuf, sent: Arc<AtomicU64>) -> Result<Self, CliError> {
        let opened = File::open(&path).and_then(|file| Ok((file.metadata()?, file)));
        let (found, file) = opened.map_err(CliError::file(files::cannot("read", &path)))?;
        Ok(Self { path, file, size: found.len(), modified: found.modified().ok(), sent })
    }

    /// Part of the file.
    async fn read(self: &Arc<Self>, range: BlockRange) -> Result<Bytes, CliError> {
        let file = Arc::clone(self);
        blocking(move || {
            let mut data = vec![0; usize::try_from(range.length).unwrap_or(usize::MAX)];
            let read = file.file.read_exact_at(&mut data, range.offset);
            read.map_err(CliError::file(files::cannot("read", &file.path)))?;
            Ok(data.into())
        })
        .await
    }

    /// Verifies that it is as it was when it was opened.
    async fn verify_unchanged(self: &Arc<Self>) -> Result<(), CliError> {
        let file = Arc::clone(self);
        blocking(move || {
            let failed = || CliError::file(files::cannot("read", &file.path));
            let found = file.file.metadata().map_err(failed())?;
            match found.len() == file.size && found.modified().ok() == file.modified {
                true => Ok(()),
                false => Err(failed()(io::Error::other("it changed while it was copied"))),
            }
        })
        .await
    }
}

/// The blocks of a file of this length.
fn blocks(size: u64) -> impl Iterator<Item = BlockRange> {
    let longest = BLOCK_BYTES.max(size.div_ceil(BLOCKS_MAX));
    (0..size.div_ceil(longest)).map(move |index| {
        let offset = index * longest;
        BlockRange { offset, length: longest.min(size - offset) }
    })
}

/// The data of the messages of an upload.
fn pieces(data: &Bytes) -> impl Iterator<Item = Bytes> {
    data.chunks(MESSAGE_BYTES).map(|piece| data.slice_ref(piece))
}

/// The end of an upload: the server verifies length and checksum.
fn finish(data: &Bytes) -> UploadFinish {
    let mut crc = Crc64::new();
    crc.write(data);
    UploadFinish { crc64: Some(crc.sum64()), size: Some(data.len() as u64), ..Default::default() }
}

#[cfg(test)]
mod tests;
