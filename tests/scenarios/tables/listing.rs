//! Listings of tables.

use super::*;

scenario!(
    tables_are_listed_by_lower_cased_name_and_filtered_by_prefix,
    a_listing_continues_from_page_to_page,
    rejects_a_list_token_of_another_filter,
);

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
