//! The harness of the scenarios: worlds to run them in, and verbs that encapsulate plumbing but never
//! assert.
//!
//! A scenario is one async function over a [`World`]. [`scenario!`] turns it into three tests: with
//! the server in process, behind loopback sockets, and as separate gateway and table processes.

#![allow(
    clippy::panic,
    clippy::unwrap_used,
    clippy::missing_errors_doc,
    reason = "a harness stops the test it serves when its own plumbing breaks"
)]

mod blob;
mod browser;
mod call_error;
mod certificate_authority;
mod command;
mod entity;
mod log;
mod operation;
mod policies;
mod process;
mod queue;
mod raw;
mod remote;
mod replaced_file;
mod rest;
mod service;
mod signed;
mod table;
mod tables;
mod token_issuer;
mod wait;
mod wire;
mod world;

use std::time::Duration;

pub use crate::{
    blob::{Container, ReadContent, if_match, if_none_match},
    browser::{BINARY, TEXT, WebAnswer, framed, path_of, web_request},
    call_error::CallError,
    certificate_authority::{CertificateAuthority, Issued},
    command::{Ended, bare_command, command},
    entity::{double, entity, entity_of, int, key_of, null, prop, string, utf16, value_of},
    log::{LogStream, ReadLog, log_record, log_records, log_texts},
    operation::{delete_op, insert_op, update_op, upsert_op},
    process::{Server, build_server, has_gateway, metric, page, server_binary},
    queue::{
        Queue, data, delayed, duration, receipt_of, receipt_of_sent, seconds, text, text_of, texts,
        unique, with_ttl, without_expiry,
    },
    replaced_file::replace_file,
    rest::{BlobRest, QueueRest, Rest, RestRequest, RestResponse, exchange, try_exchange},
    service::Service,
    signed::{over_account, terms, terms_by_policy, token},
    table::{Imported, Table, Version},
    token_issuer::TokenIssuer,
    wait::becomes,
    world::{Transport, World},
};

/// The bound of a wait for a condition: what takes longer hangs, also on a machine that is busy with other programs.
pub const HANG: Duration = Duration::from_secs(120);

/// Runs each scenario in every kind of world.
#[macro_export]
macro_rules! scenario {
    ($($name:ident),+ $(,)?) => {
        $crate::scenario! { @as_separate_processes $($name),+ }
    };
    (@$separate:ident $($name:ident),+) => {$(
        mod $name {
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn in_process() {
                super::$name(&$crate::World::in_process().await).await;
            }

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn over_loopback() {
                super::$name(&$crate::World::over_loopback().await).await;
            }

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn as_separate_processes() {
                super::$name(&$crate::World::$separate().await).await;
            }
        }
    )+};
}

/// Runs each scenario in every kind of world, with settings of the gateway as variables.
#[macro_export]
macro_rules! scenario_with {
    ($settings:expr; $($name:ident),+ $(,)?) => {
        $crate::scenario_with! { @as_separate_processes_with $settings; $($name),+ }
    };
    (@$separate:ident $settings:expr; $($name:ident),+ $(,)?) => {$(
        mod $name {
            #[allow(unused_imports, reason = "the settings may be an item of the file")]
            use super::*;

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn in_process() {
                super::$name(&$crate::World::in_process_with($settings).await).await;
            }

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn over_loopback() {
                super::$name(&$crate::World::over_loopback_with($settings).await).await;
            }

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn as_separate_processes() {
                let world = $crate::World::$separate($settings).await;
                super::$name(&world).await;
            }
        }
    )+};
}

/// Runs each scenario on queues in every kind of world.
#[macro_export]
macro_rules! queue_scenario {
    ($($name:ident),+ $(,)?) => {
        $crate::scenario! { @with_separate_queues $($name),+ }
    };
}

/// Runs each scenario on blobs in every kind of world.
#[macro_export]
macro_rules! blob_scenario {
    ($($name:ident),+ $(,)?) => {
        $crate::scenario! { @with_separate_blobs $($name),+ }
    };
}

/// Runs each scenario on blobs in every kind of world, with settings.
#[macro_export]
macro_rules! blob_scenario_with {
    ($settings:expr; $($name:ident),+ $(,)?) => {
        $crate::scenario_with! { @with_separate_blobs_with $settings; $($name),+ }
    };
}

/// Runs each scenario on logs in every kind of world.
#[macro_export]
macro_rules! log_scenario {
    ($($name:ident),+ $(,)?) => {
        $crate::scenario! { @with_separate_logs $($name),+ }
    };
}

/// Runs each scenario on logs in every kind of world, with settings.
#[macro_export]
macro_rules! log_scenario_with {
    ($settings:expr; $($name:ident),+ $(,)?) => {
        $crate::scenario_with! { @with_separate_logs_with $settings; $($name),+ }
    };
}

/// Runs each scenario on blobs and logs in every kind of world.
#[macro_export]
macro_rules! object_scenario {
    ($($name:ident),+ $(,)?) => {
        $crate::scenario! { @with_separate_objects $($name),+ }
    };
}

/// Runs each scenario on a table service without a gateway, in both kinds.
#[macro_export]
macro_rules! service_scenario {
    ($($name:ident),+ $(,)?) => {$(
        mod $name {
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn in_process() {
                super::$name(&$crate::Service::in_process().await).await;
            }

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn as_separate_process() {
                super::$name(&$crate::Service::as_separate_process()).await;
            }
        }
    )+};
}
