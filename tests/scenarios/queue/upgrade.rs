//! Data directories of servers without queues.

use std::sync::Arc;

use trestle::storage::keyspaces;
use trestle_kv::Keyspace;
use trestle_kv_fjall::{FjallEngine, FjallOptions};
use trestle_tests::{World, entity, int, seconds, text, texts};

async fn world(directory: &std::path::Path, keyspaces: Vec<Keyspace>) -> World {
    let options = FjallOptions::new(directory, keyspaces);
    World::on_engine(Arc::new(FjallEngine::open(options).unwrap())).await
}

#[tokio::test]
async fn data_directory_without_queues_opens() {
    let data = tempfile::tempdir().unwrap();
    let before = world(data.path(), trestle_table::KEYSPACES.to_vec()).await;
    let table = before.table("kept").await;
    table.insert(entity("p", "r", [int("n", 7)])).await.unwrap();
    drop((before, table));

    let after = world(data.path(), keyspaces()).await;

    let kept = after.existing_table("kept").get("p", "r").await.unwrap();
    assert_eq!(kept.properties, entity("p", "r", [int("n", 7)]).properties);
    let queue = after.queue("jobs").await;
    queue.send(text("new")).await.unwrap();
    assert_eq!(texts(&queue.receive(1, seconds(30)).await.unwrap()), ["new"]);
}
