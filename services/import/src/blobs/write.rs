//! Writes the content of a blob: every call states length and checksum of its bytes, which the server verifies.

use std::{iter, vec};

use bytes::Bytes;
use crc64fast_nvme::Digest as Crc64;
use futures::stream;
use tonic::Status;
use trestle_command::retry::{Retries, repeated};
use trestle_proto::blob::v1::{
    AccessTier, AppendBlockRequest, AppendBlockSpec, BlockRef, CommitBlocksRequest,
    CreateAppendBlobRequest, CreatePageBlobRequest, GetBlobRequest, SealBlobRequest,
    StageBlockRequest, StageBlockSpec, UploadFinish, WriteBlobRequest, WriteBlobSpec,
    WritePagesRequest, WritePagesSpec,
};

use super::{
    BlobFailure, BlobTarget, ImportedBlob, ImportedContent, ImportedKind, PagesWithData,
    WINDOW_BYTES, WINDOWS_MAX, failure::reason, verify::ContentSum,
};

/// Most blocks of a blob. The server's limit.
const BLOCKS_MAX: u64 = 50_000;
/// Longest block: all windows of an import.
const BLOCK_BYTES_MAX: u64 = WINDOW_BYTES * WINDOWS_MAX as u64;
/// Data in a message. The server's limit is higher.
const MESSAGE_BYTES: usize = 1024 * 1024;
/// Bytes of a page blob whose pages with data are listed at once: at most 262,144 ranges.
pub(super) const PAGES_SPAN_BYTES: u64 = 256 * 1024 * 1024;
/// The reason of the server where an append blob has another length.
const POSITION_NOT_MET: &str = "APPEND_POSITION_CONDITION_NOT_MET";

/// Bytes of each block of a blob but the last one.
pub(super) fn block_bytes(blob: &ImportedBlob) -> Result<u64, BlobFailure> {
    if matches!(blob.kind, ImportedKind::Page { .. }) {
        return Ok(WINDOW_BYTES);
    }
    let bytes = blob.size.div_ceil(BLOCKS_MAX).div_ceil(WINDOW_BYTES).max(1) * WINDOW_BYTES;
    match bytes <= BLOCK_BYTES_MAX {
        true => Ok(bytes),
        false => {
            let bytes_max = BLOCK_BYTES_MAX * BLOCKS_MAX;
            let text = format!("it has {} bytes, and at most {bytes_max} are copied", blob.size);
            Err(BlobFailure::Item(text))
        }
    }
}

/// The blocks of a length: offset and length of each.
fn blocks(size: u64, longest: u64) -> impl Iterator<Item = (u64, u64)> {
    (0..size.div_ceil(longest)).map(move |index| {
        let offset = index * longest;
        (offset, longest.min(size - offset))
    })
}

impl BlobTarget<'_> {
    /// Writes a state of a blob over what has its name; the sum of its content.
    pub(super) async fn write<C: ImportedContent>(
        &self,
        blob: &ImportedBlob,
        content: &C,
        is_written: &mut bool,
    ) -> Result<ContentSum, BlobFailure> {
        match blob.kind {
            ImportedKind::Block if blob.size <= WINDOW_BYTES => {
                self.write_at_once(blob, content, is_written).await
            }
            ImportedKind::Block => self.write_blocks(blob, content, is_written).await,
            ImportedKind::Append { .. } => self.append_all(blob, content, is_written).await,
            ImportedKind::Page { sequence_number } => {
                self.create_pages(blob, sequence_number).await?;
                *is_written = true;
                self.write_pages(blob, content).await
            }
        }
    }

    async fn write_at_once<C: ImportedContent>(
        &self,
        blob: &ImportedBlob,
        content: &C,
        is_written: &mut bool,
    ) -> Result<ContentSum, BlobFailure> {
        let (data, mut sum) = (block(content, 0, blob.size).await?, ContentSum::default());
        data.iter().for_each(|piece| sum.add(piece));
        sum.verify_stated(&blob.properties)?;
        let spec = WriteBlobSpec {
            container: self.container.to_owned(),
            blob: blob.name.clone(),
            properties: Some(blob.properties.clone()),
            metadata: blob.metadata.clone(),
            access_tier: blob.tier_of_write().into(),
            tags: blob.tags.clone(),
            ..Default::default()
        };
        let first = WriteBlobRequest { spec: Some(spec), ..Default::default() };
        let session = self.target.session;
        let call = async || {
            let messages = messages(&first, &data, |data, finish| WriteBlobRequest {
                data,
                finish,
                ..Default::default()
            });
            session.blobs().write_blob(messages).await
        };
        repeated(call).await?;
        *is_written = true;
        Ok(sum)
    }

    async fn write_blocks<C: ImportedContent>(
        &self,
        blob: &ImportedBlob,
        content: &C,
        is_written: &mut bool,
    ) -> Result<ContentSum, BlobFailure> {
        let (mut sum, mut ids) = (ContentSum::default(), Vec::new());
        for (offset, length) in blocks(blob.size, block_bytes(blob)?) {
            let data = block(content, offset, length).await?;
            data.iter().for_each(|piece| sum.add(piece));
            let id = Bytes::from(format!("{:08}", ids.len()));
            self.stage(&blob.name, id.clone(), &data).await?;
            ids.push(id);
        }
        sum.verify_stated(&blob.properties)?;
        let request = CommitBlocksRequest {
            container: self.container.to_owned(),
            blob: blob.name.clone(),
            blocks: ids.into_iter().map(|id| BlockRef { id, ..Default::default() }).collect(),
            properties: Some(blob.properties.clone()),
            metadata: blob.metadata.clone(),
            access_tier: blob.tier_of_write().into(),
            tags: blob.tags.clone(),
            ..Default::default()
        };
        let session = self.target.session;
        repeated(async || session.blobs().commit_blocks(request.clone()).await).await?;
        *is_written = true;
        Ok(sum)
    }

    async fn stage(&self, name: &str, block_id: Bytes, data: &[Bytes]) -> Result<(), Status> {
        let (container, blob) = (self.container.to_owned(), name.to_owned());
        let spec = StageBlockSpec { container, blob, block_id, ..Default::default() };
        let first = StageBlockRequest { spec: Some(spec), ..Default::default() };
        let session = self.target.session;
        let call = async || {
            let messages = messages(&first, data, |data, finish| StageBlockRequest {
                data,
                finish,
                ..Default::default()
            });
            session.blobs().stage_block(messages).await
        };
        repeated(call).await.map(drop)
    }

    async fn append_all<C: ImportedContent>(
        &self,
        blob: &ImportedBlob,
        content: &C,
        is_written: &mut bool,
    ) -> Result<ContentSum, BlobFailure> {
        let request = CreateAppendBlobRequest {
            container: self.container.to_owned(),
            blob: blob.name.clone(),
            properties: Some(blob.properties.clone()),
            metadata: blob.metadata.clone(),
            tags: blob.tags.clone(),
            ..Default::default()
        };
        let session = self.target.session;
        repeated(async || session.blobs().create_append_blob(request.clone()).await).await?;
        *is_written = true;
        let mut sum = ContentSum::default();
        for (offset, length) in blocks(blob.size, block_bytes(blob)?) {
            let data = block(content, offset, length).await?;
            data.iter().for_each(|piece| sum.add(piece));
            self.append(&blob.name, offset, &data).await?;
        }
        Ok(sum)
    }

    /// Appends a block at a position, once: a try without a response may have appended it.
    async fn append(&self, name: &str, position: u64, data: &[Bytes]) -> Result<(), Status> {
        let session = self.target.session;
        let spec = AppendBlockSpec {
            container: self.container.to_owned(),
            blob: name.to_owned(),
            position: Some(position),
            ..Default::default()
        };
        let first = AppendBlockRequest { spec: Some(spec), ..Default::default() };
        let mut retries = Retries::default();
        let mut is_repeated = false;
        loop {
            let messages = messages(&first, data, |data, finish| AppendBlockRequest {
                data,
                finish,
                ..Default::default()
            });
            match session.blobs().append_block(messages).await {
                Ok(_) => return Ok(()),
                Err(status)
                    if is_repeated
                        && reason(&status).as_deref() == Some(POSITION_NOT_MET)
                        && self.size(name).await? == position.saturating_add(length(data)) =>
                {
                    return Ok(());
                }
                Err(status) => retries.wait(status).await?,
            }
            is_repeated = true;
        }
    }

    async fn size(&self, name: &str) -> Result<u64, Status> {
        let (container, blob) = (self.container.to_owned(), name.to_owned());
        let request = GetBlobRequest { container, blob, ..Default::default() };
        let session = self.target.session;
        let found = repeated(async || session.blobs().get_blob(request.clone()).await).await?;
        Ok(found.into_inner().blob.map_or(0, |blob| blob.size))
    }

    pub(super) async fn seal(&self, name: &str) -> Result<(), Status> {
        let (container, blob) = (self.container.to_owned(), name.to_owned());
        let request = SealBlobRequest { container, blob, ..Default::default() };
        let session = self.target.session;
        repeated(async || session.blobs().seal_blob(request.clone()).await).await.map(drop)
    }

    async fn create_pages(&self, blob: &ImportedBlob, sequence_number: u64) -> Result<(), Status> {
        let request = CreatePageBlobRequest {
            container: self.container.to_owned(),
            blob: blob.name.clone(),
            size: blob.size,
            sequence_number,
            properties: Some(blob.properties.clone()),
            metadata: blob.metadata.clone(),
            access_tier: blob.tier_of_write().into(),
            tags: blob.tags.clone(),
            ..Default::default()
        };
        let session = self.target.session;
        repeated(async || session.blobs().create_page_blob(request.clone()).await).await.map(drop)
    }

    async fn write_pages<C: ImportedContent>(
        &self,
        blob: &ImportedBlob,
        content: &C,
    ) -> Result<ContentSum, BlobFailure> {
        let mut sum = ContentSum::default();
        for (offset, length) in blocks(blob.size, PAGES_SPAN_BYTES) {
            for pages in content.pages(offset, length).await? {
                for (from, length) in blocks(pages.length, WINDOW_BYTES) {
                    let offset = pages.offset + from;
                    let data = block(content, offset, length).await?;
                    sum.add_pages(PagesWithData { offset, length }, &data);
                    self.put_pages(&blob.name, offset, &data).await?;
                }
            }
        }
        Ok(sum)
    }

    async fn put_pages(&self, name: &str, offset: u64, data: &[Bytes]) -> Result<(), Status> {
        let (container, blob) = (self.container.to_owned(), name.to_owned());
        let spec = WritePagesSpec { container, blob, offset, ..Default::default() };
        let first = WritePagesRequest { spec: Some(spec), ..Default::default() };
        let session = self.target.session;
        let call = async || {
            let messages = messages(&first, data, |data, finish| WritePagesRequest {
                data,
                finish,
                ..Default::default()
            });
            session.blobs().write_pages(messages).await
        };
        repeated(call).await.map(drop)
    }
}

/// The messages of an upload of `data` after what the first one has. `message` makes one of data, or of the end.
fn messages<M: Clone>(
    first: &M,
    data: &[Bytes],
    message: impl Fn(Bytes, Option<UploadFinish>) -> M,
) -> stream::Iter<vec::IntoIter<M>> {
    let pieces = data.iter().cloned().map(|piece| message(piece, None));
    let end = message(Bytes::new(), Some(finish(data)));
    let all: Vec<M> = iter::once(first.clone()).chain(pieces).chain([end]).collect();
    stream::iter(all)
}

impl ImportedBlob {
    /// The tier while it is written: an archived blob cannot be read back.
    fn tier_of_write(&self) -> AccessTier {
        match (self.kind, self.tier) {
            (ImportedKind::Append { .. }, _) => AccessTier::Unspecified,
            (_, AccessTier::Archive) => self.default_tier(),
            (_, tier) => tier,
        }
    }
}

/// A block of the source, as the data of messages.
async fn block<C: ImportedContent>(
    content: &C,
    offset: u64,
    length: u64,
) -> Result<Vec<Bytes>, BlobFailure> {
    let mut pieces = Vec::new();
    for (from, length) in blocks(length, WINDOW_BYTES) {
        let window = content.read(offset + from, length).await?;
        let bytes = u64::try_from(window.len()).unwrap_or(u64::MAX);
        if bytes != length {
            let text = format!("the source has {bytes} bytes of {length} at offset {offset}");
            return Err(BlobFailure::Item(text));
        }
        pieces.extend(window.chunks(MESSAGE_BYTES).map(|piece| window.slice_ref(piece)));
    }
    Ok(pieces)
}

fn length(data: &[Bytes]) -> u64 {
    data.iter().map(|piece| u64::try_from(piece.len()).unwrap_or(u64::MAX)).sum()
}

/// The end of an upload: the server verifies length and checksum.
fn finish(data: &[Bytes]) -> UploadFinish {
    let mut crc = Crc64::new();
    data.iter().for_each(|piece| crc.write(piece));
    UploadFinish { crc64: Some(crc.sum64()), size: Some(length(data)), ..Default::default() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of_size(size: u64) -> ImportedBlob {
        ImportedBlob { size, ..ImportedBlob::default() }
    }

    #[test]
    fn blocks_cover_the_content_within_the_limit_of_blocks() {
        for (size, longest) in [
            (0, WINDOW_BYTES),
            (1, WINDOW_BYTES),
            (BLOCKS_MAX * WINDOW_BYTES, WINDOW_BYTES),
            (BLOCKS_MAX * WINDOW_BYTES + 1, 2 * WINDOW_BYTES),
            (BLOCKS_MAX * BLOCK_BYTES_MAX, BLOCK_BYTES_MAX),
        ] {
            assert_eq!(block_bytes(&of_size(size)).unwrap(), longest, "{size}");
            let found: Vec<_> = blocks(size, longest).collect();
            assert!(found.len() as u64 <= BLOCKS_MAX, "{size}");
            assert_eq!(found.iter().map(|(_, length)| length).sum::<u64>(), size);
            assert!(found.iter().all(|(_, length)| (1..=longest).contains(length)), "{size}");
        }
    }

    #[test]
    fn a_blob_whose_blocks_exceed_the_memory_is_not_copied() {
        let size = BLOCKS_MAX * BLOCK_BYTES_MAX + 1;

        let failure = block_bytes(&of_size(size)).unwrap_err();

        assert!(matches!(failure, BlobFailure::Item(why) if why.contains(&size.to_string())));
        let kind = ImportedKind::Page { sequence_number: 0 };
        let pages = ImportedBlob { kind, ..of_size(size) };
        assert_eq!(block_bytes(&pages).unwrap(), WINDOW_BYTES);
    }

    #[test]
    fn an_archived_blob_is_readable_until_it_is_verified() {
        let blob = |kind, tier| ImportedBlob { kind, tier, ..ImportedBlob::default() };
        let page = ImportedKind::Page { sequence_number: 0 };
        let append = ImportedKind::Append { is_sealed: false };
        for (kind, tier, written) in [
            (ImportedKind::Block, AccessTier::Archive, AccessTier::Hot),
            (ImportedKind::Block, AccessTier::Cool, AccessTier::Cool),
            (ImportedKind::Block, AccessTier::Unspecified, AccessTier::Unspecified),
            (append, AccessTier::Hot, AccessTier::Unspecified),
            (page, AccessTier::P10, AccessTier::P10),
        ] {
            assert_eq!(blob(kind, tier).tier_of_write(), written, "{kind:?} {tier:?}");
        }
    }
}
