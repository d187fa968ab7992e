//! Send, receive and delete: Trestle beside Azurite, RabbitMQ and NATS JetStream; with a third argument `rest`,
//! the protocol of Azure Storage beside Azurite and beside gRPC, see `rest`; with `blob` blobs, and with
//! `blob-rest` blobs over REST beside gRPC and Azurite, see `blob`.
//!
//! `trestle-peers TRESTLE PEERS [rest|blob|blob-rest]` takes the server's binary and the directory that `install.sh`
//! filled. For
//! each way of working, every installed server that supports it is started on free ports of the loopback with a queue
//! and a backlog, and then they take turns under the same load, so that a slow moment of the machine hits all.
//! `BENCH_SECONDS` is the length of a turn (default 3, of `rest` and `blob` 2), `BENCH_ROUNDS` their number (default
//! 3), `BENCH_BACKLOG` how many messages wait in every queue (default 10,000), `BENCH_WAYS` which ways (default
//! `pulled,pushed,batched`), and `BENCH_PEERS` beside which peers (default `azurite,rabbitmq,nats`). With `BENCH_ONLY`,
//! `rest` measures only what has this in its name.
//!
//! Where the systems differ, the peer gets what is kinder to it; docs/benchmarks.md lists it.

#![allow(
    clippy::disallowed_methods,
    reason = "a benchmark reads its plan from the environment, and has no runtime of ours"
)]

mod azurite;
mod blob;
mod load;
mod nats;
mod rabbitmq;
mod rest;
mod servers;
mod trestle;
mod wire;

use std::{path::PathBuf, time::Duration};

use crate::{
    load::{Plan, Runner, Started, Way},
    servers::Installed,
};

/// Concurrent clients.
const CLIENTS: usize = 64;
/// How many connections they share.
const CONNECTIONS: usize = 4;

fn main() {
    let mut arguments = std::env::args_os().skip(1).map(PathBuf::from);
    let (Some(trestle), Some(peers)) = (arguments.next(), arguments.next()) else {
        eprintln!("usage: trestle-peers TRESTLE PEERS [rest|blob|blob-rest]");
        std::process::exit(2);
    };
    let what = arguments.next().unwrap_or_default();
    let installed = Installed { trestle, peers };
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    runtime.expect("a runtime").block_on(async {
        match what.to_str() {
            Some("rest") => rest::run(&installed, plan(2)).await,
            Some("blob") => blob::run(&installed, plan(2)).await,
            Some("blob-rest") => blob::run_rest(&installed, plan(2)).await,
            _ => run(&installed, plan(3)).await,
        }
    });
}

/// From the environment, or else turns of so many seconds.
fn plan(seconds: u64) -> Plan {
    Plan {
        turn: Duration::from_secs(number("BENCH_SECONDS", seconds)),
        rounds: number("BENCH_ROUNDS", 3),
        backlog: number("BENCH_BACKLOG", 10_000),
    }
}

async fn run(installed: &Installed, plan: Plan) {
    let is_expected = |way: &Way| is_listed("BENCH_WAYS", way.name());
    for way in [Way::Pulled, Way::Pushed, Way::Batched].into_iter().filter(is_expected) {
        let mut turns = Vec::new();
        for (name, started) in start(installed, way).await {
            match started {
                Ok(started) => turns.push(Runner::start(name, way, started, plan).await),
                Err(reason) => println!("SKIPPED: {name}, {}: {reason}", way.name()),
            }
        }
        for _ in 0..plan.rounds {
            for runner in &mut turns {
                runner.turn(plan.turn).await;
            }
        }
        // Their servers no longer use the machine.
        load::report(&turns.into_iter().map(Runner::finish).collect::<Vec<_>>());
    }
}

/// Every server that supports a way, and the outcome of its start.
async fn start(installed: &Installed, way: Way) -> Vec<(&'static str, Result<Started, String>)> {
    let mut all = vec![("trestle", trestle::start(installed, way).await)];
    if way != Way::Pushed && is_listed("BENCH_PEERS", "azurite") {
        all.push(("azurite", azurite::start(installed, way).await));
    }
    if is_listed("BENCH_PEERS", "rabbitmq") {
        all.push(("rabbitmq", rabbitmq::start(installed, way).await));
    }
    if is_listed("BENCH_PEERS", "nats") {
        all.push(("nats jetstream", nats::start(installed, way).await));
    }
    all
}

/// Whether a list of the environment has a name, as it does where it is not set.
fn is_listed(list: &str, name: &str) -> bool {
    std::env::var(list).map_or(true, |names| names.split(',').any(|listed| listed == name))
}

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}
