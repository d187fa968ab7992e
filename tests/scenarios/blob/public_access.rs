//! Callers without credentials.

use std::collections::HashMap;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use http::{HeaderName, header::AUTHORIZATION};
use tonic::Code;
use trestle_proto::blob::v1 as proto;
use trestle_tests::{CallError, Container, World, blob_scenario_with};

/// Base64 of 64 bytes.
const KEY: &str =
    "AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQ==";

/// An account that allows public access, and one that does not.
const ACCOUNTS: &[(&str, &str)] = &[
    ("TRESTLE__ACCOUNTS__OPEN__KEY1", KEY),
    ("TRESTLE__ACCOUNTS__OPEN__ALLOW_BLOB_PUBLIC_ACCESS", "true"),
    ("TRESTLE__ACCOUNTS__CLOSED__KEY1", KEY),
];

blob_scenario_with!(
    ACCOUNTS;
    a_container_is_open_as_far_as_its_level,
    an_account_that_does_not_allow_it_stays_closed,
    nothing_but_blobs_is_open,
    a_previous_version_is_not_public,
);

const NONE: (Code, &str) = (Code::Unauthenticated, "NO_AUTHENTICATION_INFORMATION");

fn owner(world: &World, account: &str) -> World {
    let value = STANDARD.encode(format!("{account}:{KEY}"));
    world.with_header(AUTHORIZATION, &format!("Basic {value}"))
}

/// The world of a caller that names an account, and has no credentials.
fn anyone(world: &World, account: &str) -> World {
    world.with_header(HeaderName::from_static("trestle-account"), account)
}

/// A container with this level and the blob `a`.
async fn container(owner: &World, name: &str, level: proto::PublicAccess) -> Container {
    let container = proto::Container {
        name: name.to_owned(),
        public_access: level.into(),
        ..Default::default()
    };
    let request = proto::CreateContainerRequest { container: Some(container) };
    let created = owner.blobs().create_container(request).await.unwrap().into_inner();
    assert_eq!(created.container.unwrap().public_access(), level);
    let container = owner.existing_container(name);
    let tags = [("k".to_owned(), "1".to_owned())].into();
    let spec = proto::WriteBlobSpec { tags, ..container.spec("a") };
    container.write_with(spec, "public").await.unwrap();
    container
}

async fn blocks(container: &Container, blob: &str) -> Result<(usize, usize), CallError> {
    let (container_name, blob) = (container.name(), blob.to_owned());
    let request =
        proto::GetBlockListRequest { container: container_name, blob, ..Default::default() };
    let found = container.client().get_block_list(request).await?.into_inner();
    Ok((found.committed.len(), found.uncommitted.len()))
}

async fn a_container_is_open_as_far_as_its_level(world: &World) {
    use proto::PublicAccess::{Blob, Container, Unspecified};
    let owner = owner(world, "open");
    for (name, level) in [("private", Unspecified), ("blobs", Blob), ("listed", Container)] {
        let own = container(&owner, name, level).await;
        own.stage("a", "A", "staged").await.unwrap();
        own.stage("staged", "A", "staged").await.unwrap();
        let open = anyone(world, "open").existing_container(name);

        let has = |least: proto::PublicAccess| level as i32 >= least as i32;
        let read = open.read("a").await.map(|read| read.data);
        assert_eq!(read.map_err(|error| error.code).ok(), has(Blob).then(|| "public".into()));
        assert_eq!(own.get("a").await.unwrap().tag_count, 1);
        let found = open.get("a").await.map(|blob| blob.tag_count).ok();
        assert_eq!(found, has(Blob).then_some(0), "tags are not public");
        assert_eq!(blocks(&open, "a").await.ok(), has(Blob).then_some((0, 0)));
        assert_eq!(open.list("", "").await.is_ok(), has(Container));
        let plain = proto::ListBlobsRequest { container: name.to_owned(), ..Default::default() };
        for request in [
            proto::ListBlobsRequest { include_uncommitted: true, ..plain.clone() },
            proto::ListBlobsRequest { include_deleted: true, ..plain.clone() },
            proto::ListBlobsRequest { include_versions: true, ..plain },
        ] {
            let error = open.client().list_blobs(request).await.unwrap_err();
            assert_eq!(CallError::from(error).kind(), NONE);
        }
        let get = proto::GetContainerRequest { container: name.to_owned(), ..Default::default() };
        assert_eq!(open.client().get_container(get).await.is_ok(), has(Container));
        let absent = open.read("absent").await.unwrap_err();
        let not_found = (Code::NotFound, "BLOB_NOT_FOUND");
        let expected = if has(Blob) { not_found } else { NONE };
        assert_eq!(absent.kind(), expected, "{name}");
        assert_eq!(blocks(&open, "staged").await.unwrap_err().kind(), expected);

        assert_eq!(open.write("b", "x").await.unwrap_err().kind(), NONE);
        assert_eq!(open.delete("a").await.unwrap_err().kind(), NONE);
        assert_eq!(open.drop_container().await.unwrap_err().kind(), NONE);
    }
    let absent = anyone(world, "open").existing_container("absent").read("a").await.unwrap_err();
    assert_eq!(absent.kind(), NONE, "as a private container");

    let close = proto::SetContainerAccessPoliciesRequest {
        container: "listed".to_owned(),
        ..Default::default()
    };
    owner.blobs().set_container_access_policies(close).await.unwrap();
    let open = anyone(world, "open").existing_container("listed");
    assert_eq!(open.read("a").await.unwrap_err().kind(), NONE, "the level was replaced");
}

async fn an_account_that_does_not_allow_it_stays_closed(world: &World) {
    let owner = owner(world, "closed");
    container(&owner, "listed", proto::PublicAccess::Container).await;
    for account in ["closed", "absent"] {
        let open = anyone(world, account).existing_container("listed");
        assert_eq!(open.read("a").await.unwrap_err().kind(), NONE, "{account}");
    }
    let invalid =
        proto::Container { name: "other".to_owned(), public_access: 7, ..Default::default() };
    let request = proto::CreateContainerRequest { container: Some(invalid) };
    let error = CallError::from(owner.blobs().create_container(request).await.unwrap_err());
    assert_eq!(error.kind(), (Code::InvalidArgument, "INVALID_HEADER_VALUE"));
}

async fn nothing_but_blobs_is_open(world: &World) {
    let owner = owner(world, "open");
    let listed = container(&owner, "listed", proto::PublicAccess::Container).await;
    let open = anyone(world, "open");
    assert_eq!(open.list("", None, "").await.unwrap_err().kind(), NONE, "tables");
    let list = proto::ListContainersRequest::default();
    let error = CallError::from(open.blobs().list_containers(list).await.unwrap_err());
    assert_eq!(error.kind(), NONE);
    let tags = proto::SetBlobTagsRequest {
        container: listed.name(),
        blob: "a".to_owned(),
        tags: HashMap::new(),
        ..Default::default()
    };
    let error = CallError::from(open.blobs().set_blob_tags(tags).await.unwrap_err());
    assert_eq!(error.kind(), NONE);
    let find = proto::FindBlobsRequest {
        filter: "k = ''".to_owned(),
        container: listed.name(),
        ..Default::default()
    };
    let error = CallError::from(open.blobs().find_blobs(find).await.unwrap_err());
    assert_eq!(error.kind(), NONE);
    let policies = proto::GetContainerAccessPoliciesRequest { container: listed.name() };
    let error = open.blobs().get_container_access_policies(policies).await.unwrap_err();
    assert_eq!(CallError::from(error).kind(), NONE);
}

async fn a_previous_version_is_not_public(world: &World) {
    let owner = owner(world, "open");
    let settings = |is_versioning_enabled| proto::SetServicePropertiesRequest {
        data_protection: Some(proto::DataProtection {
            is_versioning_enabled: Some(is_versioning_enabled),
            ..Default::default()
        }),
        ..Default::default()
    };
    owner.blobs().set_service_properties(settings(true)).await.unwrap();
    let listed = container(&owner, "listed", proto::PublicAccess::Container).await;
    let first = listed.write("a", "old").await.unwrap();
    listed.write("a", "new").await.unwrap();
    let version_id = first.version_id;
    let of_version = proto::ReadBlobRequest { version_id, ..listed.reading("a") };
    assert_eq!(listed.read_with(of_version.clone()).await.unwrap().data, "old");

    let open = anyone(world, "open").existing_container("listed");
    assert_eq!(open.read("a").await.unwrap().data, "new");
    assert_eq!(open.read_with(of_version).await.unwrap_err().kind(), NONE);
    owner.blobs().set_service_properties(settings(false)).await.unwrap();
}
