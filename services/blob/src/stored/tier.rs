//! The form of access tiers on disk.

use prost::Message;
use trestle_model::time::Ticks;

use crate::tier::{AssignedTier, Tier};

#[derive(Clone, PartialEq, Message)]
pub(crate) struct TierForm {
    /// The number of the tier.
    #[prost(uint32, tag = "1")]
    tier: u32,
    #[prost(uint64, tag = "2")]
    changed_at: u64,
}

#[cfg(test)]
impl TierForm {
    pub(super) fn numbered(tier: u32, changed_at: u64) -> Self {
        Self { tier, changed_at }
    }
}

pub(super) fn tier_form(assigned: AssignedTier) -> TierForm {
    let AssignedTier { tier, changed_at } = assigned;
    TierForm { tier: tier as u32, changed_at: changed_at.get() }
}

/// None if a field is out of range.
pub(super) fn tier_of(form: &TierForm) -> Option<AssignedTier> {
    let tier = Tier::ALL.into_iter().find(|tier| *tier as u32 == form.tier)?;
    Some(AssignedTier { tier, changed_at: Ticks::new(form.changed_at)? })
}
