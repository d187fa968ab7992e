//! The budgets: each path of the services beside its ceiling, measured in turns in the same run.
//!
//! `cargo bench -p trestle-tests --bench budgets [-- NAME…]` runs all of them or those whose name contains NAME.
//! `BENCH_SECONDS` is the length of one turn (default 2), `BENCH_ROUNDS` their number (default 3). Machines are noisy:
//! quote the ratios. docs/benchmarks.md explains the paths and records figures.

#![allow(
    clippy::print_stdout,
    clippy::unwrap_used,
    clippy::panic,
    clippy::disallowed_methods,
    clippy::cast_precision_loss,
    reason = "a benchmark prints its numbers and stops when its plumbing breaks"
)]

mod blob;
mod credentials;
mod depth;
mod drive;
mod echo;
mod http2;
mod large_blob;
mod logs;
mod memory;
mod overload;
mod paths;
mod peers;
mod queue;
mod raw;
mod report;
mod server;
mod sink;
mod slow_disk;
mod telemetry;
mod write_load;

use std::time::Duration;

/// How long and how often each side of a comparison runs.
#[derive(Clone, Copy)]
struct Plan {
    turn: Duration,
    rounds: u32,
}

impl Plan {
    fn from_environment() -> Self {
        let number = |name: &str, default: u64| {
            std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
        };
        Self {
            turn: Duration::from_secs(number("BENCH_SECONDS", 2)),
            rounds: u32::try_from(number("BENCH_ROUNDS", 3)).unwrap_or(3),
        }
    }
}

fn main() {
    // A ceiling runs in a process of its own, as the server does; that process is this program again.
    match std::env::var("TRESTLE_BENCH_ROLE").as_deref() {
        Ok("echo") => return echo::serve(),
        Ok("engine") => return raw::serve(),
        Ok("sink") => return sink::serve(),
        _ => {}
    }
    let expected: Vec<String> =
        std::env::args().skip(1).filter(|arg| !arg.starts_with('-')).collect();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let plan = Plan::from_environment();
        report::header();
        for (name, path) in paths::all() {
            if expected.is_empty() || expected.iter().any(|part| name.contains(part.as_str())) {
                path(plan).await;
            }
        }
    });
}
