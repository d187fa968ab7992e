//! The behaviour of Trestle for its clients.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::cast_possible_truncation,
    missing_docs,
    reason = "tests"
)]

mod azure_blob;
mod azure_edge;
mod azure_queue;
mod azure_table;
mod bad_input;
mod batches;
mod bearer;
mod blob;
mod browsers;
mod compression;
mod conditions;
mod contract;
mod credentials;
mod cross_origin;
mod encryption;
mod entities;
mod error_domain;
mod explain;
mod filters;
mod grants;
mod hot_rows;
mod imports;
mod key_sets;
mod limits;
mod log;
mod model;
mod order_of_checks;
mod paging;
mod public_key;
mod queries;
mod queue;
mod quotas;
mod reflection;
mod revocation;
mod settings;
mod short_circuit;
mod signatures;
mod streams;
mod tables;
