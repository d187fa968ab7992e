//! The cost of telemetry for a point get: by default, with traces, and with the access log, each
//! beside a server without metrics and exports.

use std::process::Command;

use crate::{
    Plan,
    paths::{Bench, CLIENTS, GET, STORED, get_message},
    report::{self, Side},
    server::Process,
};

/// Share of the point gets without telemetry that must remain with the default settings.
const BUDGET_DEFAULT: f64 = 0.95;
/// With one trace of a hundred.
const BUDGET_SOME: f64 = 0.9;
/// With every trace; a lower bound only, since sampling every trace is optional.
const BUDGET_ALL: f64 = 0.3;
/// With a line for each call.
const BUDGET_ACCESS: f64 = 0.6;

/// Measures every variant in turns with the server without telemetry.
pub(crate) async fn overhead(plan: Plan) {
    let sink = Process::start(&mut Process::own("sink"));
    let endpoint = sink.endpoint();
    let off = |command: &mut Command| {
        command.env("TRESTLE__TELEMETRY__METRICS", "false");
    };
    let sent = |ratio: &'static str| {
        let endpoint = endpoint.clone();
        move |command: &mut Command| {
            command.env("TRESTLE__TELEMETRY__OTLP_ENDPOINT", &endpoint);
            command.env("TRESTLE__TELEMETRY__TRACE_SAMPLE_RATIO", ratio);
        }
    };
    let logged = |command: &mut Command| {
        command.env("TRESTLE__TELEMETRY__ACCESS_LOG", "/dev/null");
        command.env("TRESTLE__TELEMETRY__LOG_FORMAT", "json");
    };
    let off = start(off).await;
    let variants = [
        ("default telemetry / none", start(|_| {}).await, BUDGET_DEFAULT),
        ("1 trace of 100 sent / none", start(sent("0.01")).await, BUDGET_SOME),
        ("every trace sent / none", start(sent("1")).await, BUDGET_ALL),
        ("with the access log / none", start(logged).await, BUDGET_ACCESS),
    ];
    for (name, bench, budget) in &variants {
        let (mut measured, mut ceiling) = (Side::default(), Side::default());
        for _ in 0..plan.rounds {
            let (done, cpu) = bench.turn(CLIENTS, plan.turn, GET, get_message).await;
            measured.add(done, cpu);
            let (done, cpu) = off.turn(CLIENTS, plan.turn, GET, get_message).await;
            ceiling.add(done, cpu);
        }
        report::compared(&format!("point get, {name}"), &measured, &ceiling, *budget);
        let more = measured.cpu_us_per_operation() - ceiling.cpu_us_per_operation();
        println!("  more server CPU for each call {more:>25.2} us");
    }
}

async fn start(prepare: impl FnOnce(&mut Command)) -> Bench {
    let bench = Bench::start(|command| {
        prepare(command);
        true
    });
    let bench = bench.await.expect("nothing keeps the server from starting");
    bench.fill(STORED).await;
    bench
}
