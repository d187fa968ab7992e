//! The client commands of the real binary against a real server: output files, rejected input, and
//! reports of interrupted commands.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "tests")]

mod addresses;
mod backup;
mod blobs;
mod client;
mod compact;
mod configuration;
mod contexts;
mod counts;
mod damaged;
mod dashboards;
mod database;
mod doctor;
mod drained;
mod ends;
mod examples;
mod expiry;
mod exports;
mod formats;
mod grammar;
mod history;
mod input;
mod logs;
mod mapped;
mod members;
mod names;
mod no_match;
mod observed;
mod owners;
mod pages;
mod rejected;
mod repair;
mod resumed;
mod shared_blobs;
mod shared_logs;
mod shown;
mod signed;
mod store_copy;
mod targets;
mod tls_page;
mod tokens;
mod unanswered;
mod verify;
mod work;
