//! Access tiers: which a blob may have, and what an archived one rejects. Pure decisions.

#[cfg(test)]
mod tests;

use trestle_model::time::Ticks;

use crate::record::{BlobKind, BlobRecord};

/// An access tier. Its number is its form on disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tier {
    /// Read often; of block blobs, as the next three are.
    Hot = 1,
    /// Read seldom.
    Cool = 2,
    /// Hardly read.
    Cold = 3,
    /// Not read.
    Archive = 4,
    /// Premium P4; of page blobs.
    P4 = 5,
    /// Premium P6; of page blobs.
    P6 = 6,
    /// Premium P10; of page blobs.
    P10 = 7,
    /// Premium P15; of page blobs.
    P15 = 8,
    /// Premium P20; of page blobs.
    P20 = 9,
    /// Premium P30; of page blobs.
    P30 = 10,
    /// Premium P40; of page blobs.
    P40 = 11,
    /// Premium P50; of page blobs.
    P50 = 12,
    /// Premium P60; of page blobs.
    P60 = 13,
    /// Premium P70; of page blobs.
    P70 = 14,
    /// Premium P80; of page blobs.
    P80 = 15,
}

/// A tier that a client set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct AssignedTier {
    /// The tier.
    pub(crate) tier: Tier,
    /// When it was last changed.
    pub(crate) changed_at: Ticks,
}

/// Why a tier does not permit a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum TierError {
    /// The blob is archived.
    #[error("this operation is not permitted on an archived blob")]
    Archived,
    /// The tier is of another kind of blob.
    #[error("the specified blob tier is invalid for a blob of this type")]
    OfOtherKind,
    /// A blob of this kind has no tiers.
    #[error("a blob of this type has no tiers")]
    NoTiers,
}

impl Tier {
    /// Every tier.
    pub(crate) const ALL: [Self; 15] = [
        Self::Hot,
        Self::Cool,
        Self::Cold,
        Self::Archive,
        Self::P4,
        Self::P6,
        Self::P10,
        Self::P15,
        Self::P20,
        Self::P30,
        Self::P40,
        Self::P50,
        Self::P60,
        Self::P70,
        Self::P80,
    ];

    /// Whether it is one of page blobs.
    fn is_premium(self) -> bool {
        !matches!(self, Self::Hot | Self::Cool | Self::Cold | Self::Archive)
    }

    /// Whether a blob of this kind may have it.
    ///
    /// # Errors
    /// [`TierError::OfOtherKind`] and [`TierError::NoTiers`].
    pub(crate) fn check_kind(self, kind: BlobKind) -> Result<(), TierError> {
        match kind {
            BlobKind::Append => Err(TierError::NoTiers),
            BlobKind::Block if self.is_premium() => Err(TierError::OfOtherKind),
            BlobKind::Page if !self.is_premium() => Err(TierError::OfOtherKind),
            BlobKind::Block | BlobKind::Page => Ok(()),
        }
    }
}

impl AssignedTier {
    /// The tier after it is set, from the current one. The time of a tier that remains does not change.
    pub(crate) fn set(current: Option<Self>, tier: Tier, now: Ticks) -> Self {
        let same = current.filter(|current| current.tier == tier);
        same.unwrap_or(Self { tier, changed_at: now })
    }
}

impl BlobRecord {
    /// Whether the content can be read, and the blob changed.
    ///
    /// # Errors
    /// [`TierError::Archived`].
    pub(crate) fn check_online(&self) -> Result<(), TierError> {
        match self.tier {
            Some(AssignedTier { tier: Tier::Archive, .. }) => Err(TierError::Archived),
            _ => Ok(()),
        }
    }
}
