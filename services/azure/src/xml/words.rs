//! The words of headers and documents for the values of the contract.

use trestle_proto::blob::v1::{
    AccessTier, BlobType, HttpProperties, Lease, LeaseState, PublicAccess,
};

/// The type of a blob.
#[must_use]
pub fn blob_type(kind: BlobType) -> &'static str {
    match kind {
        BlobType::Append => "AppendBlob",
        BlobType::Page => "PageBlob",
        BlobType::Block | BlobType::Unspecified => "BlockBlob",
    }
}

/// The media type of a blob; the general one where none is stated.
#[must_use]
pub fn content_type(properties: &HttpProperties) -> &str {
    match properties.content_type.as_str() {
        "" => "application/octet-stream",
        stated => stated,
    }
}

/// The name of an access tier; empty for none.
#[must_use]
pub fn tier_name(tier: AccessTier) -> &'static str {
    match tier {
        AccessTier::Unspecified => "",
        AccessTier::Hot => "Hot",
        AccessTier::Cool => "Cool",
        AccessTier::Cold => "Cold",
        AccessTier::Archive => "Archive",
        AccessTier::P4 => "P4",
        AccessTier::P6 => "P6",
        AccessTier::P10 => "P10",
        AccessTier::P15 => "P15",
        AccessTier::P20 => "P20",
        AccessTier::P30 => "P30",
        AccessTier::P40 => "P40",
        AccessTier::P50 => "P50",
        AccessTier::P60 => "P60",
        AccessTier::P70 => "P70",
        AccessTier::P80 => "P80",
    }
}

/// The public access of a container; none for a private one.
#[must_use]
pub fn public_access(access: PublicAccess) -> Option<&'static str> {
    match access {
        PublicAccess::Unspecified => None,
        PublicAccess::Blob => Some("blob"),
        PublicAccess::Container => Some("container"),
    }
}

/// A lease in three words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LeaseWords {
    /// Whether a write needs its id: `locked` or `unlocked`.
    pub status: &'static str,
    /// Its state.
    pub state: &'static str,
    /// `infinite` or `fixed`, while it is active.
    pub duration: Option<&'static str>,
}

/// The words of a lease; those of an available one for none.
#[must_use]
pub fn lease_words(lease: Option<&Lease>) -> LeaseWords {
    let (status, state) = match lease.map(Lease::state).unwrap_or_default() {
        LeaseState::Leased => ("locked", "leased"),
        LeaseState::Breaking => ("locked", "breaking"),
        LeaseState::Expired => ("unlocked", "expired"),
        LeaseState::Broken => ("unlocked", "broken"),
        LeaseState::Available | LeaseState::Unspecified => ("unlocked", "available"),
    };
    let is_leased = lease.filter(|lease| lease.state() == LeaseState::Leased);
    let duration = is_leased.map(|lease| if lease.is_infinite { "infinite" } else { "fixed" });
    LeaseWords { status, state, duration }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_tier_has_a_name_of_its_own() {
        let tiers = (0..).map_while(|number| AccessTier::try_from(number).ok());
        let mut names: Vec<_> = tiers.map(tier_name).collect();
        assert_eq!(names.len(), 16);
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), 16);
    }

    #[test]
    fn a_lease_is_locked_while_writes_need_its_id() {
        let words = |state: LeaseState, is_infinite| {
            lease_words(Some(&Lease { state: state.into(), is_infinite }))
        };
        for (state, status, name) in [
            (LeaseState::Available, "unlocked", "available"),
            (LeaseState::Leased, "locked", "leased"),
            (LeaseState::Expired, "unlocked", "expired"),
            (LeaseState::Breaking, "locked", "breaking"),
            (LeaseState::Broken, "unlocked", "broken"),
        ] {
            assert_eq!((words(state, false).status, words(state, false).state), (status, name));
        }
        assert_eq!(words(LeaseState::Leased, true).duration, Some("infinite"));
        assert_eq!(words(LeaseState::Leased, false).duration, Some("fixed"));
        assert_eq!(words(LeaseState::Breaking, true).duration, None);
        assert_eq!(lease_words(None).state, "available");
    }
}
