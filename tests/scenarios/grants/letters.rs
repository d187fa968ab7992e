//! Services, resource types and permissions, on every call.

use bytes::Bytes;
use prost::Message as _;
use tonic::Code;
use trestle_identity::caller::{AccountGrant, Authority, Letters};
use trestle_proto::service::v1::{AccessPolicy, ServiceProperties};
use trestle_proto::table::v1::WriteMode;
use trestle_tests::{
    CallError, Service, World, delete_op, entity, insert_op, service_scenario, update_op, upsert_op,
};

use super::{
    ENTITY_ABSENT, FAILURE, NO_PERMISSION, NO_SERVICE, NO_TYPE, TABLE_ABSENT, over_account,
    over_table,
};

service_scenario!(
    sas_of_another_service_is_denied_on_every_method,
    service_and_container_calls_need_resource_type_and_permission,
    entity_calls_need_their_permissions,
    table_sas_permits_its_table_only,
    denied_calls_do_not_reveal_whether_a_table_exists,
);

/// Every method of the contract: a new one without authorization fails this test.
async fn sas_of_another_service_is_denied_on_every_method(service: &Service) {
    let descriptors =
        prost_types::FileDescriptorSet::decode(trestle_proto::FILE_DESCRIPTOR_SET).unwrap();
    let services = descriptors.file.into_iter().flat_map(|file| file.service);
    let table = services.into_iter().find(|service| service.name() == "TableService").unwrap();
    assert!(table.method.len() >= 18, "{}", table.method.len());
    let elsewhere = service.granted(over_account("bqf", "sco", "rwdlacup"));
    let typeless = service.granted(Authority::Account(AccountGrant {
        services: Letters::parse("t").unwrap(),
        resource_types: Letters::default(),
        permissions: Letters::parse("rwdlacup").unwrap(),
    }));
    for method in table.method {
        let rejected = elsewhere.raw(method.name(), Bytes::new()).await.unwrap_err();
        assert_eq!(rejected.kind(), NO_SERVICE, "{}", method.name());
        let rejected = typeless.raw(method.name(), Bytes::new()).await.unwrap_err();
        assert_eq!(rejected.code, Code::PermissionDenied, "{}: {rejected:?}", method.name());
    }
}

/// The outcome of each call that is not on entities; on tables `existing` and `new`, which exists
/// or not.
async fn beside_entities(world: &World) -> Vec<(&'static str, Result<(), CallError>)> {
    let existing = world.existing_table("existing");
    vec![
        ("list", world.list("", None, "").await.map(drop)),
        ("describe", world.describe("existing").await.map(drop)),
        ("create", world.create("new").await.map(drop)),
        ("drop", world.drop_table("new").await),
        ("policies", existing.policies().await.map(drop)),
        ("set policies", existing.set_policies(vec![AccessPolicy::default()]).await),
        ("properties", world.properties().await.map(drop)),
        ("set properties", world.set_properties(ServiceProperties::default()).await),
        ("stats", world.stats().await.map(drop)),
    ]
}

async fn service_and_container_calls_need_resource_type_and_permission(service: &Service) {
    service.owner().create("existing").await.unwrap();
    for (resource_types, permissions, allowed) in [
        ("sco", "l", vec!["list", "describe"]),
        ("s", "l", vec!["list", "describe"]),
        ("c", "l", vec!["list", "describe"]),
        ("c", "c", vec!["create"]),
        ("c", "wd", vec!["create", "drop"]),
        ("s", "r", vec!["properties", "stats"]),
        ("s", "w", vec!["set properties"]),
        ("o", "rwdlacup", vec![]),
    ] {
        let world = service.granted(over_account("t", resource_types, permissions));
        for (call, outcome) in beside_entities(&world).await {
            let what = format!("{resource_types} {permissions} {call}: {outcome:?}");
            match outcome {
                Ok(()) => assert!(allowed.contains(&call), "{what}"),
                Err(error) if call.ends_with("policies") => {
                    assert_eq!(error.kind(), FAILURE, "{what}");
                }
                Err(error) => {
                    assert!(!allowed.contains(&call), "{what}");
                    assert!([NO_TYPE, NO_PERMISSION].contains(&error.kind()), "{what}");
                }
            }
        }
        // What the caller created and could not delete.
        drop(service.owner().drop_table("new").await);
    }
}

/// The outcome of each call on entities of the table `existing`.
async fn on_entities(world: &World) -> Vec<(&'static str, Result<(), CallError>)> {
    let table = world.existing_table("existing");
    let new = || entity("p", "new", []);
    let old = || entity("p", "old", []);
    let imported = table.import(None, vec![vec![entity("p", "imported", [])]]).await;
    let upserted = table.import(Some(WriteMode::Merge), vec![vec![old()]]).await;
    vec![
        ("get", table.get("p", "old").await.map(drop)),
        ("query", table.query("").await.map(drop)),
        ("stream", table.stream(Default::default()).await.map(drop)),
        ("explain", table.explain("", &[], false).await.map(drop)),
        ("insert", table.insert(new()).await.map(drop)),
        ("update", table.update(old(), WriteMode::Merge, None).await.map(drop)),
        ("upsert", table.upsert(old(), WriteMode::Replace).await.map(drop)),
        ("batch insert", table.batch(vec![insert_op(entity("p", "b", []))]).await.map(drop)),
        ("batch upsert", table.batch(vec![upsert_op(old(), WriteMode::Merge)]).await.map(drop)),
        (
            "batch update",
            table.batch(vec![update_op(old(), WriteMode::Merge, None)]).await.map(drop),
        ),
        ("batch delete", table.batch(vec![delete_op("p", "b", None)]).await.map(drop)),
        ("import", imported.map(drop)),
        ("import upserts", upserted.map(drop)),
        ("delete", table.delete("p", "old", None).await),
    ]
}

async fn entity_calls_need_their_permissions(service: &Service) {
    let owner = service.owner().table("existing").await;
    let needed = |call: &str| match call {
        "get" | "query" | "stream" | "explain" => "r",
        "insert" | "batch insert" | "import" => "a",
        "update" | "batch update" => "u",
        "upsert" | "batch upsert" | "import upserts" => "au",
        "delete" | "batch delete" => "d",
        other => panic!("{other}"),
    };
    for permissions in ["r", "a", "u", "d", "au", "rud", "rad", "raud"] {
        let granted = [over_account("t", "o", permissions), over_table("existing", permissions)];
        for authority in granted {
            owner.upsert(entity("p", "old", []), WriteMode::Replace).await.unwrap();
            for row in ["new", "imported"] {
                drop(owner.delete("p", row, None).await);
            }
            owner.upsert(entity("p", "b", []), WriteMode::Replace).await.unwrap();
            for (call, outcome) in on_entities(&service.granted(authority.clone())).await {
                let what = format!("{authority:?} {call}: {outcome:?}");
                let allowed = needed(call).chars().all(|letter| permissions.contains(letter));
                match outcome {
                    Err(error) if error.kind() == NO_PERMISSION => assert!(!allowed, "{what}"),
                    Err(error) => {
                        assert_eq!(call, "batch insert", "{what}");
                        assert_eq!(error.code, Code::AlreadyExists, "{what}");
                    }
                    Ok(()) => assert!(allowed, "{what}"),
                }
            }
        }
    }
    for (call, outcome) in on_entities(&service.granted(over_account("t", "sc", "raud"))).await {
        assert_eq!(outcome.unwrap_err().kind(), NO_TYPE, "{call}");
    }
}

async fn table_sas_permits_its_table_only(service: &Service) {
    service.owner().create("Mine").await.unwrap();
    service.owner().create("existing").await.unwrap();
    let world = service.granted(over_table("mine", "raud"));

    for (call, outcome) in beside_entities(&world).await {
        assert_eq!(outcome.unwrap_err().kind(), FAILURE, "{call}");
    }
    for (call, outcome) in on_entities(&world).await {
        assert_eq!(outcome.unwrap_err().kind(), FAILURE, "{call}");
    }
    for name in ["mine", "Mine", "MINE"] {
        let table = world.existing_table(name);
        table.upsert(entity("p", "r", []), WriteMode::Replace).await.unwrap();
        table.get("p", "r").await.unwrap();
    }
}

async fn denied_calls_do_not_reveal_whether_a_table_exists(service: &Service) {
    service.owner().create("there").await.unwrap();
    for name in ["there", "absent"] {
        let table = service.granted(over_table(name, "d")).existing_table(name);
        assert_eq!(table.get("p", "r").await.unwrap_err().kind(), NO_PERMISSION);
        assert_eq!(table.query("").await.unwrap_err().kind(), NO_PERMISSION);
        let rejected = table.batch(vec![insert_op(entity("p", "r", []))]).await.unwrap_err();
        assert_eq!((rejected.kind(), rejected.index), (NO_PERMISSION, Some(0)));
        let rejected = table.import(None, vec![vec![entity("p", "r", [])]]).await.unwrap_err();
        assert_eq!(rejected.kind(), NO_PERMISSION);
        let rejected = table.import(None, Vec::new()).await.unwrap_err();
        assert_eq!(rejected.kind(), NO_PERMISSION, "before an entity is sent");
        let other = service.granted(over_table("other", "raud")).existing_table(name);
        assert_eq!(other.get("p", "r").await.unwrap_err().kind(), FAILURE);
    }
    let delete = |name| {
        let table = service.granted(over_table(name, "d")).existing_table(name);
        async move { table.delete("p", "r", None).await.unwrap_err() }
    };
    assert_eq!(delete("there").await.kind(), ENTITY_ABSENT);
    assert_eq!(delete("absent").await.kind(), TABLE_ABSENT);
}
