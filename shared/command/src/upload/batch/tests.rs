//! Chunks of entities: bounds, order, and the position of each chunk.

use proptest::prelude::*;
use trestle_proto::table::v1::{Property, Value, value::Kind};

use super::*;

/// An entity with a text of this size.
fn entity(row_key: usize, text: usize) -> Entity {
    let kind = Kind::StringValue("x".repeat(text));
    let value = Some(Value { kind: Some(kind) });
    let properties = vec![Property { name: "text".to_owned(), value }];
    Entity { row_key: row_key.to_string(), properties, ..Entity::default() }
}

type TestChunk = UploadChunk<usize, usize, usize>;

/// Chunks of items: the size of an entity, or a rejected item.
fn chunks(items: &[Option<usize>]) -> Vec<TestChunk> {
    let mut builder = ChunkBuilder::default();
    let mut chunks = Vec::new();
    for (at, item) in items.iter().enumerate() {
        chunks.extend(match item {
            Some(text) => builder.add(at, entity(at, *text), Some(at)),
            None => builder.reject(at, format!("item {at}"), Some(at)),
        });
    }
    chunks.push(builder.finish(Some(items.len())));
    chunks
}

fn items_of(chunk: &TestChunk) -> usize {
    chunk.labels.len() + chunk.rejected.len()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn chunks_are_bounded_and_hold_every_item_once_in_order(
        items in proptest::collection::vec(
            prop_oneof![
                6 => (0..3_usize).prop_map(Some),
                2 => Just(None),
                1 => (200_000..1_100_000_usize).prop_map(Some),
            ],
            0..40,
        ),
        repeats in 1..30_usize,
    ) {
        let items = items.repeat(repeats).into_iter().take(1200).collect::<Vec<_>>();
        let mut next = 0;
        for chunk in chunks(&items) {
            let end = chunk.end.unwrap();
            prop_assert_eq!(items_of(&chunk), end - next, "the position after the chunk");
            prop_assert!(items_of(&chunk) <= ENTITIES_MAX);
            let sent = chunk.entities();
            let keys: Vec<_> = chunk.labels.iter().map(ToString::to_string).collect();
            prop_assert_eq!(sent.iter().map(|it| it.row_key.clone()).collect::<Vec<_>>(), keys);
            let bytes: usize = sent.iter().map(prost::Message::encoded_len).sum();
            prop_assert!(bytes <= BYTES_MAX || sent.len() == 1, "{bytes} bytes");
            let mut found: Vec<_> = chunk.labels.clone();
            found.extend(chunk.rejected.iter().map(|(at, _)| *at));
            found.sort_unstable();
            prop_assert_eq!(found, (next..end).collect::<Vec<_>>());
            next = end;
        }
        prop_assert_eq!(next, items.len());
    }
}

#[test]
fn a_chunk_is_full_at_its_number_of_entities_and_not_before() {
    let sizes =
        |count: usize| -> Vec<_> { chunks(&vec![Some(0); count]).iter().map(items_of).collect() };

    assert_eq!(sizes(ENTITIES_MAX), [ENTITIES_MAX]);
    assert_eq!(sizes(ENTITIES_MAX + 1), [ENTITIES_MAX, 1]);
}

#[test]
fn an_entity_larger_than_a_chunk_is_sent_alone() {
    let found = chunks(&[Some(1), Some(BYTES_MAX + 1), Some(2)]);

    let labels: Vec<_> = found.iter().map(|chunk| chunk.labels.clone()).collect();
    assert_eq!(labels, [[0], [1], [2]]);
}

#[test]
fn a_first_entity_larger_than_a_chunk_makes_no_empty_chunk_before_it() {
    let found = chunks(&[Some(BYTES_MAX + 1)]);

    assert_eq!(found.iter().map(items_of).collect::<Vec<_>>(), [1]);
}

#[test]
fn rejected_items_count_towards_the_bound_of_a_chunk() {
    let mut items = vec![None; ENTITIES_MAX];
    items.push(Some(0));

    let found = chunks(&items);

    assert_eq!(found.iter().map(|it| it.rejected.len()).collect::<Vec<_>>(), [ENTITIES_MAX, 0]);
    assert_eq!(found[0].rejected[3], (3, "item 3".to_owned()));
    assert!(found[0].entities().is_empty());
}

#[test]
fn the_last_chunk_may_be_empty_and_still_has_a_position() {
    let mut builder = ChunkBuilder::<usize, usize>::default();

    assert!(builder.take(Some(1)).is_none());
    let last = builder.finish(Some(2));
    assert_eq!((last.end, last.entities().len(), last.replayed), (Some(2), 0, false));
}
