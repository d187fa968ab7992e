//! Ten thousand uploads that begin and never end: in bounded memory and disk, with nothing published, and while another
//! client is served.

use std::{
    fs,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use bytes::Bytes;
use futures::{StreamExt as _, stream};
use tokio::task::JoinSet;
use tonic::{
    Code,
    transport::{Channel, Endpoint},
};
use trestle_proto::blob::v1::{
    WriteBlobRequest, WriteBlobSpec, blob_service_client::BlobServiceClient,
};
use trestle_tests::{Container, HANG, Server};

use crate::{blobs::container, overload::resident_mib, start};

/// Another peer than the client that is served, which is at 127.0.0.1.
const FLOOD: &str = "127.0.0.2";
const CONNECTIONS: usize = 100;
const UPLOADS: usize = 100;
/// More than becomes a row, and more than a file.
const HALVES: [usize; 2] = [40_000, 5_000_000];
const MESSAGE_BYTES: usize = 1024 * 1024;
/// Most resident memory: the cache of 128 MiB and 256 MiB for everything else, and a third of what the flow-control
/// windows of so many connections allow. Without bounds it would be tens of GiB.
const RESIDENT_MIB_MAX: f64 = 512.0;
/// Most bytes of files: one extent of each upload that has memory, and those that are being written.
const DISK_MIB_MAX: u64 = 512;
/// The blobs that the other client writes meanwhile.
const SERVED: usize = 4;
/// How soon a half upload that was rejected begins again.
const RETRIED_AFTER: Duration = Duration::from_secs(2);

fn flood(server: &Server) -> Channel {
    let endpoint = Endpoint::from_shared(server.endpoint()).unwrap();
    endpoint.local_address(Some(FLOOD.parse().unwrap())).connect_lazy()
}

/// Begins uploads that send some data and stay open, one after the other.
async fn halves(channel: Channel, number: usize, is_open: Arc<AtomicUsize>) {
    loop {
        is_open.fetch_add(1, Ordering::Relaxed);
        // Rejected, too late, or its connection has been reset too often.
        half(channel.clone(), number).await;
        is_open.fetch_sub(1, Ordering::Relaxed);
        tokio::time::sleep(RETRIED_AFTER).await;
    }
}

/// An upload that sends some data and stays open.
async fn half(channel: Channel, number: usize) {
    let spec = WriteBlobSpec {
        container: "crash".to_owned(),
        blob: format!("half/{number}"),
        ..WriteBlobSpec::default()
    };
    let mut data = Bytes::from_static(&[7; HALVES[1]]).slice(..HALVES[number % HALVES.len()]);
    let first = WriteBlobRequest { spec: Some(spec), ..WriteBlobRequest::default() };
    let mut messages = vec![first];
    while !data.is_empty() {
        let part = data.split_to(data.len().min(MESSAGE_BYTES));
        messages.push(WriteBlobRequest { data: part, ..WriteBlobRequest::default() });
    }
    let messages = stream::iter(messages).chain(stream::pending());
    let outcome = BlobServiceClient::new(channel).write_blob(messages).await;
    outcome.expect_err("half an upload is not a blob");
}

/// Bytes of the files below a folder.
fn file_bytes(folder: &Path) -> u64 {
    let Ok(entries) = fs::read_dir(folder) else { return 0 };
    let size = |entry: fs::DirEntry| match entry.metadata() {
        Ok(found) if found.is_dir() => file_bytes(&entry.path()),
        Ok(found) => found.len(),
        Err(_) => 0,
    };
    entries.map_while(Result::ok).map(size).sum()
}

/// Writes a blob, with retries while the server is busy.
async fn write(container: &Container, blob: &str, length: usize) {
    let began = Instant::now();
    loop {
        match container.write(blob, vec![1; length]).await {
            Ok(_) => return,
            Err(error) if error.code == Code::ResourceExhausted => {}
            Err(error) => panic!("{error:?}"),
        }
        assert!(began.elapsed() < HANG, "{length} bytes were not written");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ten_thousand_half_uploads_publish_nothing_in_bounded_memory() {
    let data = tempfile::tempdir().unwrap();
    let server = start(&data, &[]);
    let container = container(&server);
    container.create().await.unwrap();
    write(&container, "before", 100_000).await;
    let objects = data.path().join("blob");

    let (mut flooding, is_open) = (JoinSet::new(), Arc::new(AtomicUsize::new(0)));
    for connection in 0..CONNECTIONS {
        let channel = flood(&server);
        for upload in 0..UPLOADS {
            let number = connection * UPLOADS + upload;
            flooding.spawn(halves(channel.clone(), number, Arc::clone(&is_open)));
        }
    }
    let (mut resident, mut disk) = (0.0_f64, 0);
    for index in 0..SERVED {
        let began = Instant::now();
        for length in [100, 100_000, 3_000_000] {
            write(&container, &format!("served/{index}/{length}"), length).await;
        }
        let open = is_open.load(Ordering::Relaxed);
        println!("served in {:?}, {open} half uploads are open", began.elapsed());
        (resident, disk) = (resident.max(resident_mib(&server)), disk.max(file_bytes(&objects)));
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
    println!("memory: {resident:.0} MiB; files: {} MiB", disk >> 20);
    assert!(resident < RESIDENT_MIB_MAX, "{resident}");
    assert!(disk < DISK_MIB_MAX << 20, "{disk}");
    assert!(is_open.load(Ordering::Relaxed) > 0, "all of them ended, so the test shows nothing");
    assert!(flooding.try_join_next().is_none(), "a half upload failed otherwise");

    flooding.shutdown().await;
    let listed = container.list("", "").await.unwrap();
    assert!(listed.iter().all(|name| !name.starts_with("half")), "{listed:?}");
    assert_eq!(listed.len(), 1 + 3 * SERVED);
    let stored: u64 = (100_000 + 3_000_000) * SERVED as u64 + 100_000;
    let began = Instant::now();
    while file_bytes(&objects) > 2 * stored {
        assert!(began.elapsed() < HANG, "files of half uploads are left");
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    assert_eq!(server.terminate(), Some(0));
}
