//! Containers and the settings of the service.

use tonic::Code;
use trestle_proto::blob::v1 as proto;
use trestle_proto::service::v1::{AccessPolicy, Durability, Logging, ServiceProperties};
use trestle_tests::{World, blob_scenario};

blob_scenario!(
    a_container_is_created_read_changed_listed_and_deleted,
    operations_on_a_missing_container_are_not_found,
    rejects_names_and_metadata_that_azure_rejects,
    container_access_policies_round_trip,
    blob_service_properties_and_stats_are_served,
    a_deleted_container_is_restored,
    settings_of_rest_round_trip,
);

const NOT_FOUND: (Code, &str) = (Code::NotFound, "CONTAINER_NOT_FOUND");

fn pairs(metadata: &[(&str, &str)]) -> std::collections::HashMap<String, String> {
    metadata.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

async fn get(world: &World, name: &str) -> proto::Container {
    let request = proto::GetContainerRequest { container: name.to_owned(), ..Default::default() };
    world.blobs().get_container(request).await.unwrap().into_inner().container.unwrap()
}

async fn a_container_is_created_read_changed_listed_and_deleted(world: &World) {
    for name in ["logs", "images", "$web"] {
        world.container(name).await;
    }
    let created = get(world, "logs").await;
    assert!(created.etag.starts_with("\"0x") && created.create_time == created.last_modified);

    let again = proto::Container { name: "logs".to_owned(), ..Default::default() };
    let again = proto::CreateContainerRequest { container: Some(again) };
    let error =
        trestle_tests::CallError::from(world.blobs().create_container(again).await.unwrap_err());
    assert_eq!(error.kind(), (Code::AlreadyExists, "CONTAINER_ALREADY_EXISTS"));

    let update = proto::UpdateContainerRequest {
        container: "logs".to_owned(),
        metadata: pairs(&[("Owner", "me")]),
        conditions: None,
    };
    world.blobs().update_container(update).await.unwrap();
    let updated = get(world, "logs").await;
    assert_eq!(updated.metadata, pairs(&[("Owner", "me")]));
    assert_ne!(updated.etag, created.etag);

    let (mut names, mut page_token) = (Vec::new(), String::new());
    loop {
        let request =
            proto::ListContainersRequest { page_size: Some(1), page_token, ..Default::default() };
        let page = world.blobs().list_containers(request).await.unwrap().into_inner();
        names.extend(page.containers.into_iter().map(|container| container.name));
        page_token = page.next_page_token;
        if page_token.is_empty() {
            break;
        }
    }
    assert_eq!(names, ["$web", "images", "logs"]);

    let logs = world.existing_container("logs");
    logs.write("a", "x").await.unwrap();
    logs.drop_container().await.unwrap();
    assert_eq!(logs.read("a").await.unwrap_err().kind(), NOT_FOUND);
    let logs = world.container("logs").await;
    assert_eq!(logs.list("", "").await.unwrap(), [""; 0], "the new one is empty");
}

async fn operations_on_a_missing_container_are_not_found(world: &World) {
    let absent = world.existing_container("absent");

    assert_eq!(absent.write("a", "x").await.unwrap_err().kind(), NOT_FOUND);
    assert_eq!(absent.read("a").await.unwrap_err().kind(), NOT_FOUND);
    assert_eq!(absent.get("a").await.unwrap_err().kind(), NOT_FOUND);
    assert_eq!(absent.delete("a").await.unwrap_err().kind(), NOT_FOUND);
    assert_eq!(absent.list("", "").await.unwrap_err().kind(), NOT_FOUND);
    assert_eq!(absent.stage("a", "1", "x").await.unwrap_err().kind(), NOT_FOUND);
    assert_eq!(absent.commit("a", &[]).await.unwrap_err().kind(), NOT_FOUND);
    assert_eq!(absent.drop_container().await.unwrap_err().kind(), NOT_FOUND);
}

async fn rejects_names_and_metadata_that_azure_rejects(world: &World) {
    let create = |name: &str, metadata: &[(&str, &str)]| {
        let (name, metadata) = (name.to_owned(), pairs(metadata));
        let container = Some(proto::Container { name, metadata, ..Default::default() });
        let mut client = world.blobs();
        async move {
            let request = proto::CreateContainerRequest { container };
            let error = client.create_container(request).await.unwrap_err();
            trestle_tests::CallError::from(error).reason
        }
    };
    let long = "v".repeat(8192);
    for (name, metadata, reason) in [
        ("Logs", &[][..], "INVALID_RESOURCE_NAME"),
        ("lo", &[], "OUT_OF_RANGE_INPUT"),
        ("$other", &[], "INVALID_RESOURCE_NAME"),
        ("", &[], "PROPERTIES_NEED_VALUE"),
        ("logs", &[("", "x")], "EMPTY_METADATA_KEY"),
        ("logs", &[("1a", "x")], "INVALID_METADATA"),
        ("logs", &[("a", "x"), ("A", "y")], "INVALID_METADATA"),
        ("logs", &[("a", &long)], "METADATA_TOO_LARGE"),
    ] {
        assert_eq!(create(name, metadata).await, reason, "{name}");
    }
    let logs = world.container("logs").await;
    for name in [String::new(), "a".repeat(1025), vec!["a"; 255].join("/")] {
        let error = logs.write(&name, "x").await.unwrap_err();
        assert_eq!(error.kind(), (Code::InvalidArgument, "INVALID_URI"));
    }
}

async fn container_access_policies_round_trip(world: &World) {
    let logs = world.container("logs").await;
    let policy = |id: &str, permissions: &str| AccessPolicy {
        id: id.to_owned(),
        permissions: Some(permissions.to_owned()),
        ..Default::default()
    };
    let set = |policies: Vec<AccessPolicy>| {
        let (container, conditions) = (logs.name(), None);
        let request = proto::SetContainerAccessPoliciesRequest {
            container,
            policies,
            conditions,
            ..Default::default()
        };
        let mut client = logs.client();
        async move { client.set_container_access_policies(request).await }
    };
    let policies = vec![policy("b", "rl"), policy("a", "racwd"), policy("c", "racwdxyltfmeopi")];

    set(policies.clone()).await.unwrap();
    let request = proto::GetContainerAccessPoliciesRequest { container: logs.name() };
    let found = logs.client().get_container_access_policies(request).await.unwrap().into_inner();
    assert_eq!(found.policies, policies);

    for wrong in [
        vec![policy("a", "z")],
        vec![policy("a", "lr")],
        vec![policy("a", "r"); 2],
        vec![policy("a", "r"); 6],
    ] {
        let error = trestle_tests::CallError::from(set(wrong).await.unwrap_err());
        assert_eq!(error.kind(), (Code::InvalidArgument, "INVALID_ACCESS_POLICY"));
    }
}

async fn blob_service_properties_and_stats_are_served(world: &World) {
    let logging = Logging { version: "1.0".to_owned(), read: true, ..Default::default() };
    let change = ServiceProperties { logging: Some(logging.clone()), ..Default::default() };
    let request =
        proto::SetServicePropertiesRequest { properties: Some(change), ..Default::default() };
    world.blobs().set_service_properties(request).await.unwrap();

    let request = proto::GetServicePropertiesRequest {};
    let found = world.blobs().get_service_properties(request).await.unwrap().into_inner();
    assert_eq!(found.properties.unwrap().logging, Some(logging));
    let queue = world.queue_properties().await;
    assert!(queue.is_err() || !queue.unwrap().logging.unwrap().read, "each service has its own");

    let request = proto::GetServiceStatsRequest {};
    let stats = world.blobs().get_service_stats(request).await.unwrap().into_inner();
    assert_eq!((stats.durability(), stats.engine.as_str()), (Durability::Always, "fjall"));
    assert!(["file", "memory"].contains(&stats.object_store.as_str()));
}

async fn a_deleted_container_is_restored(world: &World) {
    let keep = async |enabled, days| {
        let policy = proto::DeleteRetentionPolicy { enabled, days };
        let data_protection = Some(proto::DataProtection {
            container_delete_retention_policy: Some(policy),
            ..Default::default()
        });
        let request = proto::SetServicePropertiesRequest { data_protection, ..Default::default() };
        world.blobs().set_service_properties(request).await
    };
    let list = async |include_deleted| {
        let request = proto::ListContainersRequest {
            prefix: "restored".to_owned(),
            include_deleted,
            include_metadata: true,
            ..Default::default()
        };
        world.blobs().list_containers(request).await.unwrap().into_inner().containers
    };
    let undelete = async |version: &str| {
        let (container, version) = ("restored".to_owned(), version.to_owned());
        let request = proto::UndeleteContainerRequest { container, version };
        let restored = world.blobs().undelete_container(request).await;
        restored.map(tonic::Response::into_inner).map_err(trestle_tests::CallError::from)
    };
    keep(true, 7).await.unwrap();
    let container = world.container("restored").await;
    container.write("a", "kept").await.unwrap();
    let created = get(world, "restored").await;
    container.drop_container().await.unwrap();

    assert_eq!(container.read("a").await.unwrap_err().kind(), NOT_FOUND);
    assert_eq!(list(false).await.len(), 0);
    let deleted = list(true).await.remove(0);
    assert!(deleted.delete_time.is_some() && deleted.lease.is_none(), "{deleted:?}");
    assert!(deleted.remaining_retention_days >= 6);
    assert_eq!(undelete("x").await.unwrap_err().code, Code::InvalidArgument);
    assert_eq!(undelete("0000000000000000").await.unwrap_err().kind(), NOT_FOUND);
    world.container("restored").await;
    let exists = undelete(&deleted.version).await.unwrap_err();
    assert_eq!(exists.kind(), (Code::AlreadyExists, "CONTAINER_ALREADY_EXISTS"));
    container.drop_container().await.unwrap();

    let restored = undelete(&deleted.version).await.unwrap().container.unwrap();
    assert_eq!(restored, created);
    assert_eq!(container.read("a").await.unwrap().data, "kept");
    let error = keep(true, 366).await.unwrap_err();
    assert_eq!(trestle_tests::CallError::from(error).reason, "INVALID_SERVICE_PROPERTY");
    keep(false, 0).await.unwrap();
}

async fn settings_of_rest_round_trip(world: &World) {
    let get = async || {
        let request = proto::GetServicePropertiesRequest {};
        let found = world.blobs().get_service_properties(request).await.unwrap().into_inner();
        (found.default_service_version, found.static_website.unwrap())
    };
    let set = async |version: Option<&str>, static_website: Option<proto::StaticWebsite>| {
        let request = proto::SetServicePropertiesRequest {
            default_service_version: version.map(str::to_owned),
            static_website,
            ..Default::default()
        };
        let set = world.blobs().set_service_properties(request).await;
        set.map(drop).map_err(trestle_tests::CallError::from)
    };
    assert_eq!(get().await, (String::new(), proto::StaticWebsite::default()));
    let website = proto::StaticWebsite {
        enabled: true,
        index_document: "index.html".to_owned(),
        error_document_404_path: "errors/404.html".to_owned(),
        default_index_document_path: String::new(),
    };
    set(None, Some(website.clone())).await.unwrap();
    set(Some("2021-12-02"), None).await.unwrap();
    assert_eq!(get().await, ("2021-12-02".to_owned(), website.clone()), "absent parts remain");
    set(Some(""), Some(proto::StaticWebsite::default())).await.unwrap();
    assert_eq!(get().await, (String::new(), proto::StaticWebsite::default()));

    for version in ["now", "2021-12-2", "2021/12/02", "2021-13-02", "2021-02-30"] {
        assert_eq!(set(Some(version), None).await.unwrap_err().reason, "INVALID_SERVICE_PROPERTY");
    }
    let changed = |change: fn(&mut proto::StaticWebsite)| {
        let mut website = website.clone();
        change(&mut website);
        Some(website)
    };
    for invalid in [
        changed(|it| it.index_document = "a/b".to_owned()),
        changed(|it| it.index_document = "a".repeat(256)),
        changed(|it| it.index_document = "a\0".to_owned()),
        changed(|it| it.error_document_404_path = "a\u{fffe}".to_owned()),
        changed(|it| it.error_document_404_path = "/404".to_owned()),
        changed(|it| it.default_index_document_path = "app.html".to_owned()),
    ] {
        let error = set(None, invalid.clone()).await.unwrap_err();
        assert_eq!(error.reason, "INVALID_SERVICE_PROPERTY", "{invalid:?}");
    }
    assert_eq!(set(None, None).await.unwrap_err().code, Code::InvalidArgument);

    // A request of which one part is rejected changes nothing.
    let logging = Logging { version: "1.0".to_owned(), delete: true, ..Default::default() };
    let policy = proto::DeleteRetentionPolicy { enabled: true, days: 0 };
    let request = proto::SetServicePropertiesRequest {
        properties: Some(ServiceProperties { logging: Some(logging), ..Default::default() }),
        data_protection: Some(proto::DataProtection {
            delete_retention_policy: Some(policy),
            ..Default::default()
        }),
        ..Default::default()
    };
    let error = world.blobs().set_service_properties(request).await.unwrap_err();
    assert_eq!(trestle_tests::CallError::from(error).reason, "INVALID_SERVICE_PROPERTY");
    let found = world.blobs().get_service_properties(proto::GetServicePropertiesRequest {}).await;
    assert!(!found.unwrap().into_inner().properties.unwrap().logging.unwrap().delete);
}
