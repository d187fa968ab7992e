//! The runtime from outside: configuration from real files, listeners on real sockets.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "tests")]

mod admin;
mod config;
mod goaway;
mod health;
mod keepalive;
mod listening;
mod reflection;
mod serve;
mod shares;
mod slow_clients;
mod task;
mod unauthenticated;
mod upstream;
