//! The memory of a server while a blob of 5 GiB goes up and comes down.

use std::time::{Duration, Instant};

use bytes::Bytes;
use trestle_proto::blob::v1::{
    Container, CreateContainerRequest, ReadBlobRequest, UploadFinish, WriteBlobRequest,
    WriteBlobSpec, blob_service_client::BlobServiceClient,
};

use crate::{Plan, paths::Bench, report};

const MIB: usize = 1024 * 1024;
const SIZE_MIB: usize = 5 * 1024;
const SAMPLE_EVERY: Duration = Duration::from_millis(50);
/// Memory beside what the idle server has, in MiB. Its cache of 128 MiB is not used by blobs.
const BUDGET_MIB: f64 = 100.0;

/// Uploads the blob and reads it back, with constant memory.
pub(crate) async fn memory(_: Plan) {
    let bench = Bench::start(|_| true).await.unwrap();
    let client = BlobServiceClient::new(bench.connections.pick(0));
    let container = Some(Container { name: "bench".to_owned(), ..Default::default() });
    client.clone().create_container(CreateContainerRequest { container }).await.unwrap();
    let idle = bench.server.resident_mib();

    for (name, is_upload) in [("upload", true), ("download", false)] {
        let (client, began) = (client.clone(), Instant::now());
        let transfer = tokio::spawn(async move {
            match is_upload {
                true => upload(client).await,
                false => download(client).await,
            }
        });
        let mut peak = 0.0_f64;
        while !transfer.is_finished() {
            peak = peak.max(bench.server.resident_mib());
            tokio::time::sleep(SAMPLE_EVERY).await;
        }
        transfer.await.unwrap();
        let rate = SIZE_MIB as f64 / began.elapsed().as_secs_f64();
        println!("{name} of a blob of 5 GiB: {rate:.0} MiB/s");
        let path = format!("memory of an {name} of 5 GiB");
        report::figure(&path, peak - idle, BUDGET_MIB, true, "MiB");
    }
}

async fn upload(mut client: BlobServiceClient<tonic::transport::Channel>) {
    let (container, blob) = ("bench".to_owned(), "large".to_owned());
    let mut spec = Some(WriteBlobSpec { container, blob, ..Default::default() });
    let data = Bytes::from(vec![7; MIB]);
    let messages = (0..SIZE_MIB).map(move |index| WriteBlobRequest {
        spec: spec.take(),
        data: data.clone(),
        finish: (index + 1 == SIZE_MIB).then(UploadFinish::default),
    });
    client.write_blob(tokio_stream::iter(messages)).await.unwrap();
}

async fn download(client: BlobServiceClient<tonic::transport::Channel>) {
    let mut client = client.max_decoding_message_size(4 * MIB);
    let (container, blob) = ("bench".to_owned(), "large".to_owned());
    let request = ReadBlobRequest { container, blob, ..Default::default() };
    let mut parts = client.read_blob(request).await.unwrap().into_inner();
    let mut bytes = 0;
    while let Some(part) = parts.message().await.unwrap() {
        bytes += part.data.len();
    }
    assert_eq!(bytes, SIZE_MIB * MIB);
}
