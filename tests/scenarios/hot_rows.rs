//! Many writers on one row, and readers beside them.

use std::sync::atomic::{AtomicBool, Ordering};

use futures::future::join_all;
use tonic::Code;
use trestle_proto::table::v1::{
    Entity, QueryEntitiesRequest,
    WriteMode::{Merge, Replace},
    value::Kind,
};
use trestle_tests::{Table, World, entity, int, scenario, upsert_op, value_of};

scenario!(
    unconditional_writes_of_one_row_all_succeed,
    concurrent_merges_of_one_row_are_all_applied,
    of_concurrent_writes_with_the_same_etag_one_succeeds,
    conditional_increments_count_every_winner,
    of_concurrent_inserts_of_one_key_one_succeeds,
    page_never_shows_a_partial_batch,
);

const WRITERS: usize = 64;

fn number(entity: &Entity, name: &str) -> i32 {
    match value_of(entity, name) {
        Some(Kind::Int32Value(number)) => *number,
        other => panic!("{name} is {other:?}"),
    }
}

fn numbered(n: usize) -> i32 {
    i32::try_from(n).unwrap()
}

async fn unconditional_writes_of_one_row_all_succeed(world: &World) {
    let table = world.table("hot").await;

    let write = async |n: usize| {
        let row = entity("p", "r", [int("n", numbered(n))]);
        match n % 3 {
            0 => table.upsert(row, Replace).await,
            1 => table.upsert(row, Merge).await,
            _ => {
                let etags = table.batch(vec![upsert_op(row, Replace)]).await;
                let etag = etags.map(|mut etags| etags.remove(0));
                etag.map(|etag| trestle_tests::Version { etag, timestamp: Default::default() })
            }
        }
    };
    let written = join_all((0..WRITERS).map(write)).await;

    let mut etags: Vec<_> = written.into_iter().map(|version| version.unwrap().etag).collect();
    let stored = table.get("p", "r").await.unwrap().etag;
    assert!(etags.contains(&stored), "one of the writes was the last");
    etags.sort();
    etags.dedup();
    assert_eq!(etags.len(), WRITERS, "each has a version of its own");
}

async fn concurrent_merges_of_one_row_are_all_applied(world: &World) {
    let table = world.table("merges").await;

    let merge = async |n: usize| {
        let own = entity("p", "r", [int(&format!("p{n:02}"), numbered(n))]);
        table.upsert(own, Merge).await
    };
    let written = join_all((0..WRITERS).map(merge)).await;

    assert!(written.iter().all(Result::is_ok), "{written:?}");
    let stored = table.get("p", "r").await.unwrap();
    assert_eq!(stored.properties.len(), WRITERS);
    for n in 0..WRITERS {
        assert_eq!(number(&stored, &format!("p{n:02}")), numbered(n));
    }
}

async fn of_concurrent_writes_with_the_same_etag_one_succeeds(world: &World) {
    let table = world.table("race").await;
    let etag = table.insert(entity("p", "r", [int("n", -1)])).await.unwrap().etag;

    let write = async |n: usize| {
        let row = entity("p", "r", [int("n", numbered(n))]);
        match n % 4 {
            0 => table.delete("p", "r", Some(&etag)).await.map(|()| None),
            mode => {
                let mode = if mode == 1 { Merge } else { Replace };
                let written = table.update(row, mode, Some(&etag)).await;
                written.map(|version| Some((n, version.etag)))
            }
        }
    };
    let outcomes = join_all((0..WRITERS).map(write)).await;

    let (won, failed): (Vec<_>, Vec<_>) = outcomes.into_iter().partition(Result::is_ok);
    assert_eq!(won.len(), 1);
    // Those after a deletion get NOT_FOUND.
    let fair =
        |error: &trestle_tests::CallError| matches!(error.code, Code::Aborted | Code::NotFound);
    assert!(failed.into_iter().all(|outcome| fair(&outcome.unwrap_err())));
    match won.into_iter().next().unwrap().unwrap() {
        None => assert!(table.get("p", "r").await.is_err(), "the deletion won"),
        Some((winner, etag)) => {
            let stored = table.get("p", "r").await.unwrap();
            assert_eq!((number(&stored, "n"), stored.etag), (numbered(winner), etag));
        }
    }
}

/// Adds one, with retries; returns the number of conflicts.
async fn increment(table: &Table) -> usize {
    let mut late = 0;
    loop {
        let stored = table.get("p", "counter").await.unwrap();
        let next = entity("p", "counter", [int("n", number(&stored, "n") + 1)]);
        match table.update(next, Replace, Some(&stored.etag)).await {
            Ok(_) => return late,
            Err(error) => assert_eq!(error.code, Code::Aborted),
        }
        late += 1;
        assert!(late < 10 * WRITERS, "one writer wins each round");
    }
}

async fn conditional_increments_count_every_winner(world: &World) {
    let table = world.table("counter").await;
    let zero = entity("p", "counter", [int("n", 0)]);
    table.insert(zero).await.unwrap();

    join_all((0..WRITERS).map(|_| increment(&table))).await;

    let stored = table.get("p", "counter").await.unwrap();
    assert_eq!(number(&stored, "n"), numbered(WRITERS));
}

async fn of_concurrent_inserts_of_one_key_one_succeeds(world: &World) {
    let table = world.table("inserts").await;

    let insert = async |n: usize| table.insert(entity("p", "r", [int("n", numbered(n))])).await;
    let outcomes = join_all((0..WRITERS).map(insert)).await;

    let winners: Vec<_> = (0..WRITERS).filter(|n| outcomes[*n].is_ok()).collect();
    assert_eq!(winners.len(), 1);
    let failed = outcomes.into_iter().filter_map(Result::err);
    assert!(failed.into_iter().all(|error| error.code == Code::AlreadyExists));
    let stored = table.get("p", "r").await.unwrap();
    assert_eq!(number(&stored, "n"), numbered(winners[0]));
}

async fn page_never_shows_a_partial_batch(world: &World) {
    const ROWS: usize = 10;
    let table = world.table("whole").await;
    let batch = |round: i32| {
        let row = |n| entity("p", &format!("{n:02}"), [int("round", round)]);
        (0..ROWS).map(|n| upsert_op(row(n), Replace)).collect::<Vec<_>>()
    };
    table.batch(batch(0)).await.unwrap();
    let done = AtomicBool::new(false);

    let write = async {
        for round in 1..40 {
            table.batch(batch(round)).await.unwrap();
        }
        done.store(true, Ordering::SeqCst);
    };
    let read = async |filter: &str| {
        let (mut pages, mut last) = (0, 0);
        while !done.load(Ordering::SeqCst) || pages == 0 {
            let request = QueryEntitiesRequest { filter: filter.to_owned(), ..Default::default() };
            let (entities, _) = table.page(request).await.unwrap();
            let rounds: Vec<_> = entities.iter().map(|e| number(e, "round")).collect();
            assert_eq!(rounds, vec![rounds[0]; ROWS], "a batch is visible in part");
            assert!(last <= rounds[0], "an older state after a newer one");
            last = rounds[0];
            pages += 1;
            // A call within the process may never wait: this lets the writer run.
            tokio::task::yield_now().await;
        }
    };
    let readers = join_all([read(""), read("round ge 0"), read("PartitionKey eq 'p'")]);
    futures::join!(write, readers);

    let stored = table.get("p", "00").await.unwrap();
    assert_eq!(number(&stored, "round"), 39);
}
