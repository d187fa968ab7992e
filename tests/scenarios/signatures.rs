//! SAS tokens, from the header to the authorization of the table service.

use http::HeaderName;
use prost_types::Timestamp;
use tonic::Code;
use trestle_identity::{caller::KeyRange, sas::Scope};
use trestle_proto::service::v1::AccessPolicy;
use trestle_proto::table::v1::{
    Entity, QueryEntitiesRequest, StreamEntitiesRequest, WriteMode, stored,
};
use trestle_tests::{
    Table, World, delete_op, entity, insert_op, int, key_of, over_account, scenario, terms,
    terms_by_policy, token, upsert_op,
};

scenario!(
    key_range_applies_to_reads_scans_writes_batches_and_imports,
    policy_is_created_used_changed_and_revoked,
    account_sas_grants_only_its_permissions,
    request_headers_do_not_widen_a_sas,
);

const FAILURE: (Code, &str) = (Code::PermissionDenied, "AUTHORIZATION_FAILURE");
const NO_PERMISSION: (Code, &str) = (Code::PermissionDenied, "AUTHORIZATION_PERMISSION_MISMATCH");
const NO_TYPE: (Code, &str) = (Code::PermissionDenied, "AUTHORIZATION_RESOURCE_TYPE_MISMATCH");
const NO_SERVICE: (Code, &str) = (Code::PermissionDenied, "AUTHORIZATION_SERVICE_MISMATCH");
const NOT_AUTHENTIC: (Code, &str) = (Code::Unauthenticated, "AUTHENTICATION_FAILED");

fn over_table(name: &str, range: &KeyRange) -> Scope {
    Scope::of_table(name, range)
}

/// From row U+10000 of partition b to row 1 of partition c.
fn middle() -> KeyRange {
    let some = |text: &str| Some(text.to_owned());
    KeyRange {
        start_partition_key: some("b"),
        start_row_key: some("\u{10000}"),
        end_partition_key: some("c"),
        end_row_key: some("1"),
    }
}

/// In UTF-16 order: U+FFFF follows U+10000.
const KEYS: [(&str, &str); 7] = [
    ("a", "1"),
    ("b", "1"),
    ("b", "\u{10000}"),
    ("b", "\u{FFFF}"),
    ("c", "1"),
    ("c", "2"),
    ("d", "1"),
];
const INSIDE: std::ops::Range<usize> = 2..5;

fn found(entities: &[Entity]) -> Vec<(&str, &str)> {
    entities.iter().map(key_of).collect()
}

/// The table `Ranges` with an entity for each key: for its owner, and for the holder of a SAS of
/// the middle.
async fn held(world: &World, permissions: &str) -> (Table, Table) {
    let owner = world.table("Ranges").await;
    let entities = KEYS.map(|(partition, row)| entity(partition, row, [int("n", 1)]));
    assert_eq!(owner.import(None, vec![entities.to_vec()]).await.unwrap(), []);
    let token = token(terms(over_table("rangeS", &middle()), permissions));
    (owner, world.signed(&token).existing_table("ranges"))
}

async fn key_range_applies_to_reads_scans_writes_batches_and_imports(world: &World) {
    let (owner, held) = held(world, "raud").await;

    for (position, (partition, row)) in KEYS.into_iter().enumerate() {
        let outcome = held.get(partition, row).await.map(drop).map_err(|error| error.code);
        let expected =
            if INSIDE.contains(&position) { Ok(()) } else { Err(Code::PermissionDenied) };
        assert_eq!(outcome, expected, "{partition} {row}");
        let changed = entity(partition, row, [int("n", 2)]);
        let outcome = held.upsert(changed, WriteMode::Replace).await.map(drop);
        assert_eq!(outcome.map_err(|error| error.code), expected, "{partition} {row}");
    }
    assert_eq!(found(&held.query("").await.unwrap()), KEYS[INSIDE]);
    assert_eq!(held.query("PartitionKey eq 'd'").await.unwrap(), []);
    let plan = held.explain("", &[], true).await.unwrap();
    assert_eq!(plan.start.unwrap().row_key.as_deref(), Some("\u{10000}"));
    assert_eq!(plan.cost.unwrap().scanned as usize, INSIDE.len());

    // Tokens of the owner, for a key before and one after the range.
    for (page_size, expected) in [(1, &KEYS[INSIDE]), (6, &[])] {
        let request = QueryEntitiesRequest { page_size: Some(page_size), ..Default::default() };
        let (_, page) = owner.page(request).await.unwrap();
        let resume_token = page.next_page_token;
        let request = StreamEntitiesRequest { resume_token, ..Default::default() };
        let messages = held.stream(request).await.unwrap();
        let rest = messages.iter().flat_map(|m| stored::decode_entities(&m.entities).unwrap());
        assert_eq!(found(&rest.collect::<Vec<_>>()), expected);
    }

    let new = |row: &str| entity("c", row, [int("n", 3)]);
    let operations = vec![insert_op(new("0")), delete_op("c", "2", None)];
    let rejected = held.batch(operations).await.unwrap_err();
    assert_eq!((rejected.kind(), rejected.index), (FAILURE, Some(1)));
    assert_eq!(owner.rows("PartitionKey eq 'c'").await.unwrap(), ["1", "2"]);
    held.batch(vec![insert_op(new("0")), upsert_op(new("1"), WriteMode::Merge)]).await.unwrap();

    let entities = vec![new("01"), new("3"), new("02")];
    let failures = held.import(None, vec![entities]).await.unwrap();
    assert_eq!(failures.len(), 1);
    assert_eq!((failures[0].0, failures[0].1.code), (1, i32::from(Code::PermissionDenied)));
    assert_eq!(owner.rows("PartitionKey eq 'c'").await.unwrap(), ["0", "01", "02", "1", "2"]);
    let elsewhere = world.table("elsewhere").await;
    let rejected = world.signed(&token(terms(over_table("ranges", &middle()), "raud")));
    let rejected = rejected.existing_table(&elsewhere.name()).query("").await.unwrap_err();
    assert_eq!(rejected.kind(), FAILURE);
}

async fn policy_is_created_used_changed_and_revoked(world: &World) {
    let owner = world.table("shared").await;
    owner.insert(entity("p", "r", [])).await.unwrap();
    let scope = over_table("shared", &KeyRange::default());
    let held = world.signed(&token(terms_by_policy(scope.clone(), "p")));
    let held = held.existing_table("shared");
    let at = |seconds| Some(Timestamp { seconds, nanos: 0 });
    let policy = |permissions: &str| AccessPolicy {
        id: "p".to_owned(),
        start_time: at(1_000_000_000),
        expiry_time: at(32_000_000_000),
        permissions: Some(permissions.to_owned()),
    };

    assert_eq!(held.get("p", "r").await.unwrap_err().kind(), NOT_AUTHENTIC, "not made yet");
    owner.set_policies(vec![policy("r")]).await.unwrap();
    held.get("p", "r").await.unwrap();
    let rejected = held.delete("p", "r", None).await.unwrap_err();
    assert_eq!(rejected.kind(), NO_PERMISSION);
    owner.set_policies(vec![policy("d")]).await.unwrap();
    held.delete("p", "r", None).await.unwrap();
    owner.set_policies(Vec::new()).await.unwrap();
    assert_eq!(held.get("p", "r").await.unwrap_err().kind(), NOT_AUTHENTIC, "revoked");

    // A field must not be set by both token and policy.
    let mut both = terms(scope, "r");
    both.policy = Some("p".to_owned());
    let both = world.signed(&token(both)).existing_table("shared");
    owner.set_policies(vec![policy("r")]).await.unwrap();
    assert_eq!(both.query("").await.unwrap_err().kind(), NOT_AUTHENTIC);
    let bare = AccessPolicy { id: "p".to_owned(), ..Default::default() };
    owner.set_policies(vec![bare]).await.unwrap();
    assert_eq!(both.query("").await.unwrap(), []);
}

async fn account_sas_grants_only_its_permissions(world: &World) {
    let holder = |services: &str, resource_types: &str, permissions: &str| {
        let scope = over_account(services, resource_types);
        world.signed(&token(terms(scope, permissions)))
    };
    let all = holder("t", "sco", "rwdlacu");
    let table = all.table("made").await;
    table.insert(entity("p", "r", [])).await.unwrap();
    assert_eq!(all.list("", None, "").await.unwrap().0, ["made"]);
    all.properties().await.unwrap();
    all.stats().await.unwrap();
    assert_eq!(table.policies().await.unwrap_err().kind(), FAILURE);
    assert_eq!(table.set_policies(Vec::new()).await.unwrap_err().kind(), FAILURE);

    let read = |world: World| async move { world.existing_table("made").get("p", "r").await };
    read(holder("bqtf", "o", "r")).await.unwrap();
    assert_eq!(read(holder("bqf", "o", "r")).await.unwrap_err().kind(), NO_SERVICE);
    assert_eq!(read(holder("t", "sc", "r")).await.unwrap_err().kind(), NO_TYPE);
    assert_eq!(read(holder("t", "o", "wdlacu")).await.unwrap_err().kind(), NO_PERMISSION);
    let adder = holder("t", "o", "a").existing_table("made");
    let rejected = adder.upsert(entity("p", "r", []), WriteMode::Merge).await.unwrap_err();
    assert_eq!(rejected.kind(), NO_PERMISSION, "an upsert needs two");
    assert_eq!(
        holder("t", "co", "rwla").drop_table("made").await.unwrap_err().kind(),
        NO_PERMISSION
    );
    holder("t", "c", "d").drop_table("made").await.unwrap();
}

async fn request_headers_do_not_widen_a_sas(world: &World) {
    world.table("mine").await;
    let token = token(terms(over_table("mine", &KeyRange::default()), "r"));
    let held = world.signed(&token);
    // An account grant with every permission, in the form of headers between processes.
    let forged = held.with_header(
        HeaderName::from_static("trestle-grant-bin"),
        "ChUKBGJxdGYSA3NjbxoIcndkbGFjdXA",
    );
    for caller in [&held, &forged] {
        assert_eq!(caller.existing_table("mine").query("").await.unwrap(), []);
        let inserted = caller.existing_table("mine").insert(entity("p", "r", [])).await;
        assert_eq!(inserted.unwrap_err().kind(), NO_PERMISSION);
        assert_eq!(caller.create("another").await.unwrap_err().kind(), FAILURE);
    }
}
