//! The XML of Azure Storage, in and out: settings of a service, access policies, stats, queue
//! messages, containers and blobs. Pure: bytes in, messages of the contract out, and vice versa.
//!
//! A document is parsed whole and bounded, in depth, in elements and by the size of its body; no
//! entity is expanded but the five of XML itself, and a document type is rejected. Values are
//! only parsed; the service validates them.

mod blob_settings;
mod blobs;
mod blocks;
mod containers;
mod delegation;
mod element;
mod listing;
mod messages;
mod pages;
mod policies;
mod properties;
mod queues;
mod stats;
mod tags;
mod words;
mod write;

pub use self::{
    blob_settings::{BlobSettings, read_blob_settings, write_blob_settings},
    blobs::{BlobsDocument, FoundDocument, write_blobs, write_found},
    blocks::{BlockLists, read_blocks, write_block_lists},
    containers::{ContainersDocument, write_containers},
    delegation::{DelegationKeyDocument, KeyInfo, read_key_info, write_delegation_key},
    listing::Echo,
    messages::{read_message, write_deliveries, write_peeked, write_sent},
    pages::write_page_ranges,
    policies::{read_policies, write_policies},
    properties::{read_properties, write_properties},
    queues::{Listing, write_queues},
    stats::write_stats,
    tags::{read_tags, write_tags},
    words::{LeaseWords, blob_type, content_type, lease_words, public_access, tier_name},
    write::{ErrorBody, write_error},
};

/// `Content-Type` of every document.
pub const CONTENT_TYPE: &str = "application/xml";
