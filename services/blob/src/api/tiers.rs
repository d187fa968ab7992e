//! Access tiers in requests and responses, and the call that sets one.

#[cfg(test)]
mod tests;

use trestle_model::fault::{Fault, Reason};
use trestle_proto::blob::v1 as proto;

use super::{BlobApi, parse::RequestParser};
use crate::{
    authorize::BlobAccess,
    blobs::BlobChange,
    conditions::Conditions,
    record::{BlobKind, BlobRecord},
    tier::Tier,
};

const TIERS: [(proto::AccessTier, Tier); 15] = [
    (proto::AccessTier::Hot, Tier::Hot),
    (proto::AccessTier::Cool, Tier::Cool),
    (proto::AccessTier::Cold, Tier::Cold),
    (proto::AccessTier::Archive, Tier::Archive),
    (proto::AccessTier::P4, Tier::P4),
    (proto::AccessTier::P6, Tier::P6),
    (proto::AccessTier::P10, Tier::P10),
    (proto::AccessTier::P15, Tier::P15),
    (proto::AccessTier::P20, Tier::P20),
    (proto::AccessTier::P30, Tier::P30),
    (proto::AccessTier::P40, Tier::P40),
    (proto::AccessTier::P50, Tier::P50),
    (proto::AccessTier::P60, Tier::P60),
    (proto::AccessTier::P70, Tier::P70),
    (proto::AccessTier::P80, Tier::P80),
];

impl RequestParser {
    /// An access tier; none if it is not stated or rejected.
    pub(super) fn tier(&mut self, number: i32) -> Option<Tier> {
        let is_stated = number != proto::AccessTier::Unspecified as i32;
        let of_number = TIERS.iter().find(|(tier, _)| *tier as i32 == number);
        if is_stated && of_number.is_none() {
            let rule = format!("must be a known tier: value=`{number}`");
            self.push(Reason::InvalidBlobTier, "access_tier", rule);
        }
        of_number.map(|(_, tier)| *tier)
    }

    /// An access tier of blobs of a kind; none if it is not stated or rejected.
    pub(super) fn tier_of(&mut self, number: i32, kind: BlobKind) -> Option<Tier> {
        let tier = self.tier(number)?;
        if tier.check_kind(kind).is_err() {
            let rule = "must be a tier of blobs of this type";
            self.push(Reason::InvalidBlobTier, "access_tier", rule);
        }
        Some(tier)
    }

    fn required_tier(&mut self, number: i32) -> Option<Tier> {
        if number == proto::AccessTier::Unspecified as i32 {
            self.push(Reason::InvalidBlobTier, "access_tier", "required: the tier to set");
        }
        self.tier(number)
    }
}

/// A blob with its access tier, which a block blob always has.
pub(super) fn with_tier(blob: proto::Blob, record: &BlobRecord) -> proto::Blob {
    let is_block = record.content.kind() == BlobKind::Block;
    let inferred = if is_block { proto::AccessTier::Hot } else { proto::AccessTier::Unspecified };
    let of_tier = |tier: Tier| TIERS.iter().find(|(_, other)| *other == tier);
    let set = record.tier.and_then(|assigned| of_tier(assigned.tier)).map(|(tier, _)| *tier);
    proto::Blob {
        access_tier: set.unwrap_or(inferred).into(),
        is_access_tier_inferred: is_block && set.is_none(),
        access_tier_change_time: record.tier.map(|assigned| assigned.changed_at.into()),
        ..blob
    }
}

impl BlobApi {
    pub(super) async fn set_tier(
        &self,
        access: &BlobAccess,
        request: proto::SetBlobTierRequest,
    ) -> Result<proto::SetBlobTierResponse, Fault> {
        let mut parser = RequestParser::of(access);
        let names = parser.names(request.container, request.blob);
        let tier = parser.required_tier(request.access_tier);
        let lease_id = parser.lease_id(&request.lease_id, "lease_id");
        let if_tags = parser.tag_condition(request.if_tags, "if_tags");
        let (names, tier) = parser.finish(names.zip(tier))?;
        let key = self.key(access, &names).await?;
        let required = (Conditions { if_tags, ..Conditions::default() }, lease_id);
        let changed = self.blobs.change(key, BlobChange::Tier(tier), required).await?;
        let blob = self.show_changed(access, &names, changed.record.clone());
        Ok(proto::SetBlobTierResponse { blob: Some(with_tier(blob, &changed.record)) })
    }
}
