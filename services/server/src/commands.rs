//! The commands, from their arguments to the exit code.

pub(crate) mod backup;
pub(crate) mod config;
mod configuration;
pub(crate) mod doctor;
pub(crate) mod documents;
pub(crate) mod healthcheck;
pub(crate) mod process;
pub(crate) mod serve;
pub(crate) mod stopped_store;
