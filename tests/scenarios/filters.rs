//! Random filters over random entities return what a naive evaluation returns.
//!
//! In process only: the transport does not change results.

mod evaluation;
mod random;

use std::{cmp::Ordering, sync::Arc};

use proptest::{
    prelude::*,
    sample::select,
    test_runner::{Config, TestRunner},
};
use trestle_kv::MemoryEngine;
use trestle_proto::table::v1::{
    Entity, QueryEntitiesRequest, StreamEntitiesRequest, stored::decode_entities, value::Kind,
};
use trestle_tests::{Table, World, entity_of, prop, utf16, value_of};

use self::{
    evaluation::{matches, render},
    random::{entities, filter},
};

/// Keys and texts: the supplementary one sorts before U+E000 in UTF-16 and after it in UTF-8.
const TEXTS: [&str; 6] = ["", "a", "ab", "b", "\u{E000}", "\u{10000}"];
const OPERATORS: [&str; 6] = ["eq", "ne", "gt", "ge", "lt", "le"];

#[derive(Debug, Clone)]
enum Filter {
    Constant(bool),
    Compare(&'static str, &'static str, Kind),
    Not(Box<Filter>),
    And(Box<Filter>, Box<Filter>),
    Or(Box<Filter>, Box<Filter>),
}

type Key = (String, String);

fn keys(entities: Vec<Entity>) -> Vec<Key> {
    entities.into_iter().map(|e| (e.partition_key, e.row_key)).collect()
}

async fn paged(table: &Table, filter: &str, page_size: i32) -> Vec<Key> {
    let (mut all, mut page_token) = (Vec::new(), String::new());
    loop {
        let request = QueryEntitiesRequest {
            filter: filter.to_owned(),
            page_size: Some(page_size),
            page_token,
            ..Default::default()
        };
        let (entities, response) = table.page(request).await.unwrap();
        assert!(entities.len() as i32 <= page_size);
        all.extend(keys(entities));
        page_token = response.next_page_token;
        if page_token.is_empty() {
            return all;
        }
    }
}

async fn streamed(table: &Table, filter: &str) -> Vec<Key> {
    let request = StreamEntitiesRequest { filter: filter.to_owned(), ..Default::default() };
    let messages = table.stream(request).await.unwrap();
    let entities = messages.iter().map(|m| decode_entities(&m.entities).unwrap());
    entities.flat_map(keys).collect()
}

async fn check(entities: Vec<Entity>, filters: Vec<Filter>, page_size: i32) {
    let world = World::on_engine(Arc::new(MemoryEngine::new(trestle::storage::keyspaces()))).await;
    let table = world.table("random").await;
    let mut stored: Vec<Entity> = Vec::new();
    for entity in entities {
        if table.insert(entity.clone()).await.is_ok() {
            stored.push(entity);
        }
    }
    stored.sort_by_key(|entity| (utf16(&entity.partition_key), utf16(&entity.row_key)));
    for filter in filters {
        let found = stored.iter().filter(|entity| matches(&filter, entity)).cloned();
        let expected = keys(found.collect());
        let text = render(&filter);
        assert_eq!(paged(&table, &text, 1000).await, expected, "{text}");
        assert_eq!(paged(&table, &text, page_size).await, expected, "{text}");
        assert_eq!(streamed(&table, &text).await, expected, "{text}");
    }
}

#[test]
fn random_filters_match_what_a_naive_evaluation_matches() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let config = Config { cases: 150, failure_persistence: None, ..Config::default() };
    let filters = prop::collection::vec(filter(), 8);
    TestRunner::new(config)
        .run(&(entities(), filters, 1..5_i32), |(entities, filters, page_size)| {
            runtime.block_on(check(entities, filters, page_size));
            Ok(())
        })
        .unwrap();
}
