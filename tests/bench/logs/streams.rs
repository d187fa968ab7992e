//! The memory of a server while many streams are appended to and sealed.

use std::time::{Duration, Instant};

use prost::Message as _;
use tonic::transport::Channel;
use trestle_proto::log::v1::{
    AppendRecordsRequest, AppendStreamRequest, append_stream_response::Outcome,
    log_service_client::LogServiceClient,
};

use super::{
    LogBench, MIB,
    appends::since_an_hour,
    records::{APPEND, LogLoad},
};
use crate::{Plan, report};

/// Streams that are appended to at a time.
const STREAMS: u64 = 200;
/// Records of a batch, and the time between two of a stream.
const BATCH: u64 = 100;
const BATCH_EVERY: Duration = Duration::from_millis(500);
/// Distinct records of each stream.
const DISTINCT_EACH: u64 = 20 * BATCH;
/// When records are sealed: several times in the run.
const SEALED_AFTER: Duration = Duration::from_secs(5);
/// How much longer than a turn the load is.
const TURNS: u32 = 10;
const SAMPLE_EVERY: Duration = Duration::from_millis(50);
/// 100 MiB and twice what one seal holds.
const BUDGET_MIB: f64 = 228.0;

/// Resident memory with a call of appends for each stream.
pub(crate) async fn memory(plan: Plan) {
    let bench = LogBench::start().await;
    let idle = bench.server.resident_mib();
    let (began, time) = (Instant::now(), plan.turn * TURNS);
    let mut calls = Vec::new();
    for number in 0..STREAMS {
        let name = format!("bench-{number}");
        bench.create(&name, SEALED_AFTER, 64 * MIB).await;
        let client = LogServiceClient::new(bench.connections.pick(number));
        calls.push(tokio::spawn(append(client, name, time)));
    }
    let (mut peak, before) = (0.0_f64, bench.server.cpu_us());
    while began.elapsed() < time {
        peak = peak.max(bench.server.resident_mib());
        tokio::time::sleep(SAMPLE_EVERY).await;
    }
    let mut records = 0;
    for call in calls {
        records += call.await.unwrap();
    }
    let cpu = (bench.server.cpu_us() - before) / records as f64;
    let rate = records as f64 / began.elapsed().as_secs_f64();
    let name = format!("most memory with {STREAMS} log streams open");
    report::figure(&name, peak, BUDGET_MIB, true, "MiB");
    println!("  idle {idle:.0} MiB; {rate:.0} records/s, server CPU a record {cpu:.2} us");
}

/// Appends to a stream at a constant rate; how many records were acknowledged.
async fn append(mut client: LogServiceClient<Channel>, name: String, time: Duration) -> u64 {
    let load = LogLoad::of_distinct(DISTINCT_EACH, APPEND, &name, BATCH, since_an_hour(4_000_000));
    let (sender, receiver) = tokio::sync::mpsc::channel(1);
    let requests = tokio_stream::wrappers::ReceiverStream::new(receiver);
    let sending = tokio::spawn(async move {
        let began = Instant::now();
        let mut number = 0;
        while began.elapsed() < time {
            let append = AppendRecordsRequest::decode(load.message(number)).unwrap();
            let request = AppendStreamRequest { append: Some(append), append_id: number };
            sender.send(request).await.unwrap();
            number += 1;
            tokio::time::sleep(BATCH_EVERY).await;
        }
    });
    let mut responses = client.append_stream(requests).await.unwrap().into_inner();
    let mut records = 0;
    while let Some(response) = responses.message().await.unwrap() {
        let Some(Outcome::Appended(appended)) = response.outcome else {
            panic!("an append failed: {response:?}");
        };
        records += u64::from(appended.count);
    }
    sending.await.unwrap();
    records
}
