//! Pages: where they end, and where the next one starts.

use tonic::Code;
use trestle_proto::table::v1::{Entity, QueryEntitiesRequest, value::Kind};
use trestle_tests::{Table, World, entity, entity_of, insert_op, int, prop, scenario};

scenario!(
    page_ends_at_the_requested_size,
    a_page_holds_at_most_a_thousand_entities,
    page_ends_at_its_size_limit,
    empty_page_has_no_token,
    next_page_starts_after_a_deleted_entity,
    rejects_a_page_token_of_another_table_or_filter,
    rejects_a_corrupted_page_token,
    filter_with_few_matches_terminates,
    page_tokens_work_with_keys_of_any_characters,
);

/// One page; the row keys in it, and the token of the next.
async fn page(table: &Table, filter: &str, size: i32, token: &str) -> (Vec<String>, String) {
    let (entities, response) = table.page(request(filter, size, token)).await.unwrap();
    let rows = entities.into_iter().map(|entity| entity.row_key);
    (rows.collect(), response.next_page_token)
}

fn request(filter: &str, size: i32, token: &str) -> QueryEntitiesRequest {
    QueryEntitiesRequest {
        filter: filter.to_owned(),
        page_size: Some(size),
        page_token: token.to_owned(),
        ..Default::default()
    }
}

async fn fill(table: &Table, count: usize) {
    let row = |n: usize| entity("p", &format!("{n:05}"), [int("n", (n % 100) as i32)]);
    let all: Vec<Entity> = (0..count).map(row).collect();
    for chunk in all.chunks(100) {
        let inserts = chunk.iter().cloned().map(insert_op).collect();
        table.batch(inserts).await.unwrap();
    }
}

async fn page_ends_at_the_requested_size(world: &World) {
    let table = world.table("sized").await;
    fill(&table, 10).await;

    let (first, token) = page(&table, "", 4, "").await;
    assert_eq!(first, ["00000", "00001", "00002", "00003"]);
    let (second, token) = page(&table, "", 4, &token).await;
    assert_eq!(second, ["00004", "00005", "00006", "00007"]);
    let (third, token) = page(&table, "", 4, &token).await;
    assert_eq!((third.len(), token.as_str()), (2, ""));

    let (whole, token) = page(&table, "", 10, "").await;
    assert_eq!((whole.len(), token.as_str()), (10, ""), "nothing is left");
    let odd = "n ge 5 and n lt 8";
    let (first, token) = page(&table, odd, 2, "").await;
    assert_eq!(first, ["00005", "00006"]);
    let (second, token) = page(&table, odd, 2, &token).await;
    assert_eq!((second, token.as_str()), (vec!["00007".to_owned()], ""));
    // The token is not bound to the page size.
    let (_, token) = page(&table, "", 1, "").await;
    assert_eq!(page(&table, "", 1000, &token).await.0.len(), 9);
}

async fn a_page_holds_at_most_a_thousand_entities(world: &World) {
    let table = world.table("thousand").await;
    fill(&table, 1001).await;

    for size in [None, Some(1000), Some(1001), Some(i32::MAX)] {
        let request = QueryEntitiesRequest { page_size: size, ..Default::default() };
        let (entities, response) = table.page(request).await.unwrap();
        assert_eq!(entities.len(), 1000, "{size:?}");
        let (rest, end) = page(&table, "", 1000, &response.next_page_token).await;
        assert_eq!((rest, end.as_str()), (vec!["01000".to_owned()], ""));
    }
    let negative = table.page(request("", -1, "")).await.unwrap_err();
    assert_eq!(negative.kind(), (Code::InvalidArgument, "INVALID_INPUT"));
    assert_eq!(negative.fields, ["page_size"]);
}

async fn page_ends_at_its_size_limit(world: &World) {
    let table = world.table("large").await;
    let part = |n: usize| {
        let bytes = vec![0; 65_536].into();
        prop(&format!("b{n}"), Kind::BinaryValue(bytes))
    };
    for row in 0..8 {
        let large = entity_of("p", &row.to_string(), (0..15).map(part).collect());
        table.insert(large).await.unwrap();
    }

    for filter in ["", "RowKey ge '0' and not (b0 eq X'00')"] {
        let (mut token, mut rows, mut pages) = (String::new(), Vec::new(), 0);
        loop {
            let (entities, response) = table.page(request(filter, 1000, &token)).await.unwrap();
            let bytes: usize = entities.iter().map(prost::Message::encoded_len).sum();
            assert!(bytes <= 3_670_016, "page of {bytes} bytes");
            rows.extend(entities.into_iter().map(|entity| entity.row_key));
            pages += 1;
            token = response.next_page_token;
            if token.is_empty() {
                break;
            }
        }
        assert_eq!(rows.concat(), "01234567");
        assert_eq!(pages, 3, "three entities fit into a page");
    }
}

async fn empty_page_has_no_token(world: &World) {
    let table = world.table("zero").await;
    fill(&table, 3).await;
    let (_, token) = page(&table, "", 1, "").await;

    assert_eq!(page(&table, "", 0, "").await, (Vec::new(), String::new()));
    assert_eq!(page(&table, "", 0, &token).await, (Vec::new(), String::new()));
}

async fn next_page_starts_after_a_deleted_entity(world: &World) {
    let table = world.table("deleted").await;
    fill(&table, 6).await;
    let (_, token) = page(&table, "", 2, "").await;

    table.delete("p", "00002", None).await.unwrap();
    assert_eq!(page(&table, "", 2, &token).await.0, ["00003", "00004"]);
    table.insert(entity("p", "00002x", [])).await.unwrap();
    assert_eq!(page(&table, "", 2, &token).await.0, ["00002x", "00003"]);
    for row in ["00002x", "00003", "00004", "00005"] {
        table.delete("p", row, None).await.unwrap();
    }
    assert_eq!(page(&table, "", 2, &token).await, (Vec::new(), String::new()));
}

async fn rejected(table: &Table, filter: &str, token: &str) {
    let error = table.page(request(filter, 10, token)).await.unwrap_err();
    let expected = (Code::InvalidArgument, "INVALID_QUERY_PARAMETER_VALUE");
    assert_eq!(error.kind(), expected, "{token}");
    assert_eq!(error.fields, ["page_token"]);
}

async fn rejects_a_page_token_of_another_table_or_filter(world: &World) {
    let table = world.table("tokens").await;
    let other = world.table("others").await;
    fill(&table, 3).await;
    fill(&other, 3).await;
    let (_, token) = page(&table, "n ge 0", 1, "").await;
    assert_eq!(page(&table, "n ge 0", 9, &token).await.0.len(), 2);

    rejected(&table, "n ge 1", &token).await;
    rejected(&table, "", &token).await;
    rejected(&other, "n ge 0", &token).await;
    world.drop_table("tokens").await.unwrap();
    let successor = world.table("tokens").await;
    fill(&successor, 3).await;
    rejected(&successor, "n ge 0", &token).await;
}

async fn rejects_a_corrupted_page_token(world: &World) {
    let table = world.table("damaged").await;
    fill(&table, 3).await;
    let (_, token) = page(&table, "", 1, "").await;

    let middle = token.len() / 2;
    let changed = if token[middle..].starts_with('A') { "B" } else { "A" };
    let mut flipped = token.clone();
    flipped.replace_range(middle..=middle, changed);
    rejected(&table, "", &flipped).await;
    rejected(&table, "", &token[1..]).await;
    rejected(&table, "", &token[..token.len() - 1]).await;
    rejected(&table, "", &format!("{token}A")).await;
    rejected(&table, "", "1!16!cGs4MDEwMTZlOA--").await;
    rejected(&table, "", "é").await;
    rejected(&table, "", &"A".repeat(16_385)).await;
}

async fn filter_with_few_matches_terminates(world: &World) {
    let table = world.table("sparse").await;
    fill(&table, 2500).await;

    let (rows, token) = page(&table, "RowKey eq '02400'", 10, "").await;
    assert_eq!((rows, token.as_str()), (vec!["02400".to_owned()], ""));
    let (rows, token) = page(&table, "n eq 1000", 10, "").await;
    assert_eq!((rows.len(), token.as_str()), (0, ""));
    assert_eq!(table.rows("n eq 7").await.unwrap().len(), 25);
}

async fn page_tokens_work_with_keys_of_any_characters(world: &World) {
    let table = world.table("anykeys").await;
    let keys = ["", "'", "%", "+", "\u{10FFFF}", "\u{E000}", "\u{FFFF}", "\u{A0}"];
    for partition in keys {
        for row in keys {
            table.insert(entity(partition, row, [])).await.unwrap();
        }
    }

    let (mut token, mut received) = (String::new(), Vec::new());
    loop {
        let (entities, response) = table.page(request("", 1, &token)).await.unwrap();
        received.extend(entities.into_iter().map(|e| (e.partition_key, e.row_key)));
        token = response.next_page_token;
        if token.is_empty() {
            break;
        }
        assert!(token.is_ascii());
    }
    let all = table.query("").await.unwrap();
    let all: Vec<_> = all.into_iter().map(|e| (e.partition_key, e.row_key)).collect();
    assert_eq!(all.len(), 64);
    assert_eq!(received, all);
}
