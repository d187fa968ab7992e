//! What the client commands of the `trestle` binary are built from: flags, credentials, connections, retries, files of
//! rows, output, errors and their exit codes.
//!
//! A command is a crate or a module of its own; this one has no command but `context`, which stores flags.

#![warn(clippy::print_stderr)]

pub mod checkpoint;
pub mod client;
pub mod confirm;
pub mod context;
pub mod credentials;
pub mod diagnosis;
pub mod endpoint;
pub mod entity_json;
pub mod errors;
pub mod field_error;
pub mod files;
pub mod flags;
pub mod grammar;
pub mod interrupt;
pub mod lines;
pub mod messages;
pub mod outcome;
pub mod output;
pub mod retry;
pub mod row_mapping;
pub mod rows;
pub mod scan;
pub mod selection;
pub mod source_server;
pub mod trust;
pub mod type_names;
pub mod upload;
pub mod values;

use trestle_model::edm::{self, datetime};
