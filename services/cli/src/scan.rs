//! A stream of entities that survives lost connections: it goes on after the last message received.

use tonic::{Status, Streaming};
use trestle_proto::table::v1::{StreamEntitiesRequest, StreamEntitiesResponse};

use crate::{
    client::{Random, Retries, Session, TableClient},
    errors::CliError,
};

/// Reads the entities of a table, in key order, message by message.
pub(crate) struct Scan {
    client: TableClient,
    /// What is still to be read.
    request: StreamEntitiesRequest,
    stream: Option<Streaming<StreamEntitiesResponse>>,
    retries: Retries,
    complete: bool,
}

impl Scan {
    /// A stream that starts, or with a `resume_token` goes on, at its first message.
    pub(crate) fn new(session: &Session, request: StreamEntitiesRequest) -> Self {
        let retries = Retries::new(Random::from_system());
        Self { client: session.table(), request, stream: None, retries, complete: false }
    }

    /// The next message; `None` when the stream is complete.
    pub(crate) async fn next(&mut self) -> Result<Option<StreamEntitiesResponse>, CliError> {
        while !self.complete {
            match self.receive().await {
                Ok(message) => {
                    self.retries.progress();
                    self.note(&message);
                    return Ok(Some(message));
                }
                Err(status) => {
                    self.stream = None;
                    let Some(wait) = self.retries.next(&status) else {
                        return Err(status.into());
                    };
                    tokio::time::sleep(wait).await;
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
        // Only a message without a resume token completes the stream; its mere end does not.
        stream
            .message()
            .await?
            .ok_or_else(|| Status::unavailable("stream ended before its last message"))
    }

    fn note(&mut self, message: &StreamEntitiesResponse) {
        self.request.resume_token.clone_from(&message.resume_token);
        self.complete = message.resume_token.is_empty();
        if let Some(limit) = self.request.limit.as_mut() {
            let received = i64::try_from(message.entities.len()).unwrap_or(i64::MAX);
            *limit = limit.saturating_sub(received).max(0);
            self.complete |= *limit == 0;
        }
    }
}
