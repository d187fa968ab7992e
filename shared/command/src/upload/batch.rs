//! Entities collected into chunks of bounded size.

use bytes::Bytes;
use prost::Message as _;
use trestle_proto::table::v1::{
    Entity, ImportChunk, ImportEntitiesRequest, import_entities_request::Message,
};

/// Most entities of a chunk.
pub(crate) const ENTITIES_MAX: usize = 500;
/// Largest chunk, in bytes of its entities; a larger entity makes a chunk of its own.
const BYTES_MAX: usize = 1024 * 1024;
/// Most chunks that wait to be sent.
pub const AHEAD_MAX: usize = 2;

/// Entities to send together, with what the sender needs when they are answered: a label of each entity, what was
/// rejected between them, and the position in the source after the chunk.
#[derive(Debug)]
pub struct UploadChunk<L, R, P> {
    /// The encoded request.
    pub(super) message: Bytes,
    /// Whether it may have been written before.
    pub(super) replayed: bool,
    /// The labels of the entities, in their order.
    pub labels: Vec<L>,
    /// The rejected items, with their errors.
    pub rejected: Vec<(R, String)>,
    /// The position after the chunk; none inside of a unit that the source reads as a whole.
    pub end: Option<P>,
}

impl<L, R, P> UploadChunk<L, R, P> {
    /// The entities, decoded again: needed for few chunks only.
    #[must_use]
    pub fn entities(&self) -> Vec<Entity> {
        match ImportEntitiesRequest::decode(self.message.clone()) {
            Ok(ImportEntitiesRequest { message: Some(Message::Chunk(chunk)) }) => chunk.entities,
            _ => Vec::new(),
        }
    }
}

/// A chunk builder.
pub struct ChunkBuilder<L, R> {
    entities: Vec<Entity>,
    bytes: usize,
    labels: Vec<L>,
    rejected: Vec<(R, String)>,
}

impl<L, R> Default for ChunkBuilder<L, R> {
    fn default() -> Self {
        Self { entities: Vec::new(), bytes: 0, labels: Vec::new(), rejected: Vec::new() }
    }
}

impl<L, R> ChunkBuilder<L, R> {
    /// Adds an entity; returns the chunk before it, which ends at `before`, if both do not fit.
    pub fn add<P>(
        &mut self,
        label: L,
        entity: Entity,
        before: Option<P>,
    ) -> Option<UploadChunk<L, R, P>> {
        let size = entity.encoded_len();
        let is_full = self.bytes.saturating_add(size) > BYTES_MAX || self.len() >= ENTITIES_MAX;
        let chunk = if is_full { self.take(before) } else { None };
        self.bytes = self.bytes.saturating_add(size);
        self.labels.push(label);
        self.entities.push(entity);
        chunk
    }

    /// Adds an item that cannot be sent.
    pub fn reject<P>(
        &mut self,
        which: R,
        why: String,
        before: Option<P>,
    ) -> Option<UploadChunk<L, R, P>> {
        let chunk = if self.len() >= ENTITIES_MAX { self.take(before) } else { None };
        self.rejected.push((which, why));
        chunk
    }

    fn len(&self) -> usize {
        self.entities.len().saturating_add(self.rejected.len())
    }

    /// The entities collected so far, if any.
    pub fn take<P>(&mut self, end: Option<P>) -> Option<UploadChunk<L, R, P>> {
        (self.len() > 0).then(|| self.finish(end))
    }

    /// The last chunk before a position, which may be empty.
    pub fn finish<P>(&mut self, end: Option<P>) -> UploadChunk<L, R, P> {
        let Self { entities, labels, rejected, .. } = std::mem::take(self);
        let message = Some(Message::Chunk(ImportChunk { entities }));
        let message = ImportEntitiesRequest { message }.encode_to_vec().into();
        UploadChunk { message, replayed: false, labels, rejected, end }
    }
}

#[cfg(test)]
mod tests;
