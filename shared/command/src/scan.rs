//! A stream of entities that survives lost connections: it continues after the last message received.

use tonic::{Status, Streaming};
use trestle_proto::table::v1::{
    Entity, StreamEntitiesRequest, StreamEntitiesResponse, stored::decode_entities,
};

use crate::{
    client::{Session, TableClient},
    errors::CliError,
    retry::Retries,
};

/// Reads the entities of a table, in key order, message by message.
pub struct TableScan {
    client: TableClient,
    /// The rest of the request.
    request: StreamEntitiesRequest,
    stream: Option<Streaming<StreamEntitiesResponse>>,
    retries: Retries,
    complete: bool,
}

impl TableScan {
    /// Starts a stream, or continues it with a `resume_token`.
    #[must_use]
    pub fn new(session: &Session, request: StreamEntitiesRequest) -> Self {
        let retries = session.first_tries();
        Self { client: session.table(), request, stream: None, retries, complete: false }
    }

    /// The next message; `None` when the stream is complete.
    ///
    /// # Errors
    /// An error that retries did not end.
    pub async fn next(&mut self) -> Result<Option<StreamEntitiesResponse>, CliError> {
        while !self.complete {
            match self.receive().await {
                Ok(message) => {
                    self.retries = Retries::default();
                    self.advance(&message);
                    return Ok(Some(message));
                }
                Err(status) => {
                    self.stream = None;
                    self.retries.wait(status).await?;
                }
            }
        }
        Ok(None)
    }

    async fn receive(&mut self) -> Result<StreamEntitiesResponse, Status> {
        if self.stream.is_none() {
            let answer = self.client.stream_entities(self.request.clone()).await?;
            self.stream = Some(answer.into_inner());
        }
        let Some(stream) = self.stream.as_mut() else {
            return Err(Status::internal("stream was not opened"));
        };
        // Only a message without a resume token completes the stream; the end of the stream alone
        // does not.
        stream
            .message()
            .await?
            .ok_or_else(|| Status::unavailable("stream ended before its last message"))
    }

    fn advance(&mut self, message: &StreamEntitiesResponse) {
        self.request.resume_token.clone_from(&message.resume_token);
        self.complete = message.resume_token.is_empty();
        if let Some(limit) = self.request.limit.as_mut() {
            let received = i64::try_from(message.entities.len()).unwrap_or(i64::MAX);
            *limit = limit.saturating_sub(received).max(0);
            self.complete |= *limit == 0;
        }
    }
}

/// The entities of a message.
///
/// # Errors
/// The message is malformed.
pub fn decoded(message: &StreamEntitiesResponse) -> Result<Vec<Entity>, CliError> {
    decode_entities(&message.entities).map_err(|error| CliError::Protocol(error.to_string()))
}
