//! Shared access signatures on containers and blobs: what each allows, and what it does not.

use http::HeaderName;
use tonic::Code;
use trestle_identity::{caller::BLOB_STATE_HEADER, sas::Scope, spec::BLOB};
use trestle_proto::blob::v1::{self as proto, lease_blob_request::Action};
use trestle_proto::service::v1::AccessPolicy;
use trestle_tests::{
    CallError, Container, World, blob_scenario, over_account, terms, terms_by_policy, token,
};

blob_scenario!(
    a_container_sas_grants_its_permissions_on_its_blobs,
    an_account_sas_grants_its_permissions_on_blobs,
    a_container_policy_is_used_and_revoked,
    the_permission_to_create_does_not_overwrite,
    a_policy_grants_tags_only_with_their_permission,
    a_signature_for_a_snapshot_reads_that_snapshot,
    who_may_write_and_not_read_receives_no_properties,
    who_may_delete_may_break_a_lease,
    a_read_ends_when_the_policy_does_not_permit_it_any_more,
    a_search_of_the_account_and_one_of_a_container_are_different_permissions,
);

const NO_PERMISSION: (Code, &str) = (Code::PermissionDenied, "AUTHORIZATION_PERMISSION_MISMATCH");
const FAILURE: (Code, &str) = (Code::PermissionDenied, "AUTHORIZATION_FAILURE");
const OVERWRITE: (Code, &str) = (Code::PermissionDenied, "UNAUTHORIZED_BLOB_OVERWRITE");
const NOT_AUTHENTIC: (Code, &str) = (Code::Unauthenticated, "AUTHENTICATION_FAILED");

/// A container as the holder of a signature over it sees it.
fn held(world: &World, permissions: &str) -> Container {
    let token = token(terms(Scope::of_container("logs"), permissions));
    world.signed_for_blob(&token, "logs").existing_container("logs")
}

async fn a_container_sas_grants_its_permissions_on_its_blobs(world: &World) {
    let logs = world.container("logs").await;
    logs.write("a", "1").await.unwrap();

    let reader = held(world, "r");
    assert_eq!(reader.read("a").await.unwrap().data, "1");
    assert_eq!(reader.write("a", "2").await.unwrap_err().kind(), NO_PERMISSION);
    assert_eq!(reader.delete("a").await.unwrap_err().kind(), NO_PERMISSION);
    assert_eq!(reader.list("", "").await.unwrap_err().kind(), NO_PERMISSION);
    let writer = held(world, "wdl");
    writer.write("b", "2").await.unwrap();
    assert_eq!(writer.list("", "").await.unwrap(), ["a", "b"]);
    writer.delete("b").await.unwrap();
    assert_eq!(writer.read("a").await.unwrap_err().kind(), NO_PERMISSION);
    assert_eq!(writer.drop_container().await.unwrap_err().kind(), FAILURE);

    writer.create_append("log").await.unwrap();
    for permissions in ["a", "w"] {
        let appender = held(world, permissions);
        appender.append(appender.appending("log"), "line").await.unwrap();
    }
    let appender = held(world, "a");
    assert_eq!(appender.write("b", "2").await.unwrap_err().kind(), NO_PERMISSION);
    let rejected = reader.append(reader.appending("log"), "line").await;
    assert_eq!(rejected.unwrap_err().kind(), NO_PERMISSION);

    world.container("other").await;
    let other = token(terms(Scope::of_container("logs"), "rwdl"));
    let other = world.signed_for_blob(&other, "logs").existing_container("other");
    assert_eq!(other.write("a", "x").await.unwrap_err().kind(), FAILURE);
    let unnamed = token(terms(Scope::of_container("logs"), "r"));
    let unnamed = world.signed_for_blob(&unnamed, "other").existing_container("other");
    assert_eq!(unnamed.read("a").await.unwrap_err().kind(), NOT_AUTHENTIC);
}

async fn an_account_sas_grants_its_permissions_on_blobs(world: &World) {
    let logs = world.container("logs").await;
    logs.write("a", "1").await.unwrap();
    let holder = |services: &str, types: &str, permissions: &str| {
        let token = token(terms(over_account(services, types), permissions));
        world.signed(&token).existing_container("logs")
    };

    assert_eq!(holder("b", "o", "r").read("a").await.unwrap().data, "1");
    assert_eq!(holder("b", "c", "l").list("", "").await.unwrap(), ["a"]);
    let kind = |error: CallError| error.reason;
    let wrong = holder("qt", "o", "r").read("a").await.unwrap_err();
    assert_eq!(kind(wrong), "AUTHORIZATION_SERVICE_MISMATCH");
    let wrong = holder("b", "c", "r").read("a").await.unwrap_err();
    assert_eq!(kind(wrong), "AUTHORIZATION_RESOURCE_TYPE_MISMATCH");
    let wrong = holder("b", "o", "r").write("a", "2").await.unwrap_err();
    assert_eq!(kind(wrong), "AUTHORIZATION_PERMISSION_MISMATCH");

    let creator = token(terms(over_account("b", "sco"), "rwc"));
    for (public_access, expected) in
        [(proto::PublicAccess::Blob, Some(FAILURE)), (proto::PublicAccess::Unspecified, None)]
    {
        let public_access = public_access.into();
        let name = "created".to_owned();
        let container = Some(proto::Container { name, public_access, ..Default::default() });
        let request = proto::CreateContainerRequest { container };
        let created = world.signed(&creator).blobs().create_container(request).await;
        let error = created.map_err(CallError::from).err();
        assert_eq!(error.as_ref().map(CallError::kind), expected);
    }
}

fn policy(id: &str, permissions: &str) -> AccessPolicy {
    AccessPolicy {
        id: id.to_owned(),
        permissions: Some(permissions.to_owned()),
        expiry_time: Some(prost_types::Timestamp { seconds: 4_000_000_000, nanos: 0 }),
        ..Default::default()
    }
}

async fn set_policies(container: &Container, policies: Vec<AccessPolicy>) {
    let container_name = container.name();
    let request = proto::SetContainerAccessPoliciesRequest {
        container: container_name,
        policies,
        ..Default::default()
    };
    container.client().set_container_access_policies(request).await.unwrap();
}

async fn a_container_policy_is_used_and_revoked(world: &World) {
    let logs = world.container("logs").await;
    logs.write("a", "1").await.unwrap();
    let token = token(terms_by_policy(Scope::of_container("logs"), "readers"));
    let reader = world.signed_for_blob(&token, "logs").existing_container("logs");
    assert_eq!(reader.read("a").await.unwrap_err().kind(), NOT_AUTHENTIC);

    set_policies(&logs, vec![policy("readers", "r")]).await;
    assert_eq!(reader.read("a").await.unwrap().data, "1");
    assert_eq!(reader.write("a", "2").await.unwrap_err().kind(), NO_PERMISSION);
    set_policies(&logs, Vec::new()).await;
    assert_eq!(reader.read("a").await.unwrap_err().kind(), NOT_AUTHENTIC);
}

async fn a_read_ends_when_the_policy_does_not_permit_it_any_more(world: &World) {
    let logs = world.container("logs").await;
    let data = vec![7; 3_900_000];
    logs.create_append("a").await.unwrap();
    for _ in 0..16 {
        logs.append(logs.appending("a"), data.clone()).await.unwrap();
    }
    let token = token(terms_by_policy(Scope::of_container("logs"), "readers"));
    let reader = world.signed_for_blob(&token, "logs").existing_container("logs");
    for (denied, kind) in
        [(Vec::new(), NOT_AUTHENTIC), (vec![policy("readers", "w")], NO_PERMISSION)]
    {
        set_policies(&logs, vec![policy("readers", "r")]).await;
        let mut messages = reader.client().read_blob(reader.reading("a")).await.unwrap();
        let mut bytes = messages.get_mut().message().await.unwrap().unwrap().data.len();
        set_policies(&logs, denied).await;
        let error = loop {
            match messages.get_mut().message().await {
                Ok(message) => bytes += message.expect("more of the blob").data.len(),
                Err(status) => break CallError::from(status),
            }
        };
        assert_eq!(error.kind(), kind);
        assert!(bytes < 16 * data.len(), "{bytes}");
    }
}

async fn the_permission_to_create_does_not_overwrite(world: &World) {
    let logs = world.container("logs").await;
    set_policies(&logs, vec![policy("creators", "c")]).await;
    let by_policy = token(terms_by_policy(Scope::of_container("logs"), "creators"));
    let account = token(terms(over_account("b", "o"), "c"));
    let holders = [
        held(world, "c"),
        world.signed_for_blob(&by_policy, "logs").existing_container("logs"),
        world.signed(&account).existing_container("logs"),
    ];
    for (index, creator) in holders.iter().enumerate() {
        let [block, append, page] = ["block", "append", "page"].map(|it| format!("{index}/{it}"));
        creator.write(&block, "1").await.unwrap();
        creator.create_append(&append).await.unwrap();
        creator.create_pages(&page, 512).await.unwrap();
        creator.snapshot(&block).await.unwrap();

        let rejected = [
            creator.write(&block, "2").await.map(drop),
            creator.create_append(&append).await.map(drop),
            creator.create_pages(&page, 512).await.map(drop),
        ];
        for rejected in rejected {
            assert_eq!(rejected.unwrap_err().kind(), OVERWRITE, "{index}");
        }
        assert_eq!(creator.commit(&block, &[]).await.unwrap_err().kind(), NO_PERMISSION);
        assert_eq!(creator.read(&block).await.unwrap_err().kind(), NO_PERMISSION);
        assert_eq!(logs.read(&block).await.unwrap().data, "1");
    }
    // A deleted blob may be created again; with the permission to write too, it is overwritten.
    let with_snapshots = proto::DeleteBlobRequest {
        delete_snapshots: proto::DeleteSnapshots::Include.into(),
        ..logs.deleting("0/block")
    };
    logs.client().delete_blob(with_snapshots).await.unwrap();
    holders[0].write("0/block", "3").await.unwrap();
    held(world, "cw").write("0/block", "4").await.unwrap();

    let copier = held(world, "cr");
    let source = proto::BlobSource {
        container: logs.name(),
        blob: "0/block".to_owned(),
        ..Default::default()
    };
    let copy = |blob: &str| proto::CopyBlobRequest {
        container: logs.name(),
        blob: blob.to_owned(),
        source: Some(source.clone()),
        ..Default::default()
    };
    copier.copy(copy("copy")).await.unwrap();
    assert_eq!(copier.copy(copy("copy")).await.unwrap_err().kind(), OVERWRITE);
}

async fn a_policy_grants_tags_only_with_their_permission(world: &World) {
    let logs = world.container("logs").await;
    let token = token(terms_by_policy(Scope::of_container("logs"), "writers"));
    let writer = world.signed_for_blob(&token, "logs").existing_container("logs");
    for (permissions, is_allowed) in [("rwl", false), ("rwlt", true)] {
        set_policies(&logs, vec![policy("writers", permissions)]).await;
        let tags = [("k".to_owned(), "1".to_owned())].into();
        let spec = proto::WriteBlobSpec { tags, ..writer.spec("a") };
        let written = writer.write_with(spec, "1").await;
        let request = proto::ListBlobsRequest {
            container: logs.name(),
            include_tags: true,
            ..Default::default()
        };
        let listed = writer.client().list_blobs(request).await;
        match is_allowed {
            true => drop((written.unwrap(), listed.unwrap())),
            false => {
                assert_eq!(written.unwrap_err().kind(), NO_PERMISSION);
                assert_eq!(listed.unwrap_err().code(), Code::PermissionDenied);
            }
        }
    }
}

async fn a_signature_for_a_snapshot_reads_that_snapshot(world: &World) {
    let logs = world.container("logs").await;
    logs.write("a", "one").await.unwrap();
    let [first, second] = [logs.snapshot("a").await.unwrap(), logs.snapshot("a").await.unwrap()];
    logs.write("a", "two").await.unwrap();
    let fields = [("sr", "bs"), ("snapshot", first.snapshot.as_str())].into_iter().collect();
    let token = token(terms(Scope::of_resource(&BLOB, "logs/a", fields), "rd"));
    let header = HeaderName::from_static(BLOB_STATE_HEADER);
    let holder = |time: &str| {
        let world = world.signed_for_blob(&token, "logs/a").with_header(header.clone(), time);
        world.existing_container("logs")
    };
    let reader = holder(&first.snapshot);
    let read = async |snapshot: &str| {
        let snapshot = snapshot.to_owned();
        reader.read_with(proto::ReadBlobRequest { snapshot, ..reader.reading("a") }).await
    };

    assert_eq!(read(&first.snapshot).await.unwrap().data, "one");
    for other in ["", &second.snapshot] {
        assert_eq!(read(other).await.unwrap_err().kind(), FAILURE, "{other}");
    }
    let forged = holder(&second.snapshot).read("a").await.unwrap_err();
    assert_eq!(forged.kind(), NOT_AUTHENTIC);
    assert_eq!(reader.delete("a").await.unwrap_err().kind(), FAILURE);
    let snapshot = first.snapshot.clone();
    let request = proto::DeleteBlobRequest { snapshot, ..reader.deleting("a") };
    reader.client().delete_blob(request).await.unwrap();
    assert_eq!(logs.read("a").await.unwrap().data, "two");
}

async fn who_may_write_and_not_read_receives_no_properties(world: &World) {
    let logs = world.container("logs").await;
    let metadata: std::collections::HashMap<_, _> = [("k".to_owned(), "secret".to_owned())].into();
    let spec = proto::WriteBlobSpec { metadata: metadata.clone(), ..logs.spec("a") };
    logs.write_with(spec, "1").await.unwrap();
    logs.create_append("log").await.unwrap();
    let update = proto::UpdateBlobRequest {
        container: logs.name(),
        blob: "log".to_owned(),
        metadata: metadata.clone(),
        update_mask: Some(prost_types::FieldMask { paths: vec!["metadata".to_owned()] }),
        ..Default::default()
    };
    logs.client().update_blob(update.clone()).await.unwrap();
    let tier = proto::SetBlobTierRequest {
        container: logs.name(),
        blob: "a".to_owned(),
        access_tier: proto::AccessTier::Cool.into(),
        ..Default::default()
    };
    let properties = proto::UpdateBlobRequest {
        blob: "a".to_owned(),
        update_mask: Some(prost_types::FieldMask { paths: vec!["properties".to_owned()] }),
        ..update
    };

    for (reads, suffix) in [(false, ""), (true, "r")] {
        let (appender, taker) = (held(world, &format!("a{suffix}")), held(world, "c"));
        let writer = held(world, &format!("{suffix}w"));
        let mut client = writer.client();
        let appended = appender.append(appender.appending("log"), "2").await.unwrap().blob.unwrap();
        let tiered = client.set_blob_tier(tier.clone()).await.unwrap().into_inner().blob.unwrap();
        let updated = client.update_blob(properties.clone()).await.unwrap().into_inner();
        for blob in [&appended, &tiered, &updated.blob.unwrap()] {
            assert_eq!(blob.metadata == metadata, reads, "{blob:?}");
            assert_eq!(blob.properties.is_some() && blob.create_time.is_some(), reads, "{blob:?}");
            assert!(!blob.etag.is_empty() && blob.size > 0, "{blob:?}");
        }
        assert_eq!(tiered.access_tier(), proto::AccessTier::Cool);
        let snapshot = taker.snapshot("a").await.unwrap();
        assert!(snapshot.metadata.is_empty() && !snapshot.snapshot.is_empty(), "{snapshot:?}");
    }
}

async fn who_may_delete_may_break_a_lease(world: &World) {
    let logs = world.container("logs").await;
    logs.write("a", "1").await.unwrap();
    logs.acquire_lease("a").await.unwrap();
    let deleter = held(world, "d");

    let acquired = deleter.acquire_lease("a").await.unwrap_err();
    assert_eq!(acquired.kind(), NO_PERMISSION);
    let action = Action::Break(proto::BreakLease { break_period: None });
    let request = proto::LeaseBlobRequest {
        container: logs.name(),
        blob: "a".to_owned(),
        action: Some(action),
        conditions: None,
    };
    let broken = deleter.client().lease_blob(request.clone()).await.unwrap().into_inner();
    assert_eq!(broken.blob.unwrap().lease.unwrap().state(), proto::LeaseState::Broken);
    let reader = held(world, "r");
    let error = CallError::from(reader.client().lease_blob(request).await.unwrap_err());
    assert_eq!(error.kind(), NO_PERMISSION);
}

async fn a_search_of_the_account_and_one_of_a_container_are_different_permissions(world: &World) {
    let logs = world.container("logs").await;
    let tags = [("k".to_owned(), "v".to_owned())].into();
    logs.write_with(proto::WriteBlobSpec { tags, ..logs.spec("a") }, "1").await.unwrap();
    let find = async |types: &str, container: &str| {
        let token = token(terms(over_account("b", types), "f"));
        let request = proto::FindBlobsRequest {
            filter: "k = 'v'".to_owned(),
            container: container.to_owned(),
            ..Default::default()
        };
        let found = world.signed(&token).blobs().find_blobs(request).await;
        found.map(|it| it.into_inner().blobs.len()).map_err(|it| CallError::from(it).reason)
    };
    let mismatch = || Err("AUTHORIZATION_RESOURCE_TYPE_MISMATCH".to_owned());
    assert_eq!((find("s", "").await, find("c", "logs").await), (Ok(1), Ok(1)));
    assert_eq!((find("c", "").await, find("s", "logs").await), (mismatch(), mismatch()));

    let lister = token(terms(over_account("b", "c"), "lt"));
    let request = proto::ListBlobsRequest {
        container: logs.name(),
        include_tags: true,
        ..Default::default()
    };
    let listed = world.signed(&lister).blobs().list_blobs(request).await.unwrap().into_inner();
    let Some(proto::listed_blob::Item::Blob(blob)) = &listed.items[0].item else { panic!() };
    assert_eq!((blob.tag_count, blob.tags["k"].as_str()), (1, "v"));
}
