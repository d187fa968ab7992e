//! Receipts: which delivery of which message a consumer holds.
//!
//! A receipt says where the state of its message lies and the generation that the state had. It is no secret and needs
//! no signature: what it says is compared with what is stored, and whoever may delete from the queue may delete. Each
//! receive or update gives the message another place or generation, which makes older receipts void.

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use trestle_service::fault::{Fault, Reason, quoted};
use uuid::Uuid;

use crate::{keys::Place, stored::MessageState, wire::Fields};

/// First byte of every receipt; a new layout gets a new one.
const VERSION: u8 = 1;
/// The same of a message of an ordering group, so that whoever deletes it knows what else to read.
const VERSION_IN_GROUP: u8 = 2;

/// The text of a receipt, in bytes: long ones are not looked at.
const TEXT_BYTES: usize = 28;

/// Which delivery of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Receipt {
    /// Where the message stood.
    pub(crate) place: Place,
    /// How often its state had been changed.
    pub(crate) generation: u32,
    /// Whether the message is of an ordering group.
    pub(crate) is_in_group: bool,
}

/// A receipt with the id of the message that it is said to be of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Claimed {
    /// The id as the client gave it.
    pub(crate) message_id: String,
    /// The receipt.
    pub(crate) receipt: Receipt,
}

impl Claimed {
    /// Whether the message with this id is meant.
    pub(crate) fn is_of(&self, id: Uuid) -> bool {
        Uuid::try_parse(&self.message_id).is_ok_and(|claimed| claimed == id)
    }
}

impl Receipt {
    /// The receipt of a message that stands there so.
    pub(crate) fn of(place: Place, state: &MessageState) -> Self {
        let MessageState { generation, group, .. } = *state;
        Self { place, generation, is_in_group: group.is_some() }
    }

    /// As URL-safe text.
    pub(crate) fn to_text(self) -> String {
        let mut bytes = [0; 21];
        let (version, rest) = bytes.split_at_mut(1);
        version.copy_from_slice(&[if self.is_in_group { VERSION_IN_GROUP } else { VERSION }]);
        let (sequence, rest) = rest.split_at_mut(8);
        sequence.copy_from_slice(&self.place.sequence.to_be_bytes());
        let (generation, visible_at) = rest.split_at_mut(4);
        generation.copy_from_slice(&self.generation.to_be_bytes());
        visible_at.copy_from_slice(&self.place.visible_at.get().to_be_bytes());
        URL_SAFE_NO_PAD.encode(bytes)
    }

    /// From the text that a response carried; none if it is something else.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        if text.len() != TEXT_BYTES {
            return None;
        }
        let bytes = URL_SAFE_NO_PAD.decode(text).ok()?;
        let is_in_group = bytes.first() == Some(&VERSION_IN_GROUP);
        let version = if is_in_group { VERSION_IN_GROUP } else { VERSION };
        let mut fields = Fields::of(&bytes, version)?;
        let (sequence, generation) = (fields.u64()?, fields.u32()?);
        let place = Place { visible_at: fields.ticks()?, sequence };
        fields.end(Self { place, generation, is_in_group })
    }
}

/// The failure for a text in `field` that is no receipt.
pub(crate) fn malformed(field: impl Into<String>, text: &str) -> Fault {
    if text.is_empty() {
        let rule = "required: the last receipt of the message";
        return Fault::violation(Reason::MissingRequiredQueryParameter, field, rule);
    }
    let rule = format!("Invalid pop receipt format: value=`{}`", quoted(text));
    Fault::violation(Reason::InvalidQueryParameterValue, field, rule)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use trestle_service::clock::Ticks;

    use super::*;

    proptest! {
        #[test]
        fn receipts_survive_as_text_that_needs_no_escapes(
            ticks in 0..=Ticks::MAX.get(), sequence: u64, generation: u32, is_in_group: bool,
            cut in 0..TEXT_BYTES,
        ) {
            let visible_at = Ticks::new(ticks).expect("in range");
            let place = Place { visible_at, sequence };
            let receipt = Receipt { place, generation, is_in_group };

            let text = receipt.to_text();

            prop_assert_eq!(Receipt::parse(&text), Some(receipt));
            prop_assert!(text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_'));
            prop_assert_eq!(Receipt::parse(&text[..cut]), None);
            prop_assert_eq!(Receipt::parse(&format!("{text}A")), None);
        }

        #[test]
        fn arbitrary_text_is_no_receipt(text in "[^A]{0,40}") {
            prop_assert_eq!(Receipt::parse(&text), None, "every receipt starts with AQ or Ag");
        }
    }

    #[test]
    fn an_id_is_compared_as_an_id() {
        let id = Uuid::from_u128(7);
        let place = Place { visible_at: Ticks::MAX, sequence: 0 };
        let receipt = Receipt { place, generation: 0, is_in_group: false };
        let claimed = |message_id: String| Claimed { message_id, receipt };

        assert!(claimed(id.to_string()).is_of(id));
        assert!(claimed(id.to_string().to_uppercase()).is_of(id));
        assert!(!claimed(Uuid::from_u128(8).to_string()).is_of(id));
        assert!(!claimed("hello".to_owned()).is_of(id));
    }
}
