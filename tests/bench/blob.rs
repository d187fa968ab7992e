//! Small blobs and appends. A stream of one message is a single call on the wire, so the light client of the load makes
//! it.

use bytes::Bytes;
use prost::Message as _;
use trestle_proto::blob::v1::{
    AppendBlockRequest, AppendBlockSpec, Container, CreateAppendBlobRequest,
    CreateContainerRequest, ReadBlobRequest, UploadFinish, WriteBlobRequest, WriteBlobSpec,
    blob_service_client::BlobServiceClient,
};

use crate::{
    Plan,
    paths::{Bench, CLIENTS, payload},
    raw::RawEngine,
    report::{self, Side},
};

const CONTAINER: &str = "bench";
const APPEND: &str = "/trestle.blob.v1.BlobService/AppendBlock";
const WRITE: &str = "/trestle.blob.v1.BlobService/WriteBlob";
const READ: &str = "/trestle.blob.v1.BlobService/ReadBlob";
/// Blobs that are appended to, and read.
const BLOBS: u64 = 64;
/// Clients of writes and reads.
const FEW_CLIENTS: usize = 16;
const SMALL_BYTES: usize = 4096;
/// Processor time of the server for a durable write of 4 KiB, and for a read, in microseconds.
const WRITE_BUDGET_US: f64 = 70.0;
const READ_BUDGET_US: f64 = 35.0;

async fn started() -> Bench {
    let bench = Bench::start(|_| true).await.unwrap();
    let mut client = BlobServiceClient::new(bench.connections.pick(0));
    let container = Some(Container { name: CONTAINER.to_owned(), ..Default::default() });
    client.create_container(CreateContainerRequest { container }).await.unwrap();
    bench
}

fn appended(number: u64) -> Bytes {
    let (container, blob) = (CONTAINER.to_owned(), (number % BLOBS).to_string());
    AppendBlockRequest {
        spec: Some(AppendBlockSpec { container, blob, ..Default::default() }),
        data: Bytes::from_static(payload().as_bytes()),
        finish: Some(UploadFinish::default()),
    }
    .encode_to_vec()
    .into()
}

/// Durable appends of 1 KiB beside group commits of the engine.
pub(crate) async fn append(plan: Plan) {
    let bench = started().await;
    let mut client = BlobServiceClient::new(bench.connections.pick(0));
    for number in 0..BLOBS {
        let (container, blob) = (CONTAINER.to_owned(), number.to_string());
        let request = CreateAppendBlobRequest { container, blob, ..Default::default() };
        client.create_append_blob(request).await.unwrap();
    }
    let directory = tempfile::tempdir().unwrap();
    let mut engine = RawEngine::start(directory.path(), |_| ());
    let (mut measured, mut ceiling) = (Side::default(), Side::default());
    for _ in 0..plan.rounds {
        let (done, cpu) = bench.turn(CLIENTS, plan.turn, APPEND, appended).await;
        measured.add(done, cpu);
        let (done, cpu) = engine.commit(CLIENTS, 1, plan.turn);
        ceiling.add(done, cpu);
    }
    report::compared("durable appends of 1 KiB, 64 writers", &measured, &ceiling, 0.5);
}

fn written(number: u64) -> Bytes {
    let (container, blob) = (CONTAINER.to_owned(), format!("new-{number}"));
    WriteBlobRequest {
        spec: Some(WriteBlobSpec { container, blob, ..Default::default() }),
        data: payload().as_bytes().iter().copied().cycle().take(SMALL_BYTES).collect(),
        finish: Some(UploadFinish::default()),
    }
    .encode_to_vec()
    .into()
}

/// Durable writes and reads of 4 KiB.
pub(crate) async fn small(plan: Plan) {
    let bench = started().await;
    for number in 0..BLOBS {
        bench.connections.call(0, WRITE, written(number)).await.unwrap();
    }
    let (mut writes, mut reads) = (Side::default(), Side::default());
    for _ in 0..plan.rounds {
        let (done, cpu) =
            bench.turn(FEW_CLIENTS, plan.turn, WRITE, |number| written(number + 1_000_000)).await;
        writes.add(done, cpu);
        let (done, cpu) = bench.turn(FEW_CLIENTS, plan.turn, READ, read).await;
        reads.add(done, cpu);
    }
    for (name, side, budget) in [
        ("write of a blob of 4 KiB", &writes, WRITE_BUDGET_US),
        ("read of a blob of 4 KiB", &reads, READ_BUDGET_US),
    ] {
        println!("{name}: {:.0} a second", side.rate());
        report::figure(name, side.cpu_us_per_operation(), budget, true, "us of the server");
    }
}

fn read(number: u64) -> Bytes {
    let (container, blob) = (CONTAINER.to_owned(), format!("new-{}", number % BLOBS));
    ReadBlobRequest { container, blob, ..Default::default() }.encode_to_vec().into()
}
