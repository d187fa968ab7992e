//! Imports: each entity on its own, a status for each, in the order they were sent.

use tonic::Code;
use trestle_proto::table::v1::{
    Entity, ImportChunk, WriteMode, import_entities_request::Message, value::Kind,
};
use trestle_tests::{
    CallError, Imported, Table, World, entity, entity_of, int, prop, scenario, value_of,
};

scenario!(
    an_import_inserts_and_reports_entities_that_exist,
    import_honours_its_mode,
    invalid_entity_fails_alone_and_is_named_by_position,
    repeated_entity_sees_the_earlier_write,
    import_is_a_spec_followed_by_chunks,
    empty_or_oversized_chunk_ends_the_import,
    chunk_has_at_most_1000_entities,
    import_ends_when_its_table_is_deleted,
    an_import_of_many_entities_is_complete,
);

const MERGE: Option<WriteMode> = Some(WriteMode::Merge);
const REPLACE: Option<WriteMode> = Some(WriteMode::Replace);

fn failure(imported: &Imported, position: usize) -> (u64, CallError) {
    let (index, status) = imported.failures().remove(position);
    (index, error(&status))
}

/// The outcome of an entity is a status like that of a call.
fn error(status: &trestle_proto::google::rpc::Status) -> CallError {
    let code = Code::from(status.code);
    let details = prost::Message::encode_to_vec(status).into();
    let status = tonic::Status::with_details(code, status.message.clone(), details);
    CallError::of(&status)
}

fn row(row: &str, n: i32) -> Entity {
    entity("p", row, [int("n", n)])
}

async fn numbers(table: &Table) -> Vec<(String, i32)> {
    let stored = table.query("").await.unwrap();
    let number = |entity: &Entity| match value_of(entity, "n") {
        Some(Kind::Int32Value(number)) => *number,
        _ => -1,
    };
    stored.iter().map(|entity| (entity.row_key.clone(), number(entity))).collect()
}

fn chunks(chunks: Vec<Vec<Entity>>) -> impl Iterator<Item = Option<Message>> {
    let message = |entities| Some(Message::Chunk(ImportChunk { entities }));
    chunks.into_iter().map(message)
}

async fn import(table: &Table, mode: Option<WriteMode>, parts: Vec<Vec<Entity>>) -> Imported {
    let spec = Some(Message::Spec(table.spec(mode)));
    let messages = std::iter::once(spec).chain(chunks(parts));
    table.import_messages(messages.collect()).await
}

async fn an_import_inserts_and_reports_entities_that_exist(world: &World) {
    let table = world.table("inserted").await;
    table.insert(row("b", 1)).await.unwrap();

    let parts = vec![vec![row("a", 2), row("b", 2)], vec![row("c", 2)]];
    let imported = import(&table, None, parts).await;

    assert_eq!(imported.failure, None);
    assert_eq!(imported.responses.len(), 2, "one for each chunk");
    let results = imported.responses.iter().flat_map(|response| &response.results);
    let indexes: Vec<_> = results.map(|result| result.index).collect();
    assert_eq!(indexes, [0, 1, 2]);
    assert_eq!(imported.failures().len(), 1);
    let (index, error) = failure(&imported, 0);
    let expected = (Code::AlreadyExists, "ENTITY_ALREADY_EXISTS");
    assert_eq!((index, error.kind()), (1, expected));
    let expected = [("a", 2), ("b", 1), ("c", 2)].map(|(row, n)| (row.to_owned(), n));
    assert_eq!(numbers(&table).await, expected);
}

async fn import_honours_its_mode(world: &World) {
    for (name, mode, kept) in [("merged", MERGE, true), ("replaced", REPLACE, false)] {
        let table = world.table(name).await;
        let stored = entity("p", "a", [int("n", 1), int("old", 1)]);
        table.insert(stored).await.unwrap();

        let imported = table.import(mode, vec![vec![row("a", 2), row("b", 2)]]).await;

        assert_eq!(imported.unwrap(), []);
        let read = table.get("p", "a").await.unwrap();
        assert_eq!(value_of(&read, "n"), Some(&Kind::Int32Value(2)));
        assert_eq!(value_of(&read, "old").is_some(), kept, "{name}");
        assert_eq!(table.rows("").await.unwrap(), ["a", "b"]);
    }
}

async fn invalid_entity_fails_alone_and_is_named_by_position(world: &World) {
    let table = world.table("faulty").await;
    let parts = vec![
        vec![row("a", 1), row("x/y", 1), row("b", 1)],
        vec![
            entity("p", "dup", [int("n", 1), int("n", 2)]),
            row("c", 1),
            entity("p", "bad", [int("1st", 1)]),
        ],
    ];

    let imported = import(&table, REPLACE, parts).await;

    assert_eq!(imported.failure, None);
    assert_eq!(imported.failures().len(), 3);
    for (position, index, reason, field) in [
        (0, 1, "OUT_OF_RANGE_INPUT", "chunk.entities[1].row_key"),
        (1, 3, "DUPLICATE_PROPERTIES_SPECIFIED", "chunk.entities[0].properties[\"n\"]"),
        (2, 5, "PROPERTY_NAME_INVALID", "chunk.entities[2].properties[\"1st\"]"),
    ] {
        let (found, error) = failure(&imported, position);
        assert_eq!(found, index);
        assert_eq!(error.kind(), (Code::InvalidArgument, reason));
        assert_eq!(error.fields, [field]);
    }
    assert_eq!(table.rows("").await.unwrap(), ["a", "b", "c"]);
}

async fn repeated_entity_sees_the_earlier_write(world: &World) {
    let table = world.table("again").await;
    let again = |n: i32| entity("p", "r", [int(&format!("n{n}"), n), int("n", n)]);

    let merged = import(&table, MERGE, vec![vec![again(1), again(2)], vec![again(3)]]).await;
    assert_eq!(merged.failures().len(), 0);
    let read = table.get("p", "r").await.unwrap();
    let expected = [int("n", 3), int("n1", 1), int("n2", 2), int("n3", 3)];
    assert_eq!(read.properties, expected);

    let inserted = import(&table, None, vec![vec![row("s", 1), row("s", 2)]]).await;
    let (index, error) = failure(&inserted, 0);
    assert_eq!((index, error.code), (1, Code::AlreadyExists));
    let read = table.get("p", "s").await.unwrap();
    assert_eq!(read.properties, [int("n", 1)]);
}

async fn import_is_a_spec_followed_by_chunks(world: &World) {
    let table = world.table("protocol").await;
    let spec = || Some(Message::Spec(table.spec(None)));
    let chunk = |name: &str| chunks(vec![vec![row(name, 1)]]).next().unwrap();

    for (messages, field) in [
        (vec![], "spec"),
        (vec![None], "spec"),
        (vec![chunk("early")], "spec"),
        (vec![spec(), spec()], "chunk"),
        (vec![spec(), chunk("a"), None, chunk("late")], "chunk"),
    ] {
        let imported = table.import_messages(messages).await;
        let rejected = imported.failure.unwrap();
        assert_eq!(rejected.code, Code::InvalidArgument, "{rejected:?}");
        assert_eq!(rejected.fields, [field]);
    }
    let mut unknown = table.spec(None);
    unknown.mode = Some(7);
    let imported = table.import_messages(vec![Some(Message::Spec(unknown))]).await;
    let rejected = imported.failure.unwrap();
    assert_eq!(rejected.kind(), (Code::InvalidArgument, "INVALID_INPUT"));
    assert_eq!(rejected.fields, ["spec.mode"]);
    let mut nameless = table.spec(None);
    nameless.table = String::new();
    let imported = table.import_messages(vec![Some(Message::Spec(nameless))]).await;
    assert_eq!(imported.failure.unwrap().fields, ["spec.table"]);

    assert_eq!(table.rows("").await.unwrap(), ["a"], "what came before counts");
    let only_spec = table.import_messages(vec![spec()]).await;
    assert_eq!((only_spec.responses.len(), only_spec.failure), (0, None));
}

/// An entity of at least `kib` KiB.
fn sized(row: &str, kib: usize) -> Entity {
    let part = |n: usize| {
        let bytes = vec![0; 1024 * (kib - n * 64).min(64)];
        prop(&format!("b{n:02}"), Kind::BinaryValue(bytes.into()))
    };
    entity_of("p", row, (0..kib.div_ceil(64)).map(part).collect())
}

async fn empty_or_oversized_chunk_ends_the_import(world: &World) {
    let table = world.table("chunks").await;
    let large = |count: usize| -> Vec<_> {
        (0..count).map(|n| sized(&format!("large{n}"), 1000)).collect()
    };

    let parts = vec![vec![row("before", 1)], vec![], vec![row("after", 1)]];
    let empty = import(&table, None, parts).await;
    let rejected = empty.failure.unwrap();
    assert_eq!(rejected.code, Code::InvalidArgument);
    assert_eq!(rejected.fields, ["chunk.entities"]);
    assert_eq!(empty.responses.len(), 1);
    assert_eq!(table.rows("").await.unwrap(), ["before"]);

    let fitting = table.import(None, vec![large(4)]).await;
    assert_eq!(fitting.unwrap(), []);
    let past_it = import(&table, REPLACE, vec![large(5), vec![row("after", 1)]]).await;
    let expected = (Code::InvalidArgument, "REQUEST_BODY_TOO_LARGE");
    assert_eq!(past_it.failure.unwrap().kind(), expected);
    assert_eq!(table.rows("").await.unwrap().len(), 5);
}

async fn chunk_has_at_most_1000_entities(world: &World) {
    let table = world.table("counted").await;
    let rows = |count: i32| (0..count).map(|n| row(&format!("{n:04}"), n)).collect::<Vec<_>>();

    let at_the_bound = table.import(REPLACE, vec![rows(1000)]).await;
    let past_it = import(&table, REPLACE, vec![rows(1001)]).await.failure.unwrap();

    assert_eq!(at_the_bound.unwrap(), []);
    assert_eq!(past_it.kind(), (Code::InvalidArgument, "INVALID_INPUT"));
    assert_eq!(past_it.fields, ["chunk.entities"]);
    assert_eq!(table.rows("").await.unwrap().len(), 1000);
}

async fn import_ends_when_its_table_is_deleted(world: &World) {
    use futures::{SinkExt as _, StreamExt as _};
    use trestle_proto::table::v1::ImportEntitiesRequest;

    let table = world.table("deleted").await;
    let (mut sender, receiver) = futures::channel::mpsc::channel(4);
    let mut send = async |message| {
        let message = Some(message);
        sender.send(ImportEntitiesRequest { message }).await.unwrap();
    };
    let chunk = |name: &str| chunks(vec![vec![row(name, 1)]]).next().unwrap().unwrap();
    send(Message::Spec(table.spec(None))).await;
    send(chunk("a")).await;
    let response = table.client().import_entities(receiver).await.unwrap();
    let mut responses = response.into_inner();
    let first = responses.next().await.unwrap().unwrap();
    assert_eq!(first.results.len(), 1, "chunks are answered as they come");

    world.drop_table("deleted").await.unwrap();
    send(chunk("b")).await;

    let rejected = CallError::of(&responses.next().await.unwrap().unwrap_err());
    assert_eq!(rejected.kind(), (Code::NotFound, "TABLE_NOT_FOUND"));
    assert!(responses.next().await.is_none());
}

async fn an_import_of_many_entities_is_complete(world: &World) {
    let table = world.table("many").await;
    let all: Vec<_> = (0..3000)
        .map(|n| entity(&format!("p{}", n % 7), &format!("{n:04}"), [int("n", n)]))
        .collect();

    let parts = all.chunks(700).map(<[Entity]>::to_vec).collect();
    let imported = import(&table, None, parts).await;

    assert_eq!((imported.failure.clone(), imported.failures().len()), (None, 0));
    assert_eq!(imported.responses.len(), 5);
    assert_eq!(table.query("").await.unwrap().len(), 3000);
    assert_eq!(table.rows("PartitionKey eq 'p3'").await.unwrap().len(), 429);
}
