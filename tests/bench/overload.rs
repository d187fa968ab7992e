//! Five times as many callers as the server admits: its throughput beside its peak, and the memory that it
//! adds.

use std::time::Duration;

use bytes::Bytes;
use tonic::Code;
use tonic_types::StatusExt as _;

use crate::{
    Plan,
    drive::{Connections, Done, drive},
    paths::{Bench, GET, INSERT, STORED, get_message, insert_message},
    report::{self, Side},
};

/// Calls that the server admits at a time, and callers at its peak.
const CALLS_MAX: usize = 64;
/// How many more callers there are under overload.
const TIMES: usize = 5;
/// Most memory that overload may add.
const GROWTH_MIB_MAX: f64 = 64.0;

/// Callers that retry after the advised delay; how many calls were answered.
async fn load(
    connections: &Connections,
    callers: usize,
    time: Duration,
    path: &'static str,
    message: fn(u64) -> Bytes,
) -> Done {
    let connections = connections.clone();
    drive(callers, time, move |number| {
        let connections = connections.clone();
        async move {
            match connections.unary(number, path, message(number)).await {
                Ok(_) => 1,
                Err(status) => {
                    assert_eq!(status.code(), Code::ResourceExhausted, "{status:?}");
                    let details = status.get_error_details();
                    let advice = details.retry_info().and_then(|info| info.retry_delay);
                    tokio::time::sleep(advice.expect("advice to come back")).await;
                    0
                }
            }
        }
    })
    .await
}

/// Goodput under overload beside the peak, on reads and on durable writes, and the growth in memory.
pub(crate) async fn overload(plan: Plan) {
    let limited = Bench::start(|command| {
        command.env("TRESTLE__LIMITS__CALLS_MAX", CALLS_MAX.to_string());
        true
    });
    let bench = limited.await.unwrap();
    bench.fill(STORED).await;
    let to = &bench.connections;
    let mut grown: f64 = 0.0;
    for (name, path, message) in [
        ("point gets under 5 x overload / peak", GET, get_message as fn(u64) -> Bytes),
        ("durable inserts under 5 x overload / peak", INSERT, insert_message),
    ] {
        let (mut measured, mut peak) = (Side::default(), Side::default());
        for _ in 0..plan.rounds {
            peak.add(load(to, CALLS_MAX, plan.turn, path, message).await, 0.0);
            let before = bench.server.resident_mib();
            let cpu = bench.server.cpu_us();
            let done = load(to, TIMES * CALLS_MAX, plan.turn, path, message).await;
            measured.add(done, bench.server.cpu_us() - cpu);
            if path == GET {
                // What is inserted remains in memory for a while; what is read does not.
                grown = grown.max(bench.server.resident_mib() - before);
            }
        }
        report::compared(name, &measured, &peak, 0.7);
    }
    report::figure("  memory that overload adds", grown, GROWTH_MIB_MAX, true, "MiB");
}
