//! The upload of entities into a table: chunks out, responses in, and both again after a lost
//! connection.
//!
//! Chunks are buffered until they are answered, and sent again over a new stream when one breaks. A
//! row that was sent before may have been written, so an insert of an existing entity compares the
//! two: equal means written.

use std::collections::VecDeque;

use bytes::Bytes;
use futures::{StreamExt as _, TryStreamExt as _};
use http::uri::PathAndQuery;
use prost::Message as _;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Code, Request, Status, client::Grpc};
use tonic_types::{RpcStatusExt as _, Status as RpcStatus};
use trestle_proto::{
    RawCodec,
    table::v1::{
        Entity, GetEntityRequest, ImportEntitiesRequest, ImportEntitiesResponse, ImportResult,
        ImportSpec, WriteMode, import_entities_request::Message,
    },
};

use crate::{client::Session, errors::CliError, retry::Retries};

mod batch;
mod entity_hash;
mod row_error;

pub use batch::{AHEAD_MAX, ChunkBuilder, UploadChunk};
pub use entity_hash::entity_hash;
use row_error::describe_row;

/// Most chunks in flight: bounds memory to as many MiB, and is enough for full commits on the
/// server.
const WINDOW: usize = 8;
/// Most comparisons at once.
const COMPARISONS_MAX: usize = 32;

/// The outcome of an entity.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EntityOutcome {
    /// It was written.
    Written,
    /// It existed already, and is equal.
    Present,
    /// The error.
    Failed(String),
}

/// Receives the outcomes of chunks, in the order in which they were sent.
pub trait Recorder<C> {
    /// Whether no more chunks are to be sent.
    fn is_halted(&self) -> bool {
        false
    }
    /// Receives an answered chunk, with an outcome for each of its entities.
    fn record(&mut self, chunk: C, outcomes: Vec<EntityOutcome>);
}

/// An upload in progress. The producer of the chunks may end them with a reason of type `S`.
pub struct EntityUpload<L, R, P, S> {
    session: Session,
    table: String,
    spec: Bytes,
    chunks: mpsc::Receiver<Result<UploadChunk<L, R, P>, S>>,
    /// Sent, not answered; in the order they were sent.
    waiting: VecDeque<UploadChunk<L, R, P>>,
    drained: bool,
    stop: Option<S>,
    retries: Retries,
    /// For inserts: whether every entity may have been written by a run before this one.
    pub verify: Option<bool>,
}

impl<L, R, P, S> EntityUpload<L, R, P, S> {
    /// Into a table that exists; without a mode, entities are inserted.
    #[must_use]
    pub fn new(
        session: &Session,
        table: String,
        mode: Option<WriteMode>,
        chunks: mpsc::Receiver<Result<UploadChunk<L, R, P>, S>>,
    ) -> Self {
        let spec = ImportSpec { table: table.clone(), mode: mode.map(WriteMode::into) };
        let message = Some(Message::Spec(spec));
        let spec = ImportEntitiesRequest { message }.encode_to_vec().into();
        Self {
            session: session.clone(),
            table,
            spec,
            chunks,
            waiting: VecDeque::new(),
            drained: false,
            stop: None,
            retries: session.first_tries(),
            verify: None,
        }
    }

    /// Sends every chunk and records every response; returns why the chunks ended, if they did
    /// early.
    ///
    /// # Errors
    /// An error that retries did not end.
    pub async fn run(
        &mut self,
        recorder: &mut impl Recorder<UploadChunk<L, R, P>>,
    ) -> Result<Option<S>, CliError> {
        while let Err(error) = self.attempt(recorder).await {
            self.retries.wait(error).await?;
            for chunk in &mut self.waiting {
                chunk.replayed = true;
            }
        }
        Ok(self.stop.take())
    }

    /// One stream, until everything is answered or the stream breaks.
    async fn attempt(
        &mut self,
        recorder: &mut impl Recorder<UploadChunk<L, R, P>>,
    ) -> Result<(), CliError> {
        // Holds the spec and every chunk of the window, so that sending never waits.
        let (sender, requests) = mpsc::channel(WINDOW.saturating_add(1));
        send(&sender, self.spec.clone());
        for chunk in self.waiting.iter().filter(|chunk| !chunk.labels.is_empty()) {
            send(&sender, chunk.message.clone());
        }
        // Chunks are encoded once, however often they are sent.
        let mut client = Grpc::new(self.session.link());
        client.ready().await.map_err(Status::from_error)?;
        let requests = Request::new(ReceiverStream::new(requests));
        let path = PathAndQuery::from_static("/trestle.table.v1.TableService/ImportEntities");
        let mut answers = client.streaming(requests, path, RawCodec).await?.into_inner();
        loop {
            while let Some(chunk) = self.waiting.pop_front_if(|chunk| chunk.labels.is_empty()) {
                recorder.record(chunk, Vec::new());
            }
            self.drained |= recorder.is_halted();
            if self.drained && self.waiting.is_empty() {
                return Ok(());
            }
            let may_take = !self.drained && self.waiting.len() < WINDOW;
            tokio::select! {
                item = self.chunks.recv(), if may_take => self.take(item, &sender),
                answer = answers.message() => {
                    let answer = answer?.ok_or_else(|| {
                        Status::unavailable("stream ended before its last answer")
                    })?;
                    self.answered(answer, recorder).await?;
                }
            }
        }
    }

    fn take(
        &mut self,
        item: Option<Result<UploadChunk<L, R, P>, S>>,
        sender: &mpsc::Sender<Bytes>,
    ) {
        match item {
            Some(Ok(chunk)) => {
                if !chunk.labels.is_empty() {
                    send(sender, chunk.message.clone());
                }
                self.waiting.push_back(chunk);
            }
            Some(Err(stop)) => {
                self.stop = Some(stop);
                self.drained = true;
            }
            None => self.drained = true,
        }
    }

    async fn answered(
        &mut self,
        answer: Bytes,
        recorder: &mut impl Recorder<UploadChunk<L, R, P>>,
    ) -> Result<(), CliError> {
        let answer = ImportEntitiesResponse::decode(answer)
            .map_err(|error| CliError::Protocol(error.to_string()))?;
        let Some(chunk) = self.waiting.pop_front() else {
            return Err(CliError::Protocol("an answer to no chunk".to_owned()));
        };
        if answer.results.len() != chunk.labels.len() {
            return Err(CliError::Protocol(format!(
                "a chunk of {} entities was answered with {} results",
                chunk.labels.len(),
                answer.results.len()
            )));
        }
        match self.judge(&chunk, answer.results).await {
            Ok(outcomes) => {
                self.retries = Retries::default();
                recorder.record(chunk, outcomes);
                Ok(())
            }
            Err(status) => {
                self.waiting.push_front(chunk);
                Err(status.into())
            }
        }
    }

    /// The outcome of each entity of a chunk; a status if the chunk has to be sent again.
    async fn judge(
        &self,
        chunk: &UploadChunk<L, R, P>,
        results: Vec<ImportResult>,
    ) -> Result<Vec<EntityOutcome>, Status> {
        let temporary = results
            .iter()
            .filter_map(|result| result.error.as_ref())
            .find(|error| is_temporary(Code::from(error.code)));
        if let Some(error) = temporary {
            return Err(status_of(&error.clone().into()));
        }
        let compare = self.verify.is_some_and(|resumed| resumed || chunk.replayed);
        let has_errors = results.iter().any(|result| result.error.is_some());
        let mut entities = if has_errors { chunk.entities() } else { Vec::new() }.into_iter();
        let judged = results.into_iter().map(|result| {
            let sent = entities.next();
            async move {
                match (result.error, sent) {
                    (None, _) => Ok(EntityOutcome::Written),
                    (Some(error), Some(sent))
                        if compare
                            && Code::from(error.code) == Code::AlreadyExists
                            && self.is_stored(&sent).await? =>
                    {
                        Ok(EntityOutcome::Present)
                    }
                    (Some(error), _) => Ok(EntityOutcome::Failed(describe_row(&error.into()))),
                }
            }
        });
        futures::stream::iter(judged).buffered(COMPARISONS_MAX).try_collect().await
    }

    /// Whether the stored entity equals the sent one.
    async fn is_stored(&self, sent: &Entity) -> Result<bool, Status> {
        let request = GetEntityRequest {
            table: self.table.clone(),
            partition_key: sent.partition_key.clone(),
            row_key: sent.row_key.clone(),
            select: None,
        };
        let stored = match self.session.table().get_entity(request).await {
            Ok(answer) => answer.into_inner().entity,
            Err(status) if status.code() == Code::NotFound => return Ok(false),
            Err(status) => return Err(status),
        };
        let stored = Entity::decode(stored).map_err(|error| Status::internal(error.to_string()))?;
        Ok(entity_hash(&stored) == entity_hash(sent))
    }
}

fn send(sender: &mpsc::Sender<Bytes>, message: Bytes) {
    // Cannot be full: it has room for the whole window. Closed means that the stream broke, which
    // its responses report.
    let _ = sender.try_send(message);
}

/// Whether what was sent is valid but the server failed.
pub fn is_temporary(code: Code) -> bool {
    matches!(
        code,
        Code::Unavailable
            | Code::ResourceExhausted
            | Code::Unknown
            | Code::DeadlineExceeded
            | Code::Cancelled
    )
}

fn status_of(error: &RpcStatus) -> Status {
    // A temporary failure of one entity is repeated like one of the stream, whatever its code.
    let code = match Code::from(error.code) {
        code @ (Code::Unavailable | Code::ResourceExhausted) => code,
        _ => Code::Unavailable,
    };
    let details = error.details.first().map(|_| error.encode_to_vec()).unwrap_or_default();
    Status::with_details(code, error.message.clone(), details.into())
}

/// One line with the error of an entity.
#[must_use]
pub fn describe(error: &RpcStatus) -> String {
    let details = error.get_error_details();
    let reason = match details.error_info() {
        Some(info) => info.reason.clone(),
        None => trestle_rpc::status::code_name(Code::from(error.code)).to_owned(),
    };
    let mut text = format!("{reason}: {}", error.message);
    for violation in details.bad_request().iter().flat_map(|bad| &bad.field_violations) {
        let rule = format!("{}: {}", violation.field, violation.description);
        if rule != error.message {
            text.push_str("; ");
            text.push_str(&rule);
        }
    }
    text
}
