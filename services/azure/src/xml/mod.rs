//! The XML of Azure Storage, in and out: settings of a service, access policies, stats, and queue
//! messages. Pure: bytes in, messages of the contract out, and vice versa.
//!
//! A document is parsed whole and bounded, in depth, in elements and by the size of its body; no
//! entity is expanded but the five of XML itself, and a document type is rejected. Values are
//! only parsed; the service validates them.

mod element;
mod messages;
mod policies;
mod properties;
mod queues;
mod stats;
mod write;

pub use self::{
    messages::{read_message, write_deliveries, write_peeked, write_sent},
    policies::{read_policies, write_policies},
    properties::{read_properties, write_properties},
    queues::{Listing, write_queues},
    stats::write_stats,
    write::{ErrorBody, write_error},
};

/// `Content-Type` of every document.
pub const CONTENT_TYPE: &str = "application/xml";
