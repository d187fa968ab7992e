//! Start, stop, memory, and single queries over many entities.

use std::time::Instant;

use trestle_proto::table::v1 as proto;

use crate::{Plan, paths::Bench, report, server::Process};

/// Entities of the filtered scan, of which one in a hundred matches.
const SCANNED: u64 = 50_000;
/// Entities of the memory test: about 1 GiB.
const MILLION: u64 = 1_000_000;

/// From the start of the process to the ready line on an empty store, memory at rest, and from SIGTERM to the end.
pub(crate) async fn start(plan: Plan) {
    let mut fastest = f64::INFINITY;
    let mut resident: f64 = 0.0;
    let (mut slowest_stop, mut slowest_connected): (f64, f64) = (0.0, 0.0);
    for _ in 0..plan.rounds.max(3) {
        let data = tempfile::tempdir().unwrap();
        let args = ["--data-dir", data.path().to_str().unwrap()];
        let server = Process::start(&mut Process::trestle(&args));
        tokio::time::sleep(std::time::Duration::from_millis(500)).await;
        fastest = fastest.min(server.start_ms);
        resident = resident.max(server.resident_mib());
        slowest_stop = slowest_stop.max(server.stop_ms());
        slowest_connected = slowest_connected.max(stop_with_a_client().await);
    }
    report::figure("start to ready, empty store", fastest, 100.0, true, "ms");
    report::figure("memory at rest", resident, 40.0, true, "MiB");
    report::figure("stop of an idle server", slowest_stop, 300.0, true, "ms");
    report::figure("stop with an idle client", slowest_connected, 300.0, true, "ms");
}

/// The stop of a server with a client over gRPC that keeps its connection.
async fn stop_with_a_client() -> f64 {
    let bench = Bench::start(|_| true).await.unwrap();
    bench.fill(1).await;
    // Calls within a second before the stop count as traffic, which gets a notice.
    tokio::time::sleep(std::time::Duration::from_millis(1_200)).await;
    let Bench { server, connections, _data } = bench;
    let took = server.stop_ms();
    drop(connections);
    took
}

/// A table scan whose filter matches one entity in a hundred.
pub(crate) async fn filter_scan(plan: Plan) {
    let bench = Bench::start(|_| true).await.unwrap();
    bench.fill(SCANNED).await;
    // Row keys are twelve digits; these are the ones that end in 42.
    let mut fastest = f64::INFINITY;
    for _ in 0..plan.rounds * 5 {
        let filter = "payload lt '0' or RowKey ge '000000049500'".to_owned();
        let started = Instant::now();
        let (entities, scanned) = all_pages(&bench, filter).await;
        fastest = fastest.min(started.elapsed().as_secs_f64() * 1000.0);
        assert_eq!((entities, scanned), (500, SCANNED), "the filter matches one in a hundred");
    }
    report::figure("scan of 50,000 entities, 1 % match", fastest, 60.0, true, "ms");
}

async fn all_pages(bench: &Bench, filter: String) -> (u64, u64) {
    let (mut entities, mut scanned, mut page_token) = (0, 0, String::new());
    loop {
        let request = proto::QueryEntitiesRequest {
            table: "bench".to_owned(),
            filter: filter.clone(),
            page_token,
            ..Default::default()
        };
        let page = bench.client().query_entities(request).await.unwrap().into_inner();
        let cost = page.cost.unwrap_or_default();
        entities += cost.returned;
        scanned += cost.scanned;
        page_token = page.next_page_token;
        if page_token.is_empty() {
            return (entities, scanned);
        }
    }
}

/// Memory while a table of about 1 GiB is filled and exported.
pub(crate) async fn million(_: Plan) {
    let bench = Bench::start(|_| true).await.unwrap();
    let started = Instant::now();
    bench.fill(MILLION).await;
    let rate = MILLION as f64 / started.elapsed().as_secs_f64();
    report::figure("entities imported, 1 KiB", rate, 20_000.0, false, "/s");
    report::figure("  memory after the import", bench.server.resident_mib(), 428.0, true, "MiB");
    let request = proto::StreamEntitiesRequest { table: "bench".to_owned(), ..Default::default() };
    let mut stream = bench.client().stream_entities(request).await.unwrap().into_inner();
    let (mut entities, mut peak) = (0, 0.0_f64);
    let started = Instant::now();
    while let Some(message) = stream.message().await.unwrap() {
        let before = entities / 100_000;
        entities += message.entities.len() as u64;
        if entities / 100_000 > before {
            peak = peak.max(bench.server.resident_mib());
        }
    }
    assert_eq!(entities, MILLION);
    let rate = MILLION as f64 / started.elapsed().as_secs_f64();
    report::figure("entities exported from disk, 1 KiB", rate, 100_000.0, false, "/s");
    // 128 MiB of configured cache and 300 MiB.
    report::figure("  most memory during the export", peak, 428.0, true, "MiB");
}
