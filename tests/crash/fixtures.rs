//! A data directory that the server of an earlier build left behind, one for each version of the format: the services
//! read their records in it.
//!
//! `just fixture` writes `tests/crash/fixtures/<version>` anew; do that once for each version, and before the first
//! release where a record changes.

use std::{
    fs,
    path::{Path, PathBuf},
};

use bytes::Bytes;
use trestle_model::limits::STAGED_BLOCKS_KEPT;
use trestle_proto::{
    blob::v1 as blob,
    queue::v1::{self as queue, CreateQueueRequest},
    table::v1::{Entity, value::Kind},
};
use trestle_tests::{
    Container, Queue, Server, Table, data, delete_op, double, entity, insert_op, int, prop, string,
    text, text_of, without_expiry,
};

use crate::{contents::MAIN, start, writer::create};

#[path = "../../shared/kv-fjall/tests/it/fixture_files.rs"]
mod files;

/// The version of the format in the manifest.
const CURRENT: &str = "1";
const QUEUE: &str = "fixture";
const CONTAINER: &str = "fixture";

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("crash/fixtures")
}

/// An entity with a property of every type.
fn every_type() -> Entity {
    let time = prost_types::Timestamp { seconds: 1_700_000_000, nanos: 123_456_700 };
    let guid = "c9da6455-213d-42c9-9a79-3e9149a57833".to_owned();
    // In the order in which they are returned.
    let properties = [
        prop("bytes", Kind::BinaryValue(vec![0, 255].into())),
        double("double", f64::NEG_INFINITY),
        prop("guid", Kind::GuidValue(guid)),
        int("int", -5),
        prop("long", Kind::Int64Value(i64::MIN)),
        string("text", "é\u{1F600}"),
        prop("time", Kind::DatetimeValue(time)),
        prop("yes", Kind::BooleanValue(true)),
    ];
    entity("p'1", "every type", properties)
}

async fn write(server: &Server) {
    let channel = server.channel();
    let table = Table::over(&channel, MAIN);
    create(&table).await.unwrap();
    table.insert(every_type()).await.unwrap();
    let row = |row: &str| entity("p", row, [int("n", 1)]);
    table.batch(["a", "b", "c"].map(|name| insert_op(row(name))).to_vec()).await.unwrap();
    table.batch(vec![delete_op("p", "b", None)]).await.unwrap();
    create(&Table::over(&channel, "Empty")).await.unwrap();

    let queue = Queue::over(&channel, QUEUE);
    let metadata = [("key".to_owned(), "value".to_owned())].into();
    let created = queue::Queue { name: QUEUE.to_owned(), metadata, ..Default::default() };
    queue.client().create_queue(CreateQueueRequest { queue: Some(created) }).await.unwrap();
    let messages = [text("first"), text("deleted"), data(vec![7_u8; 40_000])];
    let sent = queue.send_all(messages.map(without_expiry).to_vec()).await.unwrap();
    let deleted = sent.into_iter().nth(1).unwrap().unwrap();
    queue.delete(trestle_tests::receipt_of_sent(&deleted)).await.unwrap();
    write_blobs(&Container::over(&channel, CONTAINER)).await;
}

/// The content of the blob of this name, of each of its forms.
fn content(name: &str) -> Bytes {
    let length = if name == "inline" || name == "appended" { 20 } else { 70_000 };
    name.bytes().cycle().take(length).collect()
}

/// A blob of every form of content, with a snapshot and staged blocks.
async fn write_blobs(container: &Container) {
    container.create().await.unwrap();
    container.write("inline", content("inline")).await.unwrap();
    container.write("whole", content("whole")).await.unwrap();
    container.snapshot("whole").await.unwrap();
    container.write("whole", "newer").await.unwrap();
    let blocks = content("blocks");
    container.stage("blocks", "A", blocks.slice(..40_000)).await.unwrap();
    container.stage("blocks", "B", blocks.slice(40_000..)).await.unwrap();
    container.commit("blocks", &["A", "B"]).await.unwrap();
    container.stage("blocks", "C", "staged").await.unwrap();
    container.create_append("appended").await.unwrap();
    let appended = content("appended");
    container.append(container.appending("appended"), appended.slice(..7)).await.unwrap();
    container.append(container.appending("appended"), appended.slice(7..)).await.unwrap();
    let request = blob::CreatePageBlobRequest {
        container: container.name(),
        blob: "pages".to_owned(),
        size: 70_144,
        ..Default::default()
    };
    container.client().create_page_blob(request).await.unwrap();
    let spec = blob::WritePagesSpec {
        container: container.name(),
        blob: "pages".to_owned(),
        offset: 65_024,
        ..Default::default()
    };
    let data = Bytes::from(vec![7; 1024]);
    let finish = Some(blob::UploadFinish::default());
    let message = blob::WritePagesRequest { spec: Some(spec), data, finish };
    container.client().write_pages(tokio_stream::iter([message])).await.unwrap();
}

/// Checks what [`write_blobs`] wrote.
async fn check_blobs(container: &Container) {
    for name in ["inline", "blocks", "appended"] {
        assert_eq!(container.read(name).await.unwrap().data, content(name), "{name}");
    }
    assert_eq!(container.read("whole").await.unwrap().data, "newer");
    let request = blob::ListBlobsRequest {
        container: container.name(),
        prefix: "whole".to_owned(),
        include_snapshots: true,
        ..Default::default()
    };
    let listed = container.client().list_blobs(request).await.unwrap().into_inner().items;
    let Some(blob::listed_blob::Item::Blob(oldest)) = listed[0].item.clone() else { panic!() };
    let request = blob::ReadBlobRequest { snapshot: oldest.snapshot, ..container.reading("whole") };
    assert_eq!(container.read_with(request).await.unwrap().data, content("whole"));
    let pages = [vec![0; 65_024], vec![7; 1024], vec![0; 4096]].concat();
    assert_eq!(container.read("pages").await.unwrap().data, pages);
    let written = container.get("blocks").await.unwrap().create_time.unwrap();
    let now = container.write("now", "").await.unwrap().create_time.unwrap();
    // A kept directory outlives its staged blocks. The sweep that deletes them may have run or not.
    let age = u64::try_from(now.seconds - written.seconds).unwrap();
    let is_kept = age < STAGED_BLOCKS_KEPT.as_secs();
    let (ids, staged) = if is_kept { (&["C", "A"][..], "staged") } else { (&["A"][..], "") };
    container.commit("blocks", ids).await.unwrap();
    let data = container.read("blocks").await.unwrap().data;
    assert_eq!(data, [staged.as_bytes(), &content("blocks")[..40_000]].concat());
}

/// Checks what [`write`] wrote, and that the store accepts more.
async fn check(server: &Server) {
    let channel = server.channel();
    let table = Table::over(&channel, MAIN);
    let found = table.get("p'1", "every type").await.unwrap();
    assert_eq!(found.properties, every_type().properties);
    assert!(found.etag.starts_with("W/\"datetime'"), "{}", found.etag);
    assert_eq!(table.rows("n eq 1").await.unwrap(), ["a", "c"]);
    assert!(Table::over(&channel, "Empty").rows("").await.unwrap().is_empty());
    table.insert(entity("p", "new", [])).await.unwrap();

    let queue = Queue::over(&channel, QUEUE);
    let (settings, _) = queue.get().await.unwrap();
    assert_eq!(settings.metadata.get("key").map(String::as_str), Some("value"));
    let messages = queue.peek(32).await.unwrap();
    assert_eq!(messages.len(), 2);
    assert_eq!(text_of(&messages[0]), "first");
    queue.send(text("new")).await.unwrap();
    assert_eq!(queue.count().await, 3);
    check_blobs(&Container::over(&channel, CONTAINER)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[allow(clippy::disallowed_methods, reason = "a setting of this test")]
async fn writes_a_data_directory_that_opens() {
    let (written, unused) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let server = start(&written, &[]);
    write(&server).await;
    assert_eq!(server.terminate(), Some(0));
    let target = match std::env::var_os("WRITE_FIXTURE") {
        Some(_) => fixtures().join(CURRENT),
        None => unused.path().join(CURRENT),
    };
    files::copy_to_fixture(written.path(), &target);

    let opened = tempfile::tempdir().unwrap();
    files::copy(&target, opened.path());
    check(&start(&opened, &[])).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn opens_the_data_directory_of_every_format_version() {
    let mut versions = Vec::new();
    for entry in fs::read_dir(fixtures()).unwrap().map(Result::unwrap) {
        let opened = tempfile::tempdir().unwrap();
        files::copy(&entry.path(), opened.path());
        check(&start(&opened, &[])).await;
        versions.push(entry.file_name());
    }
    assert!(versions.iter().any(|version| version == CURRENT), "no fixture for {CURRENT}");
}
