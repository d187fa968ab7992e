//! Conditions of a call on the version of a blob or a container: pure decisions. Times are compared in whole seconds,
//! as HTTP has them.

#[cfg(test)]
mod tests;

use trestle_service::clock::Ticks;

use crate::{
    etag::{ETag, ETagPattern},
    record::BlobRecord,
    tags::expression::TagCondition,
};

/// Ticks in a second.
const PER_SECOND: u64 = 10_000_000;

/// The conditions of a call; empty ones require nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Conditions {
    /// The etag is one of these.
    pub(crate) if_match: Vec<ETagPattern>,
    /// The etag is none of these.
    pub(crate) if_none_match: Vec<ETagPattern>,
    /// Modified after this time.
    pub(crate) if_modified_since: Option<Ticks>,
    /// Not modified after this time.
    pub(crate) if_unmodified_since: Option<Ticks>,
    /// The tags are so.
    pub(crate) if_tags: Option<TagCondition>,
    /// There is no blob: the caller may create blobs only.
    pub(crate) creates_only: bool,
}

/// The state that conditions are about.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ConditionTarget<'a> {
    etag: ETag,
    tags: &'a [(String, String)],
}

impl From<ETag> for ConditionTarget<'_> {
    fn from(etag: ETag) -> Self {
        Self { etag, tags: &[] }
    }
}

impl<'a> From<&'a BlobRecord> for ConditionTarget<'a> {
    fn from(record: &'a BlobRecord) -> Self {
        Self { etag: record.etag, tags: &record.tags }
    }
}

/// Why a call does not take place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ConditionError {
    /// A condition is false.
    #[error("the condition specified using conditional fields is not met")]
    NotMet,
    /// A blob exists, and the write requires none.
    #[error("the specified blob already exists")]
    AlreadyExists,
    /// Conditions that a write cannot combine.
    #[error("multiple conditions are not supported")]
    Multiple,
    /// A blob exists, and the caller may create blobs only.
    #[error("the caller may create blobs and not overwrite them, and the blob exists")]
    OverwriteNotAuthorized,
    /// A read that requires an absent blob.
    #[error("the request includes an unsatisfiable condition for this operation")]
    Unsatisfiable,
}

/// What a write does where the blob is absent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WriteKind {
    /// It creates the blob, with its content.
    Content,
    /// It needs an existing blob.
    Change,
}

/// Whether a read returns content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Freshness {
    /// The client needs the content.
    Modified,
    /// The client has it.
    NotModified,
}

impl Conditions {
    /// Whether a read takes place: `if_match AND if_unmodified_since AND if_tags AND (if_none_match OR
    /// if_modified_since)`.
    ///
    /// # Errors
    /// [`ConditionError::NotMet`], [`ConditionError::Unsatisfiable`].
    pub(crate) fn check_read<'a>(
        &self,
        current: impl Into<ConditionTarget<'a>>,
    ) -> Result<Freshness, ConditionError> {
        let ConditionTarget { etag: current, tags } = current.into();
        if self.if_none_match.contains(&ETagPattern::Any) {
            return Err(ConditionError::Unsatisfiable);
        }
        let matches = |patterns: &[ETagPattern]| patterns.iter().any(|it| current.matches(it));
        let is_same = self.if_match.is_empty() || matches(&self.if_match);
        let is_old = self.if_unmodified_since.is_none_or(|time| !is_after(current, time));
        let is_tagged = self.if_tags.as_ref().is_none_or(|condition| condition.holds(tags));
        if !is_same || !is_old || !is_tagged {
            return Err(ConditionError::NotMet);
        }
        let differs = (!self.if_none_match.is_empty()).then(|| !matches(&self.if_none_match));
        let is_newer = self.if_modified_since.map(|time| is_after(current, time));
        let parts: Vec<bool> = [differs, is_newer].into_iter().flatten().collect();
        let is_fresh = parts.is_empty() || parts.contains(&true);
        Ok(if is_fresh { Freshness::Modified } else { Freshness::NotModified })
    }

    /// Whether a write takes place; no current version means that the blob is absent.
    ///
    /// # Errors
    /// [`ConditionError::Multiple`], [`ConditionError::NotMet`], [`ConditionError::AlreadyExists`],
    /// [`ConditionError::OverwriteNotAuthorized`].
    pub(crate) fn check_write<'a>(
        &self,
        current: Option<impl Into<ConditionTarget<'a>>>,
        kind: WriteKind,
    ) -> Result<(), ConditionError> {
        let Self { if_match, if_none_match, if_modified_since, if_unmodified_since, .. } = self;
        let current = current.map(Into::into);
        if self.creates_only && current.is_some() {
            return Err(ConditionError::OverwriteNotAuthorized);
        }
        let is_tagged = self.if_tags.as_ref().is_none_or(|condition| {
            current.is_some_and(|current: ConditionTarget<'_>| condition.holds(current.tags))
        });
        let current = current.map(|current| current.etag);
        let is_combined = match (if_match.as_slice(), if_none_match.as_slice()) {
            ([], []) => if_modified_since.is_some() && if_unmodified_since.is_some(),
            ([_], []) => if_modified_since.is_some(),
            ([], [_]) => if_unmodified_since.is_some(),
            _ => true,
        };
        if is_combined {
            return Err(ConditionError::Multiple);
        }
        let is_met = match (if_match.first(), if_none_match.first()) {
            (Some(pattern), _) => current.is_some_and(|etag| etag.matches(pattern)),
            (None, Some(pattern)) => !current.is_some_and(|etag| etag.matches(pattern)),
            (None, None) => {
                if_modified_since.is_none_or(|time| current.is_none_or(|it| is_after(it, time)))
                    && if_unmodified_since
                        .is_none_or(|time| current.is_some_and(|it| !is_after(it, time)))
            }
        };
        let requires_absent = if_none_match.contains(&ETagPattern::Any);
        match is_met && is_tagged {
            true => Ok(()),
            false if requires_absent && !is_met && kind == WriteKind::Content => {
                Err(ConditionError::AlreadyExists)
            }
            false => Err(ConditionError::NotMet),
        }
    }
}

/// Whether a version is of a later second than `time`.
fn is_after(version: ETag, time: Ticks) -> bool {
    version.0.get() / PER_SECOND > time.get() / PER_SECOND
}
