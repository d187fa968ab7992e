//! The read responses, with their entities as encoded bytes.
//!
//! A field of message type and a field of type bytes are the same on the wire. The server stores entities encoded
//! and the exporter writes them on, so neither decodes what it only forwards. Field numbers must equal
//! those in `table_service.proto`; a test below holds them to the published descriptors.

use bytes::Bytes;

use super::{Entity, QueryCost};

/// Response of GetEntity.
#[derive(Clone, PartialEq, prost::Message)]
pub struct GetEntityResponse {
    /// The encoded [`Entity`].
    #[prost(bytes = "bytes", tag = "1")]
    pub entity: Bytes,
    /// What the read cost.
    #[prost(message, optional, tag = "2")]
    pub cost: Option<QueryCost>,
}

/// Response of QueryEntities.
#[derive(Clone, PartialEq, prost::Message)]
pub struct QueryEntitiesResponse {
    /// The encoded [`Entity`] messages, in key order.
    #[prost(bytes = "bytes", repeated, tag = "1")]
    pub entities: Vec<Bytes>,
    /// Where the next page starts; empty at the end.
    #[prost(string, tag = "2")]
    pub next_page_token: String,
    /// What the page cost.
    #[prost(message, optional, tag = "3")]
    pub cost: Option<QueryCost>,
}

/// Response of StreamEntities.
#[derive(Clone, PartialEq, prost::Message)]
pub struct StreamEntitiesResponse {
    /// The encoded [`Entity`] messages, in key order.
    #[prost(bytes = "bytes", repeated, tag = "1")]
    pub entities: Vec<Bytes>,
    /// Continues after this message; empty in the last one.
    #[prost(string, tag = "2")]
    pub resume_token: String,
    /// What this message cost.
    #[prost(message, optional, tag = "3")]
    pub cost: Option<QueryCost>,
}

macro_rules! name {
    ($($message:ident),+) => {$(
        impl prost::Name for $message {
            const PACKAGE: &'static str = "trestle.table.v1";
            const NAME: &'static str = stringify!($message);
        }
    )+};
}

name!(GetEntityResponse, QueryEntitiesResponse, StreamEntitiesResponse);

/// Decodes entities of a read response.
///
/// # Errors
/// When an element is not an encoded [`Entity`].
pub fn decode_entities(encoded: &[Bytes]) -> Result<Vec<Entity>, prost::DecodeError> {
    encoded.iter().map(|bytes| prost::Message::decode(bytes.clone())).collect()
}

#[cfg(test)]
mod tests {
    use prost::Message as _;

    fn published_fields(message: &str) -> Vec<(String, i32)> {
        let set = prost_types::FileDescriptorSet::decode(crate::FILE_DESCRIPTOR_SET)
            .expect("descriptors decode");
        set.file
            .iter()
            .flat_map(|file| &file.message_type)
            .find(|m| m.name() == message)
            .expect("message is published")
            .field
            .iter()
            .map(|field| (field.name().to_owned(), field.number()))
            .collect()
    }

    #[test]
    fn field_numbers_equal_the_published_contract() {
        let owned = |fields: &[(&str, i32)]| -> Vec<(String, i32)> {
            fields.iter().map(|(name, number)| ((*name).to_owned(), *number)).collect()
        };

        assert_eq!(published_fields("GetEntityResponse"), owned(&[("entity", 1), ("cost", 2)]));
        assert_eq!(
            published_fields("QueryEntitiesResponse"),
            owned(&[("entities", 1), ("next_page_token", 2), ("cost", 3)])
        );
        assert_eq!(
            published_fields("StreamEntitiesResponse"),
            owned(&[("entities", 1), ("resume_token", 2), ("cost", 3)])
        );
    }
}
