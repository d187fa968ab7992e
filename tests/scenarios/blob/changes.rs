//! What each call changes: the etag with the time of the last change, what a copy left, and never the type of a blob.

use tonic::Code;
use trestle_proto::blob::v1::{self as proto, Blob, update_page_blob_request::SequenceNumber};
use trestle_tests::{CallError, Container, World, blob_scenario};

blob_scenario!(
    the_etag_changes_with_content_properties_and_metadata_only,
    a_copy_is_reported_until_content_properties_or_metadata_are_replaced,
    no_call_gives_a_blob_another_type,
);

const PAGES: &str = "pages";
const OTHER_TYPE: (Code, &str) = (Code::FailedPrecondition, "INVALID_BLOB_TYPE");

/// The calls that change a blob in some way.
#[derive(Debug, Clone, Copy)]
enum Call {
    Write,
    Stage,
    Commit,
    Copy,
    SetProperties,
    SetMetadata,
    SetTags,
    SetTier,
    Lease,
    Snapshot,
    Append,
    Seal,
    WritePages,
    ClearPages,
    Resize,
    Number,
}

/// The call on the blob `a`, for which `b` is the source of copies.
async fn call(container: &Container, call: Call) -> Result<(), CallError> {
    let (name, blob) = (container.name(), "a".to_owned());
    let mut client = container.client();
    match call {
        Call::Write => drop(container.write("a", "2").await?),
        Call::Stage => drop(container.stage("a", "A", "2").await?),
        Call::Commit => drop(container.commit("a", &[]).await?),
        Call::Copy => drop(container.copy(container.copying("b", "a")).await?),
        Call::SetProperties => drop(client.update_blob(update(name, "properties")).await?),
        Call::SetMetadata => drop(client.update_blob(update(name, "metadata")).await?),
        Call::SetTags => {
            let request = proto::SetBlobTagsRequest { container: name, blob, ..Default::default() };
            client.set_blob_tags(request).await?;
        }
        Call::SetTier => {
            let request = proto::SetBlobTierRequest {
                container: name,
                blob,
                access_tier: proto::AccessTier::Cool.into(),
                ..Default::default()
            };
            client.set_blob_tier(request).await?;
        }
        Call::Lease => drop(container.acquire_lease("a").await?),
        Call::Snapshot => drop(container.snapshot("a").await?),
        Call::Append => drop(container.append(container.appending("a"), "2").await?),
        Call::Seal => {
            let request = proto::SealBlobRequest { container: name, blob, ..Default::default() };
            client.seal_blob(request).await?;
        }
        Call::WritePages | Call::ClearPages | Call::Resize | Call::Number => {
            call_on_pages(container, call).await?;
        }
    }
    Ok(())
}

fn update(container: String, path: &str) -> proto::UpdateBlobRequest {
    proto::UpdateBlobRequest {
        container,
        blob: "a".to_owned(),
        update_mask: Some(prost_types::FieldMask { paths: vec![path.to_owned()] }),
        ..Default::default()
    }
}

/// A call on the page blob `a`.
async fn call_on_pages(container: &Container, call: Call) -> Result<(), CallError> {
    let (name, blob) = (container.name(), "a".to_owned());
    let mut client = container.client();
    match call {
        Call::WritePages => {
            let spec = proto::WritePagesSpec { container: name, blob, ..Default::default() };
            let finish = Some(proto::UploadFinish::default());
            let data = vec![1; 512].into();
            let message = proto::WritePagesRequest { spec: Some(spec), data, finish };
            client.write_pages(tokio_stream::iter([message])).await?;
        }
        Call::ClearPages => {
            let request = proto::ClearPagesRequest {
                container: name,
                blob,
                length: 512,
                ..Default::default()
            };
            client.clear_pages(request).await?;
        }
        _ => {
            let is_number = matches!(call, Call::Number);
            let request = proto::UpdatePageBlobRequest {
                container: name,
                blob,
                size: (!is_number).then_some(512),
                sequence_number: is_number.then_some(SequenceNumber::Increment(true)),
                ..Default::default()
            };
            client.update_page_blob(request).await?;
        }
    }
    Ok(())
}

/// Creates a blob of a type.
async fn create(container: &Container, blob: &str, kind: proto::BlobType) -> Result<(), CallError> {
    match kind {
        proto::BlobType::Append => drop(container.create_append(blob).await?),
        proto::BlobType::Page => drop(container.create_pages(blob, 1024).await?),
        _ => drop(container.write(blob, "1").await?),
    }
    Ok(())
}

/// The etag, and the time of the last change.
fn modified(blob: Blob) -> (String, Option<prost_types::Timestamp>) {
    (blob.etag, blob.last_modified)
}

async fn the_etag_changes_with_content_properties_and_metadata_only(world: &World) {
    let general = [(Call::SetProperties, true), (Call::SetMetadata, true), (Call::Copy, true)];
    let neutral = [(Call::SetTags, false), (Call::Snapshot, false), (Call::Lease, false)];
    let block =
        [(Call::Write, true), (Call::Stage, false), (Call::Commit, true), (Call::SetTier, false)];
    let append = [(Call::Append, true), (Call::Seal, false)];
    let page = [
        (Call::WritePages, true),
        (Call::ClearPages, true),
        (Call::Resize, true),
        (Call::Number, true),
    ];
    for (name, kind, own) in [
        ("blocks", proto::BlobType::Block, &block[..]),
        ("appends", proto::BlobType::Append, &append[..]),
        (PAGES, proto::BlobType::Page, &page[..]),
    ] {
        let container = world.container(name).await;
        create(&container, "a", kind).await.unwrap();
        create(&container, "b", kind).await.unwrap();
        // A copy of an unsealed blob opens the sealed one again, and a lease ends the calls without its id.
        for (it, changes) in own.iter().chain(&general).chain(&neutral) {
            let before = modified(container.get("a").await.unwrap());
            call(&container, *it).await.unwrap();
            let after = modified(container.get("a").await.unwrap());
            assert_eq!(after.0 != before.0, *changes, "{name}: {it:?}");
            assert_eq!(after.1 != before.1, *changes, "{name}: {it:?}");
        }
    }
}

async fn a_copy_is_reported_until_content_properties_or_metadata_are_replaced(world: &World) {
    let blocks = [
        (Call::Stage, true),
        (Call::SetTags, true),
        (Call::SetTier, true),
        (Call::Snapshot, true),
        (Call::Write, false),
        (Call::Commit, false),
        (Call::SetProperties, false),
        (Call::SetMetadata, false),
    ];
    let pages = [(Call::WritePages, true), (Call::ClearPages, true), (Call::Lease, true)];
    for (name, kind, calls) in [
        ("blocks", proto::BlobType::Block, &blocks[..]),
        (PAGES, proto::BlobType::Page, &pages[..]),
    ] {
        let container = world.container(name).await;
        create(&container, "b", kind).await.unwrap();
        for (it, remains) in calls {
            call(&container, Call::Copy).await.unwrap();
            call(&container, *it).await.unwrap();
            let found = container.get("a").await.unwrap();
            assert_eq!(found.copy.is_some(), *remains, "{name}: {it:?}");
        }
    }
}

async fn no_call_gives_a_blob_another_type(world: &World) {
    let container = world.container("kinds").await;
    let kinds = [proto::BlobType::Block, proto::BlobType::Append, proto::BlobType::Page];
    for kind in kinds {
        create(&container, "a", kind).await.unwrap();
        let before = container.get("a").await.unwrap();
        for other in kinds.into_iter().filter(|other| *other != kind) {
            let error = create(&container, "a", other).await.unwrap_err();
            assert_eq!(error.kind(), OTHER_TYPE, "{other:?} over {kind:?}");
            create(&container, "b", other).await.unwrap();
            let error = call(&container, Call::Copy).await.unwrap_err();
            assert_eq!(error.kind(), OTHER_TYPE, "a copy of {other:?} over {kind:?}");
            container.delete("b").await.unwrap();
        }
        let of_blocks = [Call::Stage, Call::Commit];
        let of_appends = [Call::Append, Call::Seal];
        let of_pages = [Call::WritePages, Call::ClearPages, Call::Resize, Call::Number];
        for (own, calls) in kinds.into_iter().zip([&of_blocks[..], &of_appends, &of_pages]) {
            for it in calls.iter().filter(|_| own != kind) {
                let error = call(&container, *it).await.unwrap_err();
                assert_eq!(error.kind(), OTHER_TYPE, "{it:?} on {kind:?}");
            }
        }
        assert_eq!(container.get("a").await.unwrap(), before);
        container.delete("a").await.unwrap();
    }
}
