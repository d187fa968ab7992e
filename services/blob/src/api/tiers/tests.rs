//! Tests of access tiers in requests and responses.

use trestle_model::time::Ticks;

use super::*;
use crate::{
    api::{
        parse::tests::{assert_rejected, parsed},
        render::tests::record,
    },
    record::Content,
    tier::AssignedTier,
};

const KINDS: [BlobKind; 3] = [BlobKind::Block, BlobKind::Append, BlobKind::Page];
const REJECTED: [(Reason, &str); 1] = [(Reason::InvalidBlobTier, "access_tier")];

#[test]
fn every_tier_has_one_number_in_requests() {
    for tier in Tier::ALL {
        let numbers = TIERS.iter().filter(|(_, other)| *other == tier);
        let numbers: Vec<i32> = numbers.map(|(number, _)| (*number).into()).collect();
        assert_eq!(numbers.len(), 1, "{tier:?}");
        assert_eq!(parsed(|parser| parser.tier(numbers[0])).ok(), Some(Some(tier)));
        assert_eq!(parsed(|parser| parser.required_tier(numbers[0])).ok(), Some(Some(tier)));
    }
}

#[test]
fn a_tier_may_be_absent_where_it_is_not_required() {
    assert_eq!(parsed(|parser| parser.tier(0)).ok(), Some(None));
    for kind in KINDS {
        assert_eq!(parsed(|parser| parser.tier_of(0, kind)).ok(), Some(None));
    }
    assert_rejected(parsed(|parser| parser.required_tier(0)), &REJECTED);
    for number in [-1, 1000, i32::MIN, i32::MAX] {
        assert_rejected(parsed(|parser| parser.tier(number)), &REJECTED);
        assert_rejected(parsed(|parser| parser.required_tier(number)), &REJECTED);
    }
}

#[test]
fn block_and_page_blobs_have_tiers_of_their_own_and_append_blobs_none() {
    let standard = [Tier::Hot, Tier::Cool, Tier::Cold, Tier::Archive];
    for (number, tier) in TIERS {
        for kind in KINDS {
            let is_allowed = match kind {
                BlobKind::Block => standard.contains(&tier),
                BlobKind::Page => !standard.contains(&tier),
                BlobKind::Append => false,
            };
            let found = parsed(|parser| parser.tier_of(number.into(), kind));
            match is_allowed {
                true => assert_eq!(found.ok(), Some(Some(tier)), "{tier:?} {kind:?}"),
                false => assert_rejected(found, &REJECTED),
            }
        }
    }
}

#[test]
fn a_tier_is_inferred_for_block_blobs_alone() {
    let changed_at = Ticks::new(7).expect("in range");
    for kind in KINDS {
        let record = BlobRecord { content: Content::empty(kind), ..record() };
        let blob = with_tier(proto::Blob::default(), &record);
        let is_block = kind == BlobKind::Block;
        let expected =
            if is_block { proto::AccessTier::Hot } else { proto::AccessTier::Unspecified };
        assert_eq!((blob.access_tier(), blob.is_access_tier_inferred), (expected, is_block));
        assert_eq!(blob.access_tier_change_time, None);
    }
    for (number, tier) in TIERS {
        let kind =
            if tier.check_kind(BlobKind::Block).is_ok() { BlobKind::Block } else { BlobKind::Page };
        let record = BlobRecord {
            content: Content::empty(kind),
            tier: Some(AssignedTier { tier, changed_at }),
            ..record()
        };
        let blob = with_tier(proto::Blob::default(), &record);
        assert_eq!((blob.access_tier(), blob.is_access_tier_inferred), (number, false));
        assert_eq!(blob.access_tier_change_time, Some(changed_at.into()));
    }
}
