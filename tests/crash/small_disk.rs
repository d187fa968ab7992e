//! A server on a disk of some hundred MiB that clients fill: one warning, one message of recovery, and no write lost.

use std::{
    fs,
    time::{Duration, Instant},
};

use futures::future::join_all;
use rand::{Rng as _, SeedableRng as _, rngs::SmallRng};
use tonic::Code;
use trestle_proto::table::v1::{DeleteTableRequest, Entity, value::Kind};
use trestle_tests::{Ended, HANG, Server, Table, command, entity, prop};

use crate::writer::create;

#[path = "../../shared/kv-fjall/tests/it/small_disk.rs"]
pub(crate) mod mounted;

use mounted::SmallDisk;

pub(crate) const MIB: u64 = 1024 * 1024;
pub(crate) const RESERVE: (&str, &str) = ("TRESTLE__STORAGE__MIN_FREE_BYTES", "67108864");
const WRITERS: u64 = 4;
/// Writers go on for so long while writes are rejected: flushes and compactions run meanwhile.
const REJECTED_FOR: Duration = Duration::from_secs(6);

/// A row whose 60 kB do not compress.
fn row(writer: u64, number: u64) -> Entity {
    let mut bytes = vec![0; 60_000];
    SmallRng::seed_from_u64(writer << 32 | number).fill_bytes(&mut bytes);
    entity(
        &format!("p{writer}"),
        &format!("{number:06}"),
        [prop("b", Kind::BinaryValue(bytes.into()))],
    )
}

/// Inserts rows until `end`, each 16th one in `kept`; a rejected one is tried again. The numbers of those in `kept`.
async fn fill(big: &Table, kept: &Table, writer: u64, ends: &impl Fn() -> bool) -> Vec<u64> {
    let (mut number, mut stored) = (0, Vec::new());
    while !ends() {
        let is_kept = number % 16 == 0;
        let table = if is_kept { kept } else { big };
        match table.insert(row(writer, number)).await {
            Ok(_) => {
                if is_kept {
                    stored.push(number);
                }
                number += 1;
            }
            Err(error) if error.kind() == (Code::ResourceExhausted, "INSUFFICIENT_STORAGE") => {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            Err(error) => panic!("row {number}: {error:?}"),
        }
    }
    stored
}

/// How often the log has the message of short space, and that of enough.
pub(crate) fn messages(log: &std::path::Path) -> (usize, usize) {
    let text = fs::read_to_string(log).unwrap();
    let count = |message| text.matches(message).count();
    (count("disk space is short"), count("disk space is enough again"))
}

async fn ready_page(server: &Server) -> String {
    server.page("/readyz").await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn filling_a_disk_warns_once_and_a_deleted_table_makes_room_for_writes() {
    let Some(disk) = SmallDisk::of(400) else { return };
    let log = tempfile::NamedTempFile::new().unwrap();
    let data = disk.path().join("data");
    let args = ["--data-dir", data.to_str().unwrap()];
    let server = Server::start_logging(log.path(), &args, &[RESERVE]);
    let channel = server.channel();
    let (big, kept) = (Table::over(&channel, "Big"), Table::over(&channel, "Kept"));
    create(&big).await.unwrap();
    create(&kept).await.unwrap();

    // What a compaction in progress frees may be enough once more: the disk is full where it stays short.
    let since = std::cell::Cell::new(None);
    let ends = || {
        let (short, enough) = messages(log.path());
        let start = (short > enough).then(|| since.get().unwrap_or_else(Instant::now));
        since.set(start);
        start.is_some_and(|start| start.elapsed() > REJECTED_FOR)
    };
    let stored = join_all((0..WRITERS).map(|writer| fill(&big, &kept, writer, &ends))).await;

    let (short, enough) = messages(log.path());
    assert_eq!(short, enough + 1, "{}", fs::read_to_string(log.path()).unwrap());
    assert!(disk.free_bytes() >= 48 * MIB, "{} bytes are free", disk.free_bytes());
    assert!(ready_page(&server).await.contains("read-only: disk or backup"));
    let status = Ended::of(command(&server, &["status", "-o", "plain"])).output;
    assert!(status.contains("writes\tread-only: disk or backup\n"), "{status}");
    kept.get("p0", "000000").await.unwrap();

    let deleted = DeleteTableRequest { table: "Big".to_owned() };
    big.client().delete_table(deleted).await.unwrap();
    let start = Instant::now();
    while let Err(error) = kept.insert(row(WRITERS, 0)).await {
        assert!(start.elapsed() < HANG, "{error:?}");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    for number in 1..200 {
        kept.insert(row(WRITERS, number)).await.unwrap();
    }

    let log = fs::read_to_string(log.path()).unwrap();
    assert_eq!(log.matches("disk space is short").count(), short, "{log}");
    assert_eq!(log.matches("disk space is enough again").count(), short, "{log}");
    assert!(!ready_page(&server).await.contains("read-only"));
    for (writer, numbers) in (0..).zip(stored) {
        for number in numbers {
            let found = kept.get(&format!("p{writer}"), &format!("{number:06}")).await.unwrap();
            assert_eq!(found.properties, row(writer, number).properties);
        }
    }
    assert_eq!(server.terminate(), Some(0));
}
