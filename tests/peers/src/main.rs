//! Send, receive and delete: Trestle beside Azurite, RabbitMQ and NATS JetStream.
//!
//! `trestle-peers TRESTLE PEERS` takes the server's binary and the directory that `install.sh` filled. Every server
//! that is there is started on free ports of the loopback with a queue and a backlog, and then they take turns under
//! the same load, so that a slow moment of the machine hits all. `BENCH_SECONDS` is the length of a turn (default 3),
//! `BENCH_ROUNDS` their number (default 3), `BENCH_BACKLOG` how many messages wait in every queue (default 10,000).
//!
//! Where the systems differ, the peer gets what is kinder to it; docs/benchmarks.md lists it.

#![allow(
    clippy::disallowed_methods,
    reason = "a benchmark reads its plan from the environment, and has no runtime of ours"
)]

mod azurite;
mod load;
mod nats;
mod rabbitmq;
mod servers;
mod trestle;

use std::{path::PathBuf, time::Duration};

use crate::{
    load::{Plan, Runner, Way},
    servers::Installed,
};

/// How many clients go round at a time.
const CLIENTS: usize = 64;
/// How many connections they share.
const CONNECTIONS: usize = 4;
/// Messages that a consumer of RabbitMQ or NATS is given ahead of asking.
const AHEAD: u16 = 8;

fn main() {
    let mut arguments = std::env::args_os().skip(1).map(PathBuf::from);
    let (Some(trestle), Some(peers)) = (arguments.next(), arguments.next()) else {
        eprintln!("usage: trestle-peers TRESTLE PEERS");
        std::process::exit(2);
    };
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    runtime.expect("a runtime").block_on(run(&Installed { trestle, peers }));
}

async fn run(installed: &Installed) {
    let plan = Plan {
        turn: Duration::from_secs(number("BENCH_SECONDS", 3)),
        rounds: number("BENCH_ROUNDS", 3),
        backlog: number("BENCH_BACKLOG", 10_000),
    };
    let mut runners = Vec::new();
    for (name, way, started) in [
        ("trestle", Way::Asked, trestle::start(installed, Way::Asked).await),
        ("trestle", Way::Pushed, trestle::start(installed, Way::Pushed).await),
        ("azurite", Way::Asked, azurite::start(installed).await),
        ("rabbitmq", Way::Asked, rabbitmq::start(installed, Way::Asked).await),
        ("rabbitmq", Way::Pushed, rabbitmq::start(installed, Way::Pushed).await),
        ("nats jetstream", Way::Pushed, nats::start(installed).await),
    ] {
        match started {
            Ok(started) => runners.push(Runner::start(name, way, started, plan).await),
            Err(reason) => println!("SKIPPED: {name}: {reason}"),
        }
    }
    for _ in 0..plan.rounds {
        for runner in &mut runners {
            runner.turn(plan.turn).await;
        }
    }
    load::report(&runners);
}

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}
