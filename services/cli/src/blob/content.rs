//! The content of a blob, read to its end over broken connections.

use bytes::Bytes;
use tonic::Streaming;
use trestle_command::{client::Session, errors::CliError, retry::Retries};
use trestle_proto::blob::v1::{BlobConditions, ByteRange, ReadBlobRequest, ReadBlobResponse};

use super::{BlobAddress, BlobStateArgs};

/// A read of one version of a blob. A temporary error continues it at the byte after the last one.
pub(super) struct BlobContent {
    session: Session,
    address: BlobAddress,
    state: BlobStateArgs,
    /// The requested range.
    range: Option<ByteRange>,
    /// What is left of the content; none before the first message.
    rest: Option<Rest>,
    messages: Option<Streaming<ReadBlobResponse>>,
    retries: Retries,
}

/// The bytes that were not read yet.
struct Rest {
    etag: String,
    offset: u64,
    end: u64,
}

impl BlobContent {
    /// The whole content.
    pub(super) fn new(session: &Session, address: BlobAddress) -> Self {
        let (session, retries) = (session.clone(), session.first_tries());
        let state = BlobStateArgs::default();
        Self { session, address, state, range: None, rest: None, messages: None, retries }
    }

    /// Of this state of the blob.
    pub(super) fn of_state(self, state: BlobStateArgs) -> Self {
        Self { state, ..self }
    }

    /// A part of the content.
    pub(super) fn with_range(self, offset: u64, length: Option<u64>) -> Self {
        let is_part = offset > 0 || length.is_some();
        Self { range: is_part.then_some(ByteRange { offset, length }), ..self }
    }

    /// The next bytes; none at the end.
    ///
    /// # Errors
    /// Those of the calls; a stream that ends before the content does.
    pub(super) async fn next(&mut self) -> Result<Option<Bytes>, CliError> {
        loop {
            if self.rest.as_ref().is_some_and(|rest| rest.offset == rest.end) {
                return Ok(None);
            }
            match self.message().await {
                Ok(message) => {
                    let data = self.received(message)?;
                    if !data.is_empty() {
                        return Ok(Some(data));
                    }
                }
                Err(error) => self.retries.wait(error).await?,
            }
        }
    }

    async fn message(&mut self) -> Result<ReadBlobResponse, CliError> {
        // After an error it is not put back.
        let mut messages = match self.messages.take() {
            Some(messages) => messages,
            None => open(&self.session, self.request()).await?,
        };
        let message = messages.message().await?;
        self.messages = Some(messages);
        message.ok_or_else(|| CliError::Protocol("a blob that ends too early".to_owned()))
    }

    fn request(&self) -> ReadBlobRequest {
        let BlobAddress { container, name: blob } = self.address.clone();
        let (range, conditions) = match &self.rest {
            None => (self.range, None),
            Some(Rest { etag, offset, end }) => {
                let range = ByteRange { offset: *offset, length: Some(end - offset) };
                let if_match = vec![etag.clone()];
                (Some(range), Some(BlobConditions { if_match, ..Default::default() }))
            }
        };
        let BlobStateArgs { snapshot, version_id } = self.state.clone();
        ReadBlobRequest { container, blob, range, conditions, snapshot, version_id }
    }

    /// Counts the bytes of a message.
    fn received(&mut self, message: ReadBlobResponse) -> Result<Bytes, CliError> {
        if self.rest.is_none() {
            let blob = message.blob.unwrap_or_default();
            let offset = message.range.map_or(0, |range| range.offset);
            let length = message.range.and_then(|range| range.length);
            let end = length.map_or(blob.size, |length| offset.saturating_add(length));
            self.rest = Some(Rest { etag: blob.etag, offset, end });
        }
        if let Some(rest) = &mut self.rest {
            rest.offset += message.data.len() as u64;
            if rest.offset > rest.end {
                return Err(CliError::Protocol("more bytes than the blob has".to_owned()));
            }
        }
        self.retries = Retries::default();
        Ok(message.data)
    }
}

async fn open(
    session: &Session,
    request: ReadBlobRequest,
) -> Result<Streaming<ReadBlobResponse>, CliError> {
    Ok(session.blobs().read_blob(request).await?.into_inner())
}
