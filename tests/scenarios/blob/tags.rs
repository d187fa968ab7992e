//! Tags of blobs: setting, conditions, and finding blobs by them.

use std::collections::HashMap;

use tonic::Code;
use trestle_identity::sas::Scope;
use trestle_proto::blob::v1::{self as proto, listed_blob::Item};
use trestle_tests::{CallError, Container, World, blob_scenario, over_account, terms, token};

blob_scenario!(
    tags_are_set_read_listed_and_replaced,
    blobs_are_found_by_their_tags,
    conditions_on_tags_decide,
    copies_have_the_tags_that_the_call_states,
    rejects_tags_and_expressions_that_azure_rejects,
    tags_need_permissions_of_their_own,
    the_count_of_tags_is_for_those_who_may_read_them,
    tags_of_a_source_are_copied_for_those_who_may_read_them,
);

const NO_PERMISSION: (Code, &str) = (Code::PermissionDenied, "AUTHORIZATION_PERMISSION_MISMATCH");

fn pairs(tags: &[(&str, &str)]) -> HashMap<String, String> {
    tags.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
}

async fn set(container: &Container, blob: &str, tags: &[(&str, &str)]) -> Result<(), CallError> {
    let request = proto::SetBlobTagsRequest {
        container: container.name(),
        blob: blob.to_owned(),
        tags: pairs(tags),
        ..Default::default()
    };
    Ok(container.client().set_blob_tags(request).await.map(drop)?)
}

async fn get(container: &Container, blob: &str) -> Result<HashMap<String, String>, CallError> {
    let (container_name, blob) = (container.name(), blob.to_owned());
    let request =
        proto::GetBlobTagsRequest { container: container_name, blob, ..Default::default() };
    Ok(container.client().get_blob_tags(request).await?.into_inner().tags)
}

/// The found blobs as `container/name`.
async fn find(world: &World, filter: &str, container: &str) -> Result<Vec<String>, CallError> {
    let request = proto::FindBlobsRequest {
        filter: filter.to_owned(),
        container: container.to_owned(),
        ..Default::default()
    };
    let found = world.blobs().find_blobs(request).await?.into_inner();
    assert_eq!(found.next_page_token, "");
    Ok(found.blobs.into_iter().map(|it| format!("{}/{}", it.container, it.blob)).collect())
}

async fn tags_are_set_read_listed_and_replaced(world: &World) {
    let logs = world.container("logs").await;
    let written = logs.write("a", "1").await.unwrap();
    assert_eq!((written.tag_count, get(&logs, "a").await.unwrap()), (0, pairs(&[])));
    let tags = [("State", "new"), ("path", "a/b:c=d_e.f-g+h i"), ("empty", "")];
    set(&logs, "a", &tags).await.unwrap();

    assert_eq!(get(&logs, "a").await.unwrap(), pairs(&tags));
    let found = logs.get("a").await.unwrap();
    assert_eq!((found.tag_count, found.tags.len()), (3, 0));
    assert_eq!((found.etag, found.last_modified), (written.etag, written.last_modified));
    for include_tags in [false, true] {
        let request =
            proto::ListBlobsRequest { container: logs.name(), include_tags, ..Default::default() };
        let listed = world.blobs().list_blobs(request).await.unwrap().into_inner().items;
        let Some(Item::Blob(blob)) = listed.into_iter().next().unwrap().item else { panic!() };
        assert_eq!(blob.tags, if include_tags { pairs(&tags) } else { pairs(&[]) });
    }
    let snapshot = proto::SnapshotBlobRequest {
        container: logs.name(),
        blob: "a".to_owned(),
        ..Default::default()
    };
    let snapshot = world.blobs().snapshot_blob(snapshot).await.unwrap().into_inner();
    assert_eq!(snapshot.snapshot.unwrap().tag_count, 3);
    logs.write("a", "2").await.unwrap();
    assert_eq!(get(&logs, "a").await.unwrap(), pairs(&[]), "a write replaces the tags");
    let absent = get(&logs, "absent").await.unwrap_err();
    assert_eq!(absent.kind(), (Code::NotFound, "BLOB_NOT_FOUND"));
}

async fn blobs_are_found_by_their_tags(world: &World) {
    for container in ["logs", "other"] {
        let container = world.container(container).await;
        for (blob, day) in [("c", "01"), ("a", "02"), ("b", "02")] {
            container.write(blob, "x").await.unwrap();
            set(&container, blob, &[("day", day), ("kind", "log")]).await.unwrap();
        }
    }
    let all = find(world, "kind = 'log' AND day > '01'", "").await.unwrap();
    assert_eq!(all, ["logs/a", "logs/b", "other/a", "other/b"]);
    assert_eq!(find(world, "\"day\" <= '01'", "logs").await.unwrap(), ["logs/c"]);
    let named = find(world, "@container = 'other' AND day = '01'", "").await.unwrap();
    assert_eq!(named, ["other/c"]);
    let absent = find(world, "day = '01'", "absent").await.unwrap_err();
    assert_eq!(absent.kind(), (Code::NotFound, "CONTAINER_NOT_FOUND"));

    let (mut found, mut page_token) = (Vec::new(), String::new());
    loop {
        let request = proto::FindBlobsRequest {
            filter: "kind = 'log'".to_owned(),
            page_size: Some(2),
            page_token,
            ..Default::default()
        };
        let page = world.blobs().find_blobs(request).await.unwrap().into_inner();
        found.extend(page.blobs.into_iter().map(|blob| (blob.container, blob.blob)));
        page_token = page.next_page_token;
        if page_token.is_empty() {
            break;
        }
    }
    assert_eq!(found.len(), 6);
    world.existing_container("logs").delete("a").await.unwrap();
    world.existing_container("other").drop_container().await.unwrap();
    assert_eq!(find(world, "kind = 'log'", "").await.unwrap(), ["logs/b", "logs/c"]);
}

async fn conditions_on_tags_decide(world: &World) {
    let logs = world.container("logs").await;
    logs.write("a", "1").await.unwrap();
    set(&logs, "a", &[("state", "new")]).await.unwrap();
    let read = async |if_tags: &str| {
        let conditions =
            Some(proto::BlobConditions { if_tags: if_tags.to_owned(), ..Default::default() });
        let request = proto::ReadBlobRequest { conditions, ..logs.reading("a") };
        logs.read_with(request).await.map(drop)
    };
    read("state = 'new' OR (state = 'old' AND absent = '')").await.unwrap();
    let not_met = read("state <> 'new'").await.unwrap_err();
    assert_eq!(not_met.reason, "CONDITION_NOT_MET");
    let invalid = read("state = ").await.unwrap_err();
    assert_eq!(invalid.kind(), (Code::InvalidArgument, "INVALID_HEADER_VALUE"));
    let delete = proto::DeleteBlobRequest {
        container: logs.name(),
        blob: "a".to_owned(),
        conditions: Some(proto::BlobConditions {
            if_tags: "state = 'old'".to_owned(),
            ..Default::default()
        }),
        ..Default::default()
    };
    let error = CallError::from(world.blobs().delete_blob(delete).await.unwrap_err());
    assert_eq!(error.reason, "CONDITION_NOT_MET");
    let tier = |if_tags: &str| proto::SetBlobTierRequest {
        container: logs.name(),
        blob: "a".to_owned(),
        access_tier: proto::AccessTier::Cool.into(),
        if_tags: if_tags.to_owned(),
        ..Default::default()
    };
    let error = world.blobs().set_blob_tier(tier("state = 'old'")).await.unwrap_err();
    assert_eq!(CallError::from(error).reason, "CONDITION_NOT_MET");
    assert_eq!(logs.get("a").await.unwrap().access_tier(), proto::AccessTier::Hot);
    world.blobs().set_blob_tier(tier("state = 'new'")).await.unwrap();
    let error = CallError::from(world.blobs().set_blob_tier(tier("state")).await.unwrap_err());
    assert_eq!(
        (error.reason.as_str(), &*error.fields),
        ("INVALID_HEADER_VALUE", &["if_tags".to_owned()][..])
    );
}

async fn copies_have_the_tags_that_the_call_states(world: &World) {
    let logs = world.container("logs").await;
    logs.write("a", "1").await.unwrap();
    set(&logs, "a", &[("k", "source")]).await.unwrap();
    let copy = async |tags: &[(&str, &str)], copy_source_tags| {
        let source = proto::BlobSource {
            container: logs.name(),
            blob: "a".to_owned(),
            ..Default::default()
        };
        let request = proto::CopyBlobRequest {
            container: logs.name(),
            blob: "copy".to_owned(),
            source: Some(source),
            tags: pairs(tags),
            copy_source_tags,
            ..Default::default()
        };
        let mut responses = logs.client().copy_blob(request).await?.into_inner();
        while responses.message().await?.is_some() {}
        get(&logs, "copy").await
    };
    assert_eq!(copy(&[], false).await.unwrap(), pairs(&[]));
    assert_eq!(copy(&[("k", "own")], false).await.unwrap(), pairs(&[("k", "own")]));
    assert_eq!(copy(&[], true).await.unwrap(), pairs(&[("k", "source")]));
    assert_eq!(copy(&[("k", "own")], true).await.unwrap_err().code, Code::InvalidArgument);
}

async fn rejects_tags_and_expressions_that_azure_rejects(world: &World) {
    let logs = world.container("logs").await;
    logs.write("a", "1").await.unwrap();
    let many: Vec<_> = (0..11).map(|number| format!("k{number}")).collect();
    let many: Vec<_> = many.iter().map(|key| (key.as_str(), "")).collect();
    let (key, value) = ("k".repeat(129), "v".repeat(257));
    for (tags, reason) in [
        (&many[..], "TAGS_TOO_LARGE"),
        (&[(key.as_str(), "")], "TAGS_TOO_LARGE"),
        (&[("k", value.as_str())], "TAGS_TOO_LARGE"),
        (&[("", "v")], "EMPTY_TAG_NAME"),
        (&[("é", "v")], "INVALID_TAGS"),
        (&[("k", "a&b")], "INVALID_TAGS"),
    ] {
        assert_eq!(set(&logs, "a", tags).await.unwrap_err().reason, reason, "{tags:?}");
    }
    set(&logs, "a", &[(&key[1..], &value[1..])]).await.unwrap();
    set(&logs, "a", &many[1..]).await.unwrap();
    for filter in
        ["", "k", "k = 1", "k <> 'a'", "k = 'a' OR k = 'b'", "@container = 'Logs' AND k = ''"]
    {
        let error = find(world, filter, "").await.unwrap_err();
        assert_eq!(error.code, Code::InvalidArgument, "{filter}");
    }
}

async fn tags_need_permissions_of_their_own(world: &World) {
    let logs = world.container("logs").await;
    logs.write("a", "1").await.unwrap();
    let held = |permissions: &str| {
        let token = token(terms(Scope::of_container("logs"), permissions));
        world.signed_for_blob(&token, "logs").existing_container("logs")
    };
    set(&held("t"), "a", &[("k", "1")]).await.unwrap();
    assert_eq!(get(&held("t"), "a").await.unwrap(), pairs(&[("k", "1")]));
    let error = set(&held("w"), "a", &[("k", "2")]).await.unwrap_err();
    assert_eq!(error.kind(), NO_PERMISSION);
    assert_eq!(get(&held("r"), "a").await.unwrap_err().kind(), NO_PERMISSION);
    let find = async |container: &Container, in_container: bool| {
        let request = proto::FindBlobsRequest {
            filter: "k = '1'".to_owned(),
            container: if in_container { container.name() } else { String::new() },
            ..Default::default()
        };
        let found = container.client().find_blobs(request).await;
        found.map(|found| found.into_inner().blobs.len()).map_err(CallError::from)
    };
    assert_eq!(find(&held("f"), true).await.unwrap(), 1);
    assert_eq!(find(&held("rt"), true).await.unwrap_err().kind(), NO_PERMISSION);
    assert_eq!(find(&held("f"), false).await.unwrap_err().code, Code::PermissionDenied);
    let account = token(terms(over_account("b", "s"), "f"));
    let account = world.signed(&account).existing_container("logs");
    assert_eq!(find(&account, false).await.unwrap(), 1);

    let conditions =
        Some(proto::BlobConditions { if_tags: "k = '1'".to_owned(), ..Default::default() });
    for (permissions, is_allowed) in [("rt", true), ("r", false)] {
        let reader = held(permissions);
        let request =
            proto::ReadBlobRequest { conditions: conditions.clone(), ..reader.reading("a") };
        assert_eq!(reader.read_with(request).await.is_ok(), is_allowed, "{permissions}");
    }
}

async fn the_count_of_tags_is_for_those_who_may_read_them(world: &World) {
    let logs = world.container("logs").await;
    logs.write("a", "1").await.unwrap();
    set(&logs, "a", &[("k", "1"), ("l", "2")]).await.unwrap();
    for (permissions, expected) in [("rwlt", 2), ("rwl", 0)] {
        let token = token(terms(Scope::of_container("logs"), permissions));
        let held = world.signed_for_blob(&token, "logs").existing_container("logs");
        assert_eq!(held.get("a").await.unwrap().tag_count, expected);
        assert_eq!(held.read("a").await.unwrap().blob.tag_count, expected);
        assert_eq!(held.snapshot("a").await.unwrap().tag_count, expected);
        let list = proto::ListBlobsRequest { container: logs.name(), ..Default::default() };
        let listed = held.client().list_blobs(list).await.unwrap().into_inner().items;
        for item in listed {
            let Some(Item::Blob(blob)) = item.item else { panic!("no prefixes") };
            assert_eq!(blob.tag_count, expected, "{permissions}");
        }
    }
}

async fn tags_of_a_source_are_copied_for_those_who_may_read_them(world: &World) {
    let logs = world.container("logs").await;
    logs.write("a", "1").await.unwrap();
    set(&logs, "a", &[("k", "1")]).await.unwrap();
    for (permissions, is_allowed) in [("rw", false), ("rwt", true)] {
        let token = token(terms(Scope::of_container("logs"), permissions));
        let held = world.signed_for_blob(&token, "logs").existing_container("logs");
        let (container, blob) = (logs.name(), "a".to_owned());
        let request = |copy_source_tags| proto::CopyBlobRequest {
            container: container.clone(),
            blob: "copy".to_owned(),
            source: Some(proto::BlobSource {
                container: container.clone(),
                blob: blob.clone(),
                ..Default::default()
            }),
            copy_source_tags,
            ..Default::default()
        };
        held.copy(request(false)).await.unwrap();
        assert_eq!(get(&logs, "copy").await.unwrap(), pairs(&[]));
        let copied = held.copy(request(true)).await;
        let expected = if is_allowed { pairs(&[("k", "1")]) } else { pairs(&[]) };
        assert_eq!(
            copied.err().map(|it| it.reason == NO_PERMISSION.1),
            (!is_allowed).then_some(true)
        );
        assert_eq!(get(&logs, "copy").await.unwrap(), expected, "{permissions}");
    }
}
