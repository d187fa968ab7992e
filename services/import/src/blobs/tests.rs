//! Tests of what is written for a state of a blob.

use super::*;

#[test]
fn a_state_that_overwrites_another_has_a_tier_of_its_own() {
    let kinds = [
        (ImportedKind::Block, AccessTier::Hot),
        (ImportedKind::Append { is_sealed: false }, AccessTier::Unspecified),
        (ImportedKind::Page { sequence_number: 0 }, AccessTier::Unspecified),
    ];
    for (kind, tier) in kinds {
        let blob = ImportedBlob { kind, ..ImportedBlob::default() };
        assert_eq!(blob.default_tier(), tier, "{kind:?}");
    }
}
