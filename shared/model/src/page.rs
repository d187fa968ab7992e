//! Page tokens: opaque, stateless positions at which a listing continues.
//!
//! A token holds a position and the identity of the request it belongs to, so that a token of another table or another
//! filter is rejected instead of returning a wrong response. The checksum detects damage; it is not a secret, and needs
//! none: a forged position only moves the start within what the request may read anyway.

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use xxhash_rust::xxh3::xxh3_64;

use crate::limits::PAGE_TOKEN_BYTES_MAX;

/// First byte of every token; a new layout gets a new one.
const VERSION: u8 = 1;
/// Version, identity and checksum.
const OVERHEAD_BYTES: usize = 1 + 8 + 8;

/// Why a token is rejected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum TokenError {
    /// An invalid or damaged token.
    #[error("damaged, or not a token of this server")]
    Malformed,
    /// A token of another request.
    #[error(
        "belongs to another request: the fields must be those of the request for the first page"
    )]
    Foreign,
}

/// The identity of a request: the same for the pages of one listing, different for another table, container or filter.
#[must_use]
pub fn request_identity(parts: &[&[u8]]) -> u64 {
    let mut joined = Vec::new();
    for part in parts {
        joined.extend_from_slice(&(part.len() as u64).to_be_bytes());
        joined.extend_from_slice(part);
    }
    xxh3_64(&joined)
}

/// The token for `position` in the listing of `identity`.
#[must_use]
pub fn encode(identity: u64, position: &[u8]) -> String {
    let mut bytes = Vec::with_capacity(OVERHEAD_BYTES + position.len());
    bytes.push(VERSION);
    bytes.extend_from_slice(&identity.to_be_bytes());
    bytes.extend_from_slice(position);
    let checksum = xxh3_64(&bytes);
    bytes.extend_from_slice(&checksum.to_be_bytes());
    URL_SAFE_NO_PAD.encode(bytes)
}

/// The position in a token of the listing of `identity`.
///
/// # Errors
/// [`TokenError`].
pub fn decode(token: &str, identity: u64) -> Result<Vec<u8>, TokenError> {
    if token.len() > PAGE_TOKEN_BYTES_MAX {
        return Err(TokenError::Malformed);
    }
    let bytes = URL_SAFE_NO_PAD.decode(token).map_err(|_| TokenError::Malformed)?;
    let (signed, checksum) = bytes.split_last_chunk::<8>().ok_or(TokenError::Malformed)?;
    let (head, position) = signed.split_first_chunk::<9>().ok_or(TokenError::Malformed)?;
    let [version, owner @ ..] = *head;
    if version != VERSION || xxh3_64(signed) != u64::from_be_bytes(*checksum) {
        return Err(TokenError::Malformed);
    }
    if u64::from_be_bytes(owner) != identity {
        return Err(TokenError::Foreign);
    }
    Ok(position.to_vec())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn positions_survive_and_any_changed_character_is_detected(
            position in proptest::collection::vec(any::<u8>(), 0..200),
            identity: u64,
            index: proptest::sample::Index,
            other in "[A-Za-z0-9_-]",
        ) {
            let token = encode(identity, &position);
            prop_assert_eq!(decode(&token, identity), Ok(position));
            prop_assert_eq!(decode(&token, identity ^ 1), Err(TokenError::Foreign));

            let mut damaged = token.clone();
            let at = index.index(token.len());
            damaged.replace_range(at..=at, &other);
            prop_assume!(damaged != token);
            prop_assert_eq!(decode(&damaged, identity), Err(TokenError::Malformed));
        }

        #[test]
        fn arbitrary_text_is_rejected(token in ".{0,80}") {
            prop_assert_eq!(decode(&token, 7), Err(TokenError::Malformed));
        }
    }

    #[test]
    fn tokens_past_the_bound_are_rejected() {
        let token = encode(1, &vec![7; PAGE_TOKEN_BYTES_MAX]);
        assert_eq!(decode(&token, 1), Err(TokenError::Malformed));
    }

    #[test]
    fn the_parts_of_an_identity_are_separated() {
        assert_ne!(request_identity(&[b"ab", b"c"]), request_identity(&[b"a", b"bc"]));
    }
}
