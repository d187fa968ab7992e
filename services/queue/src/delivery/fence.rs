//! Fencing: every change of a queue reads its head and is rejected when the head is not the one that the change was
//! prepared for. The check is part of the decision, so it holds at the instant of the commit, without any assumption
//! about clocks.

use trestle_kv::{ChangeSpec, CommitError, EngineError, Lock, ReadId, Reads};

use crate::{
    error::QueueError,
    head::{FencingToken, QueueHead},
    keys::{self, QueueId},
};

/// The preconditions of a change of a queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Fence {
    /// The queue.
    pub(crate) id: QueueId,
    /// The token under which this process owns it.
    pub(crate) token: FencingToken,
    /// The version of the record with which the change was prepared; none where the change does not depend on it.
    pub(crate) record_version: Option<u64>,
}

/// The head of a queue among the reads of a change.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FencedHead {
    fence: Fence,
    read: ReadId,
}

/// A change that was rejected because of the head of its queue. Nothing was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Fenced {
    /// The queue.
    pub(crate) id: QueueId,
    /// The token under which the change was prepared.
    pub(crate) token: FencingToken,
    /// Which precondition the head does not match.
    pub(crate) cause: FenceCause,
}

/// Why a change of a queue was rejected, or its scheduler closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FenceCause {
    /// The queue was deleted or cleared: it has another id, or none.
    QueueReplaced,
    /// The settings or the access policies of the queue changed.
    StaleRecord,
    /// Another process took over the queue.
    NotOwner,
    /// The token of this process has no sequence numbers left: it must take over the queue again.
    SequencesExhausted,
}

/// Why an operation on an existing queue failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum AttemptError {
    /// The change was rejected by the fence.
    #[error("the queue was deleted, or has another owner")]
    Fenced(Fenced),
    /// Any other error.
    #[error(transparent)]
    Failed(QueueError),
}

impl Fence {
    /// The start of a change of the queue.
    pub(crate) fn begin(self) -> (ChangeSpec, FencedHead) {
        let mut spec = ChangeSpec::new(keys::queue_domain(self.id));
        let read = spec.read(keys::head(self.id));
        (spec, FencedHead { fence: self, read })
    }

    /// Adds the queue to a change of another one.
    pub(crate) fn join(self, spec: &mut ChangeSpec) -> FencedHead {
        spec.also(keys::queue_domain(self.id), Lock::Exclusive);
        FencedHead { fence: self, read: spec.read(keys::head(self.id)) }
    }

    /// The rejection with a cause.
    pub(crate) fn reject(self, cause: FenceCause) -> Fenced {
        Fenced { id: self.id, token: self.token, cause }
    }

    /// The head, if it is the one that the change was prepared for.
    ///
    /// # Errors
    /// [`AttemptError::Fenced`], or an unreadable head.
    pub(crate) fn check(self, stored: Option<&[u8]>) -> Result<QueueHead, AttemptError> {
        let Some(stored) = stored else {
            return Err(self.reject(FenceCause::QueueReplaced).into());
        };
        let head = QueueHead::decode(stored)?;
        if head.token != self.token {
            return Err(self.reject(FenceCause::NotOwner).into());
        }
        if self.record_version.is_some_and(|version| version != head.record_version) {
            return Err(self.reject(FenceCause::StaleRecord).into());
        }
        Ok(head)
    }
}

impl FencedHead {
    /// The stored head.
    pub(crate) fn stored<'a>(&self, reads: &Reads<'a>) -> Option<&'a [u8]> {
        reads.get(self.read).map(|value| &**value)
    }

    /// As [`Fence::check`], with the head that the change read.
    ///
    /// # Errors
    /// As [`Fence::check`].
    pub(crate) fn check(&self, reads: &Reads<'_>) -> Result<QueueHead, AttemptError> {
        self.fence.check(self.stored(reads))
    }
}

impl From<Fenced> for AttemptError {
    fn from(fenced: Fenced) -> Self {
        Self::Fenced(fenced)
    }
}

impl From<QueueError> for AttemptError {
    fn from(error: QueueError) -> Self {
        Self::Failed(error)
    }
}

impl From<CommitError> for AttemptError {
    fn from(error: CommitError) -> Self {
        Self::Failed(error.into())
    }
}

impl From<EngineError> for AttemptError {
    fn from(error: EngineError) -> Self {
        Self::Failed(error.into())
    }
}

#[cfg(test)]
mod tests;
