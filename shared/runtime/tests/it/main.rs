//! The runtime as its users see it: configuration from real files, listeners on real sockets.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "tests")]

mod admin;
mod config;
mod health;
mod keepalive;
mod leaving;
mod readers;
mod serve;
mod task;
mod upstream;
