//! Staged blocks and lists of them.

use bytes::Bytes;
use tonic::Code;
use trestle_proto::blob::v1 as proto;
use trestle_tests::{CallError, Container, World, blob_scenario};

blob_scenario!(
    staged_blocks_are_committed_in_the_order_of_the_list,
    a_blob_with_staged_blocks_only_is_listed_on_request,
    rejects_blocks_and_lists_past_their_bounds,
);

async fn ids(container: &Container, blob: &str) -> (Vec<Bytes>, Vec<Bytes>) {
    let (container_name, blob) = (container.name(), blob.to_owned());
    let request =
        proto::GetBlockListRequest { container: container_name, blob, ..Default::default() };
    let list = container.client().get_block_list(request).await.unwrap().into_inner();
    let ids = |blocks: Vec<proto::Block>| blocks.into_iter().map(|block| block.id).collect();
    (ids(list.committed), ids(list.uncommitted))
}

async fn staged_blocks_are_committed_in_the_order_of_the_list(world: &World) {
    let logs = world.container("logs").await;
    let large = Bytes::from(vec![7; 3_000_000]);
    logs.stage("a", "A", "first ").await.unwrap();
    logs.stage("a", "B", large.clone()).await.unwrap();
    assert_eq!(logs.read("a").await.unwrap_err().reason, "BLOB_NOT_FOUND");
    assert_eq!(ids(&logs, "a").await, (vec![], vec!["A".into(), "B".into()]));

    let blob = logs.commit("a", &["B", "A"]).await.unwrap();

    let whole: Bytes = [large.as_ref(), b"first "].concat().into();
    assert_eq!(blob.size, whole.len() as u64);
    assert!(blob.properties.unwrap().content_md5.is_empty(), "a commit computes none");
    assert_eq!(logs.read("a").await.unwrap().data, whole);
    assert_eq!(ids(&logs, "a").await, (vec!["B".into(), "A".into()], vec![]));
    let error = logs.stage("a", "long", "x").await;
    assert!(error.is_ok(), "the length of committed ids does not matter");
    let error = logs.stage("a", "A", "x").await.unwrap_err();
    assert_eq!(error.kind(), (Code::InvalidArgument, "INVALID_BLOB_OR_BLOCK"));
    logs.write("a", "x").await.unwrap();
    assert_eq!(ids(&logs, "a").await, (vec![], vec![]), "a write drops all blocks");
}

async fn a_blob_with_staged_blocks_only_is_listed_on_request(world: &World) {
    let logs = world.container("logs").await;
    logs.stage("a", "A", "x").await.unwrap();
    assert_eq!(logs.list("", "").await.unwrap(), [""; 0]);

    let request = proto::ListBlobsRequest {
        container: logs.name(),
        include_uncommitted: true,
        ..Default::default()
    };
    let items = logs.client().list_blobs(request).await.unwrap().into_inner().items;
    let Some(proto::listed_blob::Item::Blob(blob)) = items[0].item.clone() else { panic!() };
    assert_eq!((blob.name.as_str(), blob.size, blob.is_uncommitted), ("a", 0, true));
    logs.delete("a").await.unwrap();
    assert_eq!(logs.delete("a").await.unwrap_err().reason, "BLOB_NOT_FOUND");
}

async fn rejects_blocks_and_lists_past_their_bounds(world: &World) {
    let logs = world.container("logs").await;
    let sixty_four: &'static str = Box::leak("i".repeat(64).into_boxed_str());
    let sixty_five: &'static str = Box::leak("i".repeat(65).into_boxed_str());
    logs.stage("a", sixty_four, "x").await.unwrap();
    for id in ["", sixty_five] {
        let error = logs.stage("a", id, "x").await.unwrap_err();
        assert_eq!(error.kind(), (Code::InvalidArgument, "INVALID_QUERY_PARAMETER_VALUE"));
    }
    let error = logs.stage("a", sixty_four, "").await.unwrap_err();
    assert_eq!(error.kind(), (Code::InvalidArgument, "INVALID_HEADER_VALUE"), "no data");
    let error = logs.commit("a", &["unknown"]).await.unwrap_err();
    assert_eq!(error.kind(), (Code::InvalidArgument, "INVALID_BLOCK_LIST"));

    let block = proto::BlockRef { id: sixty_four.into(), source: 9 };
    let request = proto::CommitBlocksRequest {
        container: logs.name(),
        blob: "a".to_owned(),
        blocks: vec![block],
        ..Default::default()
    };
    let error = CallError::from(logs.client().commit_blocks(request).await.unwrap_err());
    assert_eq!(error.kind(), (Code::InvalidArgument, "INVALID_INPUT"), "an unknown source");
    assert_eq!(error.fields, ["blocks[0].source"]);

    let blob = logs.commit("a", &vec![sixty_four; 50_000]).await.unwrap();
    assert_eq!(blob.size, 50_000);
    let error = logs.commit("a", &vec![sixty_four; 50_001]).await.unwrap_err();
    assert_eq!(error.kind(), (Code::InvalidArgument, "BLOCK_LIST_TOO_LONG"));
}
