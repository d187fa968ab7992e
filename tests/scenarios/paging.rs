//! Pages: where they end, and where the next one starts.

mod limits;
mod tokens;

use tonic::Code;
use trestle_proto::table::v1::{Entity, QueryEntitiesRequest, value::Kind};
use trestle_tests::{Table, World, entity, entity_of, insert_op, int, prop, scenario};

scenario!(empty_page_has_no_token, filter_with_few_matches_terminates,);

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

async fn empty_page_has_no_token(world: &World) {
    let table = world.table("zero").await;
    fill(&table, 3).await;
    let (_, token) = page(&table, "", 1, "").await;

    assert_eq!(page(&table, "", 0, "").await, (Vec::new(), String::new()));
    assert_eq!(page(&table, "", 0, &token).await, (Vec::new(), String::new()));
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
