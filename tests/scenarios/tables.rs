//! Tables: create, get, list, delete, and the rules of their names.

use tonic::Code;
use trestle_service::clock::{Clock as _, SystemClock};
use trestle_tests::{World, entity, scenario, string};

scenario!(
    a_created_table_is_described_and_listed,
    table_names_are_case_insensitive_and_case_preserving,
    table_name_length_is_limited,
    a_table_of_the_same_name_in_another_case_cannot_be_created,
    tables_are_listed_by_lower_cased_name_and_filtered_by_prefix,
    a_listing_continues_from_page_to_page,
    rejects_a_list_token_of_another_filter,
    recreated_table_is_empty,
    operations_on_a_missing_table_are_not_found,
);

const ABSENT: (Code, &str) = (Code::NotFound, "RESOURCE_NOT_FOUND");
const TABLE_ABSENT: (Code, &str) = (Code::NotFound, "TABLE_NOT_FOUND");

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

async fn tables_are_listed_by_lower_cased_name_and_filtered_by_prefix(world: &World) {
    for name in ["logB", "Loga", "zebra", "LOG", "Alpha", "loh", "logC9"] {
        world.create(name).await.unwrap();
    }
    let names = async |filter: &str| world.list(filter, None, "").await.unwrap().0;

    let all = ["Alpha", "LOG", "Loga", "logB", "logC9", "loh", "zebra"];
    assert_eq!(names("").await, all);
    let prefix = "TableName ge 'LOG' and TableName lt 'log{'";
    assert_eq!(names(prefix).await, ["LOG", "Loga", "logB", "logC9"]);
    assert_eq!(names("TableName eq 'LOGA'").await, ["Loga"]);
    assert_eq!(names("not (TableName lt 'loh')").await, ["loh", "zebra"]);
    let either = "TableName eq 'zebra' or TableName eq 'alpha'";
    assert_eq!(names(either).await, ["Alpha", "zebra"]);
    assert_eq!(names("TableName gt 'a' and TableName lt 'a'").await.len(), 0);
    let rejected = world.list("RowKey eq 'a'", None, "").await.unwrap_err();
    assert_eq!(rejected.kind(), (Code::InvalidArgument, "INVALID_INPUT"));
    assert_eq!(rejected.fields, ["filter"]);
}

async fn a_listing_continues_from_page_to_page(world: &World) {
    for number in 0..7 {
        world.create(&format!("t{number:02}")).await.unwrap();
    }

    let (first, token) = world.list("", Some(3), "").await.unwrap();
    assert_eq!(first, ["t00", "t01", "t02"]);
    // The next page starts at a key, whose table may be deleted by then.
    world.drop_table("t03").await.unwrap();
    let (second, token) = world.list("", Some(3), &token).await.unwrap();
    assert_eq!(second, ["t04", "t05", "t06"]);
    assert_eq!(token, "", "nothing is left");

    let nothing = world.list("", Some(0), "").await.unwrap();
    assert_eq!(nothing, (Vec::new(), String::new()));
    let all = world.list("", Some(i32::MAX), "").await.unwrap();
    assert_eq!((all.0.len(), all.1.as_str()), (6, ""));
    let negative = world.list("", Some(-1), "").await.unwrap_err();
    assert_eq!(negative.kind(), (Code::InvalidArgument, "INVALID_INPUT"));
    assert_eq!(negative.fields, ["page_size"]);
}

async fn rejects_a_list_token_of_another_filter(world: &World) {
    for name in ["abc", "abd", "abe"] {
        world.create(name).await.unwrap();
    }
    let (_, token) = world.list("", Some(1), "").await.unwrap();
    let table = world.existing_table("abc");
    table.insert(entity("p", "1", [])).await.unwrap();
    table.insert(entity("p", "2", [])).await.unwrap();
    let request =
        trestle_proto::table::v1::QueryEntitiesRequest { page_size: Some(1), ..Default::default() };
    let of_entities = table.page(request).await.unwrap().1.next_page_token;

    for (filter, token) in [
        ("TableName gt 'a'", token.as_str()),
        ("", "nonsense"),
        ("", &of_entities),
        ("", &token[..token.len() - 1]),
    ] {
        let rejected = world.list(filter, None, token).await.unwrap_err();
        let expected = (Code::InvalidArgument, "INVALID_QUERY_PARAMETER_VALUE");
        assert_eq!(rejected.kind(), expected, "{token}");
        assert_eq!(rejected.fields, ["page_token"]);
    }
}

async fn recreated_table_is_empty(world: &World) {
    let table = world.table("again").await;
    table.insert(entity("p", "r", [])).await.unwrap();
    let policy =
        trestle_proto::service::v1::AccessPolicy { id: "reader".to_owned(), ..Default::default() };
    table.set_policies(vec![policy]).await.unwrap();

    world.drop_table("again").await.unwrap();
    assert_eq!(world.list("", None, "").await.unwrap().0.len(), 0);
    let successor = world.table("AGAIN").await;

    assert_eq!(successor.rows("").await.unwrap().len(), 0);
    assert_eq!(successor.get("p", "r").await.unwrap_err().kind(), ABSENT);
    assert_eq!(successor.policies().await.unwrap(), []);
    assert_eq!(world.describe("again").await.unwrap().name, "AGAIN");
    assert!(successor.insert(entity("p", "r", [])).await.is_ok());
}

async fn operations_on_a_missing_table_are_not_found(world: &World) {
    use trestle_proto::table::v1::WriteMode::{Merge, Replace};

    let table = world.table("deleted").await;
    table.insert(entity("p", "r", [])).await.unwrap();
    let etag = table.get("p", "r").await.unwrap().etag;
    world.drop_table("deleted").await.unwrap();
    let row = || entity("p", "r", []);

    let chunk = vec![vec![row()]];
    let batch = vec![trestle_tests::insert_op(row())];
    let errors = [
        table.insert(row()).await.err(),
        table.get("p", "r").await.err(),
        table.update(row(), Replace, None).await.err(),
        table.update(row(), Merge, Some(&etag)).await.err(),
        table.upsert(row(), Merge).await.err(),
        table.delete("p", "r", None).await.err(),
        table.delete("p", "r", Some(&etag)).await.err(),
        table.batch(batch).await.err(),
        table.rows("").await.err(),
        table.rows("PartitionKey eq 'a' and PartitionKey eq 'b'").await.err(),
        table.stream(Default::default()).await.err(),
        table.import(None, chunk).await.err(),
        table.explain("", &[], false).await.err(),
        table.policies().await.err(),
        table.set_policies(Vec::new()).await.err(),
    ];

    for (position, error) in errors.iter().enumerate() {
        let error = error.as_ref().expect("the table is deleted");
        assert_eq!(error.kind(), TABLE_ABSENT, "operation {position}");
    }
    assert_eq!(errors[7].as_ref().unwrap().index, Some(0));
}
