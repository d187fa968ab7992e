//! Conditions of a call on the version of a blob or a container: pure decisions. Times are compared in whole seconds,
//! as HTTP has them.

#[cfg(test)]
mod tests;
mod unmet;

use trestle_model::time::Ticks;

pub(crate) use self::unmet::UnmetCondition;
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
    pub(crate) if_tags: Option<StatedTagCondition>,
    /// There is no blob: the caller may create blobs only.
    pub(crate) creates_only: bool,
    /// Whether errors show the caller the current etag or time.
    pub(crate) shows_current: bool,
}

/// A condition on tags, and its text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct StatedTagCondition {
    /// As the client states it.
    pub(crate) text: String,
    /// The condition.
    pub(crate) condition: TagCondition,
}

/// A field of the conditions of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ConditionField {
    /// See [`Conditions::if_match`].
    Match,
    /// See [`Conditions::if_none_match`].
    NoneMatch,
    /// See [`Conditions::if_modified_since`].
    ModifiedSince,
    /// See [`Conditions::if_unmodified_since`].
    UnmodifiedSince,
    /// See [`Conditions::if_tags`].
    Tags,
}

impl ConditionField {
    /// Its name in a request.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Match => "if_match",
            Self::NoneMatch => "if_none_match",
            Self::ModifiedSince => "if_modified_since",
            Self::UnmodifiedSince => "if_unmodified_since",
            Self::Tags => "if_tags",
        }
    }
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
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ConditionError {
    /// A condition is false.
    #[error(
        "the condition specified using conditional fields is not met: {}",
        .0.within("conditions")
    )]
    Unmet(UnmetCondition),
    /// What is being read was overwritten or deleted.
    #[error("the blob was overwritten or deleted while it was read")]
    NotMet,
    /// A blob exists, and the write requires none.
    #[error("the specified blob already exists")]
    AlreadyExists,
    /// A write has several etags in one field, or two conditions that it cannot combine.
    #[error("multiple conditions are not supported")]
    Multiple {
        /// The field.
        field: ConditionField,
        /// The other one; none where the field has several etags.
        other: Option<ConditionField>,
    },
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
    /// [`ConditionError::Unmet`], [`ConditionError::Unsatisfiable`].
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
        let is_tagged = self.if_tags.as_ref().is_none_or(|it| it.condition.holds(tags));
        for (is_met, field) in [
            (is_same, ConditionField::Match),
            (is_old, ConditionField::UnmodifiedSince),
            (is_tagged, ConditionField::Tags),
        ] {
            if !is_met {
                return Err(self.unmet(field, Some(current)));
            }
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
    /// [`ConditionError::Multiple`], [`ConditionError::Unmet`], [`ConditionError::AlreadyExists`],
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
        let is_tagged = self.if_tags.as_ref().is_none_or(|it| {
            current.is_some_and(|current: ConditionTarget<'_>| it.condition.holds(current.tags))
        });
        let current = current.map(|current| current.etag);
        if let Some(combined) = self.combined() {
            return Err(combined);
        }
        let (is_met, field) = match (if_match.first(), if_none_match.first()) {
            (Some(pattern), _) => {
                (current.is_some_and(|etag| etag.matches(pattern)), ConditionField::Match)
            }
            (None, Some(pattern)) => {
                (!current.is_some_and(|etag| etag.matches(pattern)), ConditionField::NoneMatch)
            }
            (None, None) => match (if_modified_since, if_unmodified_since) {
                (Some(time), _) => {
                    let is_newer = current.is_none_or(|it| is_after(it, *time));
                    (is_newer, ConditionField::ModifiedSince)
                }
                (None, time) => {
                    let is_old = |time: Ticks| current.is_some_and(|it| !is_after(it, time));
                    (time.is_none_or(is_old), ConditionField::UnmodifiedSince)
                }
            },
        };
        let requires_absent = if_none_match.contains(&ETagPattern::Any);
        match (is_met, is_tagged) {
            (true, true) => Ok(()),
            (false, _) if requires_absent && kind == WriteKind::Content => {
                Err(ConditionError::AlreadyExists)
            }
            (false, _) => Err(self.unmet(field, current)),
            (true, false) => Err(self.unmet(ConditionField::Tags, current)),
        }
    }

    /// What a write cannot combine, if there is something.
    fn combined(&self) -> Option<ConditionError> {
        use ConditionField::{Match, ModifiedSince, NoneMatch, UnmodifiedSince};
        let counts = [(Match, self.if_match.len()), (NoneMatch, self.if_none_match.len())];
        if let Some((field, _)) = counts.into_iter().find(|(_, count)| *count > 1) {
            return Some(ConditionError::Multiple { field, other: None });
        }
        let is_stated = |field| match field {
            Match => !self.if_match.is_empty(),
            NoneMatch => !self.if_none_match.is_empty(),
            ModifiedSince => self.if_modified_since.is_some(),
            UnmodifiedSince => self.if_unmodified_since.is_some(),
            ConditionField::Tags => self.if_tags.is_some(),
        };
        let pairs = [
            (Match, NoneMatch),
            (Match, ModifiedSince),
            (NoneMatch, UnmodifiedSince),
            (ModifiedSince, UnmodifiedSince),
        ];
        let pair = pairs.into_iter().find(|(one, other)| is_stated(*one) && is_stated(*other));
        pair.map(|(field, other)| ConditionError::Multiple { field, other: Some(other) })
    }

    /// Why a read that is [`Freshness::NotModified`] has no content.
    pub(crate) fn not_modified(&self, current: ETag) -> UnmetCondition {
        let field = match self.if_none_match.is_empty() {
            true => ConditionField::ModifiedSince,
            false => ConditionField::NoneMatch,
        };
        UnmetCondition::new(self, field, Some(current))
    }

    fn unmet(&self, field: ConditionField, current: Option<ETag>) -> ConditionError {
        ConditionError::Unmet(UnmetCondition::new(self, field, current))
    }
}

/// Whether a version is of a later second than `time`.
fn is_after(version: ETag, time: Ticks) -> bool {
    version.0.get() / PER_SECOND > time.get() / PER_SECOND
}
