//! Receipts: which delivery of which message a consumer holds.
//!
//! A receipt names the slot, the generation and the nonce of the state of its message, and is compared with the stored
//! state. Each receive or update gives the message another generation and another nonce of 64 random bits: older
//! receipts are invalid, and a caller that may peek cannot compute the receipt of another consumer. States that earlier
//! versions wrote have no nonce, and neither have their receipts, which are valid until the next delivery.

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use bytes::Bytes;
use trestle_model::fault::{Fault, Reason, quoted};
use trestle_model::time::Ticks;
use uuid::Uuid;

use crate::{error::QueueError, slot::Slot, stored::MessageState, wire::RecordReader};

/// First byte of every receipt; a new layout has a new one.
const VERSION: u8 = 1;
/// The same for a message of an ordering group, whose delete reads the next message of the group too.
const VERSION_IN_GROUP: u8 = 2;
/// The same with a nonce.
const VERSION_WITH_NONCE: u8 = 3;
const VERSION_WITH_NONCE_IN_GROUP: u8 = 4;

/// The text of a receipt, in bytes: longer ones are not decoded.
const TEXT_BYTES: usize = 39;
/// The same without a nonce.
const TEXT_BYTES_WITHOUT_NONCE: usize = 28;

/// A delivery of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Receipt {
    /// The slot of the message.
    pub(crate) slot: Slot,
    /// How often its state had been changed.
    pub(crate) generation: u32,
    /// The nonce of its state; 0 without one.
    pub(crate) nonce: u64,
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
        let MessageState { generation, nonce, group, .. } = *state;
        Self { slot, generation, nonce, is_in_group: group.is_some() }
    }

    /// As URL-safe text.
    pub(crate) fn to_text(self) -> String {
        let mut bytes = Vec::with_capacity(29);
        bytes.push(match (self.nonce != 0, self.is_in_group) {
            (false, false) => VERSION,
            (false, true) => VERSION_IN_GROUP,
            (true, false) => VERSION_WITH_NONCE,
            (true, true) => VERSION_WITH_NONCE_IN_GROUP,
        });
        bytes.extend_from_slice(&self.slot.sequence.to_be_bytes());
        bytes.extend_from_slice(&self.generation.to_be_bytes());
        bytes.extend_from_slice(&self.slot.visible_at.get().to_be_bytes());
        if self.nonce != 0 {
            bytes.extend_from_slice(&self.nonce.to_be_bytes());
        }
        URL_SAFE_NO_PAD.encode(bytes)
    }

    /// From the text of a response; none if the text is malformed.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        if ![TEXT_BYTES, TEXT_BYTES_WITHOUT_NONCE].contains(&text.len()) {
            return None;
        }
        let bytes = URL_SAFE_NO_PAD.decode(text).ok()?;
        let version = *bytes.first()?;
        let (has_nonce, is_in_group) = match version {
            VERSION => (false, false),
            VERSION_IN_GROUP => (false, true),
            VERSION_WITH_NONCE => (true, false),
            VERSION_WITH_NONCE_IN_GROUP => (true, true),
            _ => return None,
        };
        let mut fields = RecordReader::of(&bytes, version)?;
        let (sequence, generation) = (fields.u64()?, fields.u32()?);
        let slot = Slot { visible_at: fields.ticks()?, sequence };
        let nonce = if has_nonce { fields.nonce()? } else { 0 };
        fields.end(Self { slot, generation, nonce, is_in_group })
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
    Ok(MessageState::unexpired(stored, now)?.filter(is_held))
}

#[cfg(test)]
mod tests;
