//! Receipts: which delivery of which message a consumer holds.
//!
//! A receipt names the slot and the generation of the state of its message. It is not a secret and needs no signature:
//! it is compared with the stored state, and a caller that may delete from the queue may delete any message. Each
//! receive or update gives the message another slot or generation, which makes older receipts invalid.

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use bytes::Bytes;
use trestle_service::{
    clock::Ticks,
    fault::{Fault, Reason, quoted},
};
use uuid::Uuid;

use crate::{
    error::QueueError, messages::unexpired, slot::Slot, stored::MessageState, wire::RecordReader,
};

/// First byte of every receipt; a new layout has a new one.
const VERSION: u8 = 1;
/// The same for a message of an ordering group, whose delete reads the next message of the group too.
const VERSION_IN_GROUP: u8 = 2;

/// The text of a receipt, in bytes: longer ones are not decoded.
const TEXT_BYTES: usize = 28;

/// A delivery of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Receipt {
    /// The slot of the message.
    pub(crate) slot: Slot,
    /// How often its state had been changed.
    pub(crate) generation: u32,
    /// Whether the message is of an ordering group.
    pub(crate) is_in_group: bool,
}

/// A receipt with a message id, as a client presents them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Claimed {
    /// The id as the client gave it.
    pub(crate) message_id: String,
    /// The receipt.
    pub(crate) receipt: Receipt,
}

impl Claimed {
    /// Whether the claim is for the message with this id.
    pub(crate) fn is_of(&self, id: Uuid) -> bool {
        Uuid::try_parse(&self.message_id).is_ok_and(|claimed| claimed == id)
    }
}

impl Receipt {
    /// The receipt of a message in this slot and state.
    pub(crate) fn of(slot: Slot, state: &MessageState) -> Self {
        let MessageState { generation, group, .. } = *state;
        Self { slot, generation, is_in_group: group.is_some() }
    }

    /// As URL-safe text.
    pub(crate) fn to_text(self) -> String {
        let mut bytes = [0; 21];
        let (version, rest) = bytes.split_at_mut(1);
        version.copy_from_slice(&[if self.is_in_group { VERSION_IN_GROUP } else { VERSION }]);
        let (sequence, rest) = rest.split_at_mut(8);
        sequence.copy_from_slice(&self.slot.sequence.to_be_bytes());
        let (generation, visible_at) = rest.split_at_mut(4);
        generation.copy_from_slice(&self.generation.to_be_bytes());
        visible_at.copy_from_slice(&self.slot.visible_at.get().to_be_bytes());
        URL_SAFE_NO_PAD.encode(bytes)
    }

    /// From the text of a response; none if the text is malformed.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        if text.len() != TEXT_BYTES {
            return None;
        }
        let bytes = URL_SAFE_NO_PAD.decode(text).ok()?;
        let is_in_group = bytes.first() == Some(&VERSION_IN_GROUP);
        let version = if is_in_group { VERSION_IN_GROUP } else { VERSION };
        let mut fields = RecordReader::of(&bytes, version)?;
        let (sequence, generation) = (fields.u64()?, fields.u32()?);
        let slot = Slot { visible_at: fields.ticks()?, sequence };
        fields.end(Self { slot, generation, is_in_group })
    }
}

/// The error for a malformed receipt in `field`.
pub(crate) fn malformed(field: impl Into<String>, text: &str) -> Fault {
    if text.is_empty() {
        let rule = "required: the last receipt of the message";
        return Fault::violation(Reason::MissingRequiredQueryParameter, field, rule);
    }
    let rule = format!("Invalid pop receipt format: value=`{}`", quoted(text));
    Fault::violation(Reason::InvalidQueryParameterValue, field, rule)
}

/// The state in the slot of a receipt, if the receipt is the valid one of its message.
///
/// # Errors
/// [`QueueError::Corrupt`].
pub(crate) fn valid_state(
    claimed: &Claimed,
    stored: Option<&Bytes>,
    now: Ticks,
) -> Result<Option<MessageState>, QueueError> {
    let is_held = |state: &MessageState| {
        Receipt::of(claimed.receipt.slot, state) == claimed.receipt && claimed.is_of(state.id)
    };
    Ok(unexpired(stored, now)?.filter(is_held))
}

#[cfg(test)]
mod tests;
