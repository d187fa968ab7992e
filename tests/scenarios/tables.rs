//! Tables: create, get, list, delete, and the rules of their names.

mod absent;
mod listing;

use tonic::Code;
use trestle_model::time::{Clock as _, SystemClock};
use trestle_tests::{World, entity, scenario, string};

scenario!(
    a_created_table_is_described_and_listed,
    table_names_are_case_insensitive_and_case_preserving,
    table_name_length_is_limited,
    a_table_of_the_same_name_in_another_case_cannot_be_created,
);

const ABSENT: (Code, &str) = (Code::NotFound, "RESOURCE_NOT_FOUND");
async fn a_created_table_is_described_and_listed(world: &World) {
    let created = world.create("Orders1").await.unwrap();

    let described = world.describe("Orders1").await.unwrap();
    assert_eq!(described, created);
    assert_eq!(described.name, "Orders1");
    // The server reads the same clock.
    let (now, _) = SystemClock.now().to_unix();
    let age = now - described.create_time.unwrap().seconds;
    assert!((0..60).contains(&age), "created just now: {age}");
    let listed = world.list("", None, "").await.unwrap();
    assert_eq!(listed, (vec!["Orders1".to_owned()], String::new()));
    assert_eq!(world.describe("other").await.unwrap_err().kind(), ABSENT);
    assert_eq!(world.drop_table("other").await.unwrap_err().kind(), ABSENT);
}

async fn table_names_are_case_insensitive_and_case_preserving(world: &World) {
    world.create("MixedCase").await.unwrap();
    let upper = world.existing_table("MIXEDCASE");
    let lower = world.existing_table("mixedcase");

    upper.insert(entity("p", "r", [string("a", "1")])).await.unwrap();

    assert_eq!(lower.get("p", "r").await.unwrap().properties.len(), 1);
    assert_eq!(lower.rows("").await.unwrap(), ["r"]);
    assert!(upper.explain("", &[], true).await.is_ok());
    assert_eq!(lower.stream(Default::default()).await.unwrap().len(), 1);
    let imported = upper.import(None, vec![vec![entity("p", "s", [])]]).await;
    assert_eq!(imported.unwrap(), []);
    upper.set_policies(Vec::new()).await.unwrap();
    assert_eq!(lower.policies().await.unwrap(), []);
    lower.delete("p", "r", None).await.unwrap();
    assert_eq!(world.describe("mIXEDcASE").await.unwrap().name, "MixedCase");
    world.drop_table("mixedCASE").await.unwrap();
    assert_eq!(world.describe("MixedCase").await.unwrap_err().kind(), ABSENT);
}

async fn table_name_length_is_limited(world: &World) {
    let longest = "a".repeat(63);
    for name in ["abc", "A1z", &longest] {
        assert_eq!(world.create(name).await.unwrap().name, name);
    }

    let too_long = "a".repeat(64);
    for (name, reason) in [
        ("ab", "OUT_OF_RANGE_INPUT"),
        (&too_long, "OUT_OF_RANGE_INPUT"),
        ("", "PROPERTIES_NEED_VALUE"),
        ("1abc", "INVALID_RESOURCE_NAME"),
        ("a-bc", "INVALID_RESOURCE_NAME"),
        ("a_bc", "INVALID_RESOURCE_NAME"),
        ("tablé", "INVALID_RESOURCE_NAME"),
        ("tables", "INVALID_RESOURCE_NAME"),
        ("TABLES", "INVALID_RESOURCE_NAME"),
        ("$MetricsHour", "INVALID_RESOURCE_NAME"),
    ] {
        let expected = (Code::InvalidArgument, reason);
        let table = world.existing_table(name);
        let create = world.create(name).await.unwrap_err();
        assert_eq!(create.kind(), expected, "create {name}");
        assert_eq!(create.fields, ["table.name"]);
        // The name is checked by every operation, not only by the one that creates.
        let read = table.get("p", "r").await.unwrap_err();
        assert_eq!(read.kind(), expected, "get {name}");
        let query = table.rows("").await.unwrap_err();
        assert_eq!(query.kind(), expected, "query {name}");
        let policies = table.policies().await.unwrap_err();
        assert_eq!(policies.kind(), expected, "policies {name}");
    }
}

async fn a_table_of_the_same_name_in_another_case_cannot_be_created(world: &World) {
    world.create("Things").await.unwrap();

    for name in ["Things", "things", "THINGS"] {
        let again = world.create(name).await.unwrap_err();
        assert_eq!(again.kind(), (Code::AlreadyExists, "TABLE_ALREADY_EXISTS"));
    }
    assert_eq!(world.list("", None, "").await.unwrap().0, ["Things"]);
}
