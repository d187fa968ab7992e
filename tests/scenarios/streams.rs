//! Streams: every match in order, resumable, with flow control.

use std::time::Duration;

use tonic::Code;
use trestle_proto::table::v1::{
    Entity, StreamEntitiesRequest, StreamEntitiesResponse, stored::decode_entities, value::Kind,
};
use trestle_tests::{HANG, Table, World, entity, entity_of, prop, scenario};

scenario!(
    stream_returns_every_match_in_order,
    a_stream_ends_at_its_limit,
    stream_resumes_at_its_token,
    invalid_stream_fails_before_its_first_message,
    slow_reader_blocks_no_other_client_and_receives_everything,
    stream_of_a_deleted_table_ends_with_not_found,
);

/// Entities of 64 KiB, so that a few hundred exceed the windows.
async fn fill(table: &Table, count: usize) {
    let row = |n: usize| {
        let bytes = Kind::BinaryValue(vec![0; 65_000].into());
        entity_of("p", &format!("{n:04}"), vec![prop("b", bytes)])
    };
    let all: Vec<Entity> = (0..count).map(row).collect();
    let chunks = all.chunks(50).map(<[Entity]>::to_vec).collect();
    assert_eq!(table.import(None, chunks).await.unwrap(), []);
}

fn rows(message: &StreamEntitiesResponse) -> Vec<String> {
    let entities = decode_entities(&message.entities).unwrap();
    entities.into_iter().map(|entity| entity.row_key).collect()
}

fn all_rows(messages: &[StreamEntitiesResponse]) -> Vec<String> {
    messages.iter().flat_map(rows).collect()
}

fn numbered(range: std::ops::Range<usize>) -> Vec<String> {
    range.map(|n| format!("{n:04}")).collect()
}

async fn stream_returns_every_match_in_order(world: &World) {
    let table = world.table("whole").await;
    fill(&table, 40).await;

    let messages = table.stream(Default::default()).await.unwrap();
    assert!(messages.len() > 5, "in {} messages", messages.len());
    assert_eq!(all_rows(&messages), numbered(0..40));
    let (last, earlier) = messages.split_last().unwrap();
    assert_eq!(last.resume_token, "");
    assert!(earlier.iter().all(|message| !message.resume_token.is_empty()));
    for message in &messages {
        let cost = message.cost.unwrap();
        assert_eq!(cost.returned, message.entities.len() as u64);
    }

    let filter = "PartitionKey eq 'p' and RowKey ge '0038'".to_owned();
    let request = StreamEntitiesRequest { filter, ..Default::default() };
    let messages = table.stream(request).await.unwrap();
    assert_eq!(all_rows(&messages), numbered(38..40));
    let nothing =
        StreamEntitiesRequest { filter: "RowKey eq 'none'".to_owned(), ..Default::default() };
    let messages = table.stream(nothing).await.unwrap();
    assert_eq!(all_rows(&messages).len(), 0);
    assert_eq!(messages.last().unwrap().resume_token, "");
}

async fn a_stream_ends_at_its_limit(world: &World) {
    let table = world.table("limited").await;
    fill(&table, 20).await;
    let limited = async |limit| {
        let request = StreamEntitiesRequest { limit: Some(limit), ..Default::default() };
        table.stream(request).await
    };

    for limit in [0, 1, 7, 20] {
        let messages = limited(limit as i64).await.unwrap();
        assert_eq!(all_rows(&messages), numbered(0..limit));
        assert_eq!(messages.last().unwrap().resume_token, "");
    }
    assert_eq!(all_rows(&limited(i64::MAX).await.unwrap()).len(), 20);
    let negative = limited(-1).await.unwrap_err();
    assert_eq!(negative.kind(), (Code::InvalidArgument, "INVALID_INPUT"));
    assert_eq!(negative.fields, ["limit"]);
}

async fn stream_resumes_at_its_token(world: &World) {
    let table = world.table("resumed").await;
    fill(&table, 30).await;
    let messages = table.stream(Default::default()).await.unwrap();

    for middle in [0, messages.len() / 2, messages.len() - 2] {
        let request = StreamEntitiesRequest {
            resume_token: messages[middle].resume_token.clone(),
            ..Default::default()
        };
        let rest = table.stream(request).await.unwrap();
        assert_eq!(all_rows(&rest), all_rows(&messages[middle + 1..]));
    }
}

async fn invalid_stream_fails_before_its_first_message(world: &World) {
    let table = world.table("rejected").await;
    fill(&table, 10).await;
    let messages = table.stream(Default::default()).await.unwrap();
    let token = messages[0].resume_token.clone();

    let foreign = StreamEntitiesRequest {
        filter: "b ne X''".to_owned(),
        resume_token: token.clone(),
        ..Default::default()
    };
    let damaged =
        StreamEntitiesRequest { resume_token: token[1..].to_owned(), ..Default::default() };
    for request in [foreign, damaged] {
        let rejected = table.open_stream(request).await.unwrap_err();
        let expected = (Code::InvalidArgument, "INVALID_QUERY_PARAMETER_VALUE");
        assert_eq!(rejected.kind(), expected);
        assert_eq!(rejected.fields, ["resume_token"]);
    }
    let filter = StreamEntitiesRequest { filter: "b xx 1".to_owned(), ..Default::default() };
    let rejected = table.open_stream(filter).await.unwrap_err();
    assert_eq!(rejected.fields, ["filter"]);
}

async fn slow_reader_blocks_no_other_client_and_receives_everything(world: &World) {
    let table = world.table("slow").await;
    fill(&table, 200).await;
    let mut slow = table.open_stream(Default::default()).await.unwrap();
    let first = slow.message().await.unwrap().unwrap();
    // Long enough for the server to fill the windows.
    tokio::time::sleep(Duration::from_millis(100)).await;

    // The reader does not read: other calls on the same connection continue, also writes.
    let others = async {
        table.insert(entity("p", "zzzz", [])).await.unwrap();
        for _ in 0..3 {
            let filter = "PartitionKey eq 'p' and RowKey lt '0010'";
            assert_eq!(table.rows(filter).await.unwrap(), numbered(0..10));
        }
    };
    let waited = tokio::time::timeout(HANG, others).await;
    assert!(waited.is_ok(), "a stream that is not read stops other calls");

    let mut received = rows(&first);
    while let Some(message) = slow.message().await.unwrap() {
        received.extend(rows(&message));
    }
    let before = received.iter().filter(|row| *row < &"zzzz".to_owned()).cloned();
    assert_eq!(before.collect::<Vec<_>>(), numbered(0..200));
}

async fn stream_of_a_deleted_table_ends_with_not_found(world: &World) {
    let table = world.table("deleted").await;
    fill(&table, 400).await;
    let mut stream = table.open_stream(Default::default()).await.unwrap();
    stream.message().await.unwrap().unwrap();

    world.drop_table("deleted").await.unwrap();

    let status = loop {
        match stream.message().await {
            Ok(Some(_)) => {}
            Ok(None) => panic!("the stream claims to be complete"),
            Err(status) => break trestle_tests::CallError::of(&status),
        }
    };
    assert_eq!(status.kind(), (Code::NotFound, "TABLE_NOT_FOUND"));
}

/// Uses an engine that counts scans.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cancelled_stream_stops_reading() {
    let engine = counting::CountingEngine::new();
    let world = World::on_engine(std::sync::Arc::new(engine.clone())).await;
    let table = world.table("cancelled").await;
    fill(&table, 200).await;

    let mut stream = table.open_stream(Default::default()).await.unwrap();
    stream.message().await.unwrap().unwrap();
    drop(stream);
    tokio::time::sleep(Duration::from_millis(100)).await;
    let scans = engine.scans();
    tokio::time::sleep(Duration::from_millis(200)).await;

    assert_eq!(engine.scans(), scans, "it continues to read for a cancelled stream");
    assert!(scans < 20, "{scans} scans for a stream that was read once");
}

mod counting {
    use std::sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    };

    use trestle_kv::{
        Change, CommitError, Engine, EngineError, EngineStatus, Limits, MemoryEngine, Scan,
        ScanLimit, Snapshot, Span, Version,
    };
    use trestle_model::time::Ticks;

    /// The memory engine, which counts the scans of its snapshots.
    #[derive(Clone)]
    pub(super) struct CountingEngine {
        engine: MemoryEngine,
        scans: Arc<AtomicUsize>,
    }

    impl CountingEngine {
        pub(super) fn new() -> Self {
            let engine = MemoryEngine::new(trestle::storage::keyspaces());
            Self { engine, scans: Arc::default() }
        }

        pub(super) fn scans(&self) -> usize {
            self.scans.load(Ordering::SeqCst)
        }
    }

    struct CountingSnapshot(Box<dyn Snapshot>, Arc<AtomicUsize>);

    #[tonic::async_trait]
    impl Engine for CountingEngine {
        async fn snapshot(&self) -> Result<Box<dyn Snapshot>, EngineError> {
            let snapshot = self.engine.snapshot().await?;
            Ok(Box::new(CountingSnapshot(snapshot, Arc::clone(&self.scans))))
        }

        async fn commit(&self, change: Change) -> Result<Version, CommitError> {
            self.engine.commit(change).await
        }

        fn limits(&self) -> Limits {
            self.engine.limits()
        }

        fn now(&self) -> Ticks {
            self.engine.now()
        }

        fn status(&self) -> EngineStatus {
            self.engine.status()
        }
    }

    #[tonic::async_trait]
    impl Snapshot for CountingSnapshot {
        async fn get(&self, key: &[u8]) -> Result<Option<bytes::Bytes>, EngineError> {
            self.0.get(key).await
        }

        async fn scan(&self, span: &Span, limit: ScanLimit) -> Result<Scan, EngineError> {
            self.1.fetch_add(1, Ordering::SeqCst);
            self.0.scan(span, limit).await
        }
    }
}
