//! Entities on their way into a table: chunks out, answers in, and both again after a lost
//! connection.
//!
//! Chunks are kept until they are answered, and sent again over a new stream when one breaks. A row
//! that was sent before may have been written, so an insert that finds its entity there compares
//! the two: equal means written.

use std::collections::VecDeque;

use bytes::Bytes;
use futures::{StreamExt as _, TryStreamExt as _};
use prost::Message as _;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Code, Status};
use tonic_types::{RpcStatusExt as _, Status as RpcStatus};
use trestle_proto::table::v1::{
    Entity, GetEntityRequest, ImportChunk, ImportEntitiesRequest, ImportEntitiesResponse,
    ImportResult, ImportSpec, WriteMode, import_entities_request::Message,
};

use crate::{
    client::{Random, Retries, Session},
    entity_json::{self, Meta},
    errors::CliError,
    raw::{Method, RawClient},
};

/// Most chunks under way: bounds memory to as many MiB, and keeps the server's commits full.
const WINDOW: usize = 8;
/// Most comparisons at once.
const COMPARISONS_MAX: usize = 32;

/// Entities to send together; the mark is what the sender wants to know of them when they are
/// answered.
#[derive(Debug)]
pub(crate) struct Chunk<M> {
    /// The encoded request.
    message: Bytes,
    /// How many entities there are; where there is none, nothing is sent.
    count: usize,
    /// Whether it may have been written before.
    replayed: bool,
    pub(crate) mark: M,
}

impl<M> Chunk<M> {
    /// A chunk of these entities, which keep to the limits of a chunk.
    pub(crate) fn new(entities: Vec<Entity>, mark: M) -> Self {
        let count = entities.len();
        let message = Some(Message::Chunk(ImportChunk { entities }));
        let message = ImportEntitiesRequest { message }.encode_to_vec().into();
        Self { message, count, replayed: false, mark }
    }

    /// The entities, decoded again: needed for few chunks only.
    pub(crate) fn entities(&self) -> Vec<Entity> {
        match ImportEntitiesRequest::decode(self.message.clone()) {
            Ok(ImportEntitiesRequest { message: Some(Message::Chunk(chunk)) }) => chunk.entities,
            _ => Vec::new(),
        }
    }
}

/// What became of an entity.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Outcome {
    Written,
    /// It was there already, and equal.
    Present,
    /// Why it was not written.
    Failed(String),
}

/// Who is told what became of chunks, in the order they were sent.
pub(crate) trait Book<M> {
    /// Whether no more chunks are to be sent.
    fn is_halted(&self) -> bool;
    /// Takes an answered chunk, with an outcome for each of its entities.
    fn book(&mut self, chunk: &Chunk<M>, outcomes: Vec<Outcome>);
}

/// An upload under way. Who makes the chunks may end them with a reason of type `S`.
pub(crate) struct Upload<M, S> {
    session: Session,
    table: String,
    spec: Bytes,
    chunks: mpsc::Receiver<Result<Chunk<M>, S>>,
    /// Sent, not answered; in the order they were sent.
    waiting: VecDeque<Chunk<M>>,
    drained: bool,
    stop: Option<S>,
    retries: Retries,
    /// For inserts: whether every entity may have been written by a run before this one.
    pub(crate) verify: Option<bool>,
}

impl<M, S> Upload<M, S> {
    /// Into a table that exists; without a mode, entities are inserted.
    pub(crate) fn new(
        session: &Session,
        table: String,
        mode: Option<WriteMode>,
        chunks: mpsc::Receiver<Result<Chunk<M>, S>>,
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
            retries: Retries::new(Random::from_system()),
            verify: None,
        }
    }

    /// Sends every chunk and books every answer; the reason why chunks ended, if there was one.
    pub(crate) async fn run(&mut self, book: &mut impl Book<M>) -> Result<Option<S>, CliError> {
        while let Err(error) = self.attempt(book).await {
            let CliError::Call(status) = &error else {
                return Err(error);
            };
            let Some(wait) = self.retries.next(status) else {
                return Err(error);
            };
            for chunk in &mut self.waiting {
                chunk.replayed = true;
            }
            tokio::time::sleep(wait).await;
        }
        Ok(self.stop.take())
    }

    /// One stream, until everything is answered or the stream breaks.
    async fn attempt(&mut self, book: &mut impl Book<M>) -> Result<(), CliError> {
        // Holds the spec and every chunk of the window, so that sending never waits.
        let (sender, requests) = mpsc::channel(WINDOW.saturating_add(1));
        send(&sender, self.spec.clone());
        for chunk in self.waiting.iter().filter(|chunk| chunk.count > 0) {
            send(&sender, chunk.message.clone());
        }
        let mut client = RawClient::new(self.session.link());
        let requests = ReceiverStream::new(requests);
        let mut answers = client.both_stream(Method::IMPORT_ENTITIES, requests).await?;
        loop {
            while self.waiting.front().is_some_and(|chunk| chunk.count == 0) {
                self.waiting.pop_front().iter().for_each(|chunk| book.book(chunk, Vec::new()));
            }
            self.drained |= book.is_halted();
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
                    self.answered(answer, book).await?;
                }
            }
        }
    }

    fn take(&mut self, item: Option<Result<Chunk<M>, S>>, sender: &mpsc::Sender<Bytes>) {
        match item {
            Some(Ok(chunk)) => {
                if chunk.count > 0 {
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

    async fn answered(&mut self, answer: Bytes, book: &mut impl Book<M>) -> Result<(), CliError> {
        let answer = ImportEntitiesResponse::decode(answer)
            .map_err(|error| CliError::Protocol(error.to_string()))?;
        let Some(chunk) = self.waiting.pop_front() else {
            return Err(CliError::Protocol("an answer to no chunk".to_owned()));
        };
        if answer.results.len() != chunk.count {
            return Err(CliError::Protocol(format!(
                "a chunk of {} entities was answered with {} results",
                chunk.count,
                answer.results.len()
            )));
        }
        match self.judge(&chunk, answer.results).await {
            Ok(outcomes) => {
                self.retries.progress();
                book.book(&chunk, outcomes);
                Ok(())
            }
            Err(status) => {
                self.waiting.push_front(chunk);
                Err(status.into())
            }
        }
    }

    /// What became of each entity of a chunk; a status when the chunk has to be sent again.
    async fn judge(
        &self,
        chunk: &Chunk<M>,
        results: Vec<ImportResult>,
    ) -> Result<Vec<Outcome>, Status> {
        let passing = results
            .iter()
            .filter_map(|result| result.error.as_ref())
            .find(|error| is_passing(Code::from(error.code)));
        if let Some(error) = passing {
            return Err(status_of(error));
        }
        let compare = self.verify.is_some_and(|resumed| resumed || chunk.replayed);
        let mut entities = if compare { chunk.entities() } else { Vec::new() }.into_iter();
        let judged = results.into_iter().map(|result| {
            let sent = entities.next();
            async move {
                match (result.error, sent) {
                    (None, _) => Ok(Outcome::Written),
                    (Some(error), Some(sent))
                        if Code::from(error.code) == Code::AlreadyExists
                            && self.is_stored(&sent).await? =>
                    {
                        Ok(Outcome::Present)
                    }
                    (Some(error), _) => Ok(Outcome::Failed(describe(&error))),
                }
            }
        });
        futures::stream::iter(judged).buffered(COMPARISONS_MAX).try_collect().await
    }

    /// Whether the stored entity is the one that was sent.
    async fn is_stored(&self, sent: &Entity) -> Result<bool, Status> {
        let request = self.session.request(GetEntityRequest {
            table: self.table.clone(),
            partition_key: sent.partition_key.clone(),
            row_key: sent.row_key.clone(),
            select: None,
        });
        let stored = match self.session.table().get_entity(request).await {
            Ok(answer) => answer.into_inner().entity,
            Err(status) if status.code() == Code::NotFound => return Ok(false),
            Err(status) => return Err(status),
        };
        let stored = Entity::decode(stored).map_err(|error| Status::internal(error.to_string()))?;
        Ok(content(stored) == content(sent.clone()))
    }
}

fn send(sender: &mpsc::Sender<Bytes>, message: Bytes) {
    // Cannot be full: it has room for the whole window. Closed means that the stream broke, which
    // its answers tell.
    let _ = sender.try_send(message);
}

/// The content of an entity in one form, whatever the order of its properties.
fn content(mut entity: Entity) -> Option<String> {
    entity.properties.sort_by(|a, b| a.name.cmp(&b.name));
    entity_json::to_string(&entity, Meta::None).ok()
}

/// Whether the entity is fine but the server was not.
fn is_passing(code: Code) -> bool {
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
    // A passing failure of one entity is repeated like one of the stream, whatever its code.
    let code = match Code::from(error.code) {
        code @ (Code::Unavailable | Code::ResourceExhausted) => code,
        _ => Code::Unavailable,
    };
    let details = error.details.first().map(|_| error.encode_to_vec()).unwrap_or_default();
    Status::with_details(code, error.message.clone(), details.into())
}

/// One line on why an entity was not written.
pub(crate) fn describe(error: &RpcStatus) -> String {
    let details = error.get_error_details();
    let reason = match details.error_info() {
        Some(info) => info.reason.clone(),
        None => trestle_service::fault::code_name(Code::from(error.code)).to_owned(),
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
