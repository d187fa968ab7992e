//! Blobs that fill a small disk: their files stay above the reserve of the store, deletes are accepted, and the space
//! comes back without a restart.

use std::time::{Duration, Instant};

use bytes::Bytes;
use futures::future::join_all;
use tonic::Code;
use trestle_proto::blob::v1::{UploadFinish, WriteBlobRequest};
use trestle_tests::{CallError, Container, Server};

use crate::{
    blobs::container,
    small_disk::{MIB, RESERVE, messages, mounted::SmallDisk},
};

const WRITERS: usize = 4;
/// Bytes of a message, and messages of a blob: 8 MiB of two extents.
const MESSAGE_BYTES: usize = 1024 * 1024;
const MESSAGES: usize = 8;
/// Writers are rejected for so long before they end.
const REJECTED_FOR: Duration = Duration::from_secs(3);
/// Deleted contents are kept for a minute for reads in progress, and then deleted within a few ticks.
const FREED_WITHIN: Duration = Duration::from_secs(240);
/// What journals and tables of the store may have grown by when all contents are deleted.
const GROWTH_MAX: u64 = 32 * MIB;

async fn write(container: &Container, blob: &str) -> Result<(), CallError> {
    let data = Bytes::from(vec![7; MESSAGE_BYTES]);
    let messages = (0..MESSAGES).map(|index| WriteBlobRequest {
        spec: (index == 0).then(|| container.spec(blob)),
        data: data.clone(),
        finish: (index + 1 == MESSAGES).then(UploadFinish::default),
    });
    container.send(messages.collect()).await.map(drop)
}

/// Writes blobs until they were rejected for some time. The names of those that are stored.
async fn fill(container: &Container, writer: usize) -> Vec<String> {
    let (mut stored, mut rejected) = (Vec::new(), None::<Instant>);
    while rejected.is_none_or(|since| since.elapsed() < REJECTED_FOR) {
        let blob = format!("{writer}/{}", stored.len());
        match write(container, &blob).await {
            Ok(()) => {
                rejected = None;
                stored.push(blob);
            }
            Err(error) if error.kind() == (Code::ResourceExhausted, "INSUFFICIENT_STORAGE") => {
                rejected.get_or_insert_with(Instant::now);
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            Err(error) => panic!("{blob}: {error:?}"),
        }
    }
    stored
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn blobs_leave_the_reserve_free_and_their_space_comes_back() {
    let Some(disk) = SmallDisk::of(500) else { return };
    let data = disk.path().join("data");
    let log_file = tempfile::NamedTempFile::new().unwrap();
    let args = ["--data-dir", data.to_str().unwrap()];
    let server = Server::start_logging(log_file.path(), &args, &[RESERVE]);
    let container = container(&server);
    container.create().await.unwrap();

    for round in 0..2 {
        let free_before = disk.free_bytes();
        let stored = join_all((0..WRITERS).map(|writer| fill(&container, writer))).await.concat();
        // What the store writes itself may take some of it for a while: journals, and what is flushed.
        let free_bytes = disk.free_bytes();
        assert!(free_bytes >= 48 * MIB, "round {round}: {free_bytes} bytes are free");
        assert!(stored.len() >= 8, "round {round}: {} blobs fit", stored.len());

        for blob in &stored {
            container.delete(blob).await.unwrap();
        }
        let start = Instant::now();
        // All of it: what is freed during the next round would end its lack of space early.
        while disk.free_bytes() + GROWTH_MAX < free_before || messages(log_file.path()).1 <= round {
            assert!(
                start.elapsed() < FREED_WITHIN,
                "{}",
                std::fs::read_to_string(&log_file).unwrap()
            );
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
        let log = std::fs::read_to_string(&log_file).unwrap();
        assert_eq!(messages(log_file.path()), (round + 1, round + 1), "{log}");
    }
    assert_eq!(server.terminate(), Some(0));
}
