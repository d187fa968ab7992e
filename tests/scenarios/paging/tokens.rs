//! Page tokens.

use super::*;

scenario!(
    next_page_starts_after_a_deleted_entity,
    rejects_a_page_token_of_another_table_or_filter,
    rejects_a_corrupted_page_token,
    page_tokens_work_with_keys_of_any_characters,
);

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
