//! Quotas: throttling of a partition or an account; others are not affected.

mod calls;
mod storage;

use std::{
    fs,
    sync::atomic::{AtomicUsize, Ordering},
    time::{Duration, Instant},
};

use tonic::Code;
use trestle_proto::table::v1::{
    Entity, GetServicePropertiesRequest, GetServiceStatsRequest, HotPartition,
    QueryEntitiesRequest, StreamEntitiesRequest, WriteMode, stored::decode_entities,
};
use trestle_tests::{
    CallError, HANG, Server, Table, World, entity, insert_op, metric, over_account, page,
    replace_file, string, terms, token, update_op,
};

/// Settings of a server, by what follows `TRESTLE__QUOTAS__`.
type Quotas<'a> = &'a [(&'a str, &'a str)];

/// The error of a rejected call.
const BUSY: (Code, &str) = (Code::ResourceExhausted, "SERVER_BUSY");

fn server(roles: &str, quotas: Quotas<'_>) -> Server {
    let named = |key: &str| format!("TRESTLE__QUOTAS__{key}");
    let named: Vec<_> = quotas.iter().map(|(key, value)| (named(key), *value)).collect();
    let mut settings: Vec<_> = named.iter().map(|(key, value)| (key.as_str(), *value)).collect();
    settings.push(("TRESTLE__STORAGE__EPHEMERAL", "true"));
    Server::start(&["--roles", roles], &settings)
}

async fn world(quotas: Quotas<'_>) -> World {
    World::of(server("all", quotas)).await
}

/// A partition with a burst of a hundred entities, and a hundred a second.
const HUNDRED: Quotas<'static> = &[("PARTITION_ENTITIES_PER_SECOND", "100")];

/// An entity that counts once.
fn plain(partition: &str, row: &str) -> Entity {
    entity(partition, row, [])
}

/// Inserts into partitions until a call is rejected; how many were not, and the error.
async fn insert_until_rejected(
    table: &Table,
    partition: impl Fn(usize) -> String,
) -> (usize, CallError) {
    for count in 0..1000 {
        let row = format!("{count:04}");
        if let Err(error) = table.insert(plain(&partition(count), &row)).await {
            return (count, error);
        }
    }
    panic!("a thousand inserts were not rejected")
}

fn rows(count: usize) -> Vec<Entity> {
    (0..count).map(|row| plain("p", &format!("{row:04}"))).collect()
}

fn names(count: usize) -> Vec<String> {
    (0..count).map(|row| format!("{row:04}")).collect()
}

async fn hottest(world: &World) -> Vec<HotPartition> {
    let stats = world.client().get_service_stats(GetServiceStatsRequest {}).await;
    stats.unwrap().into_inner().hottest_partitions
}

/// Retries a call after the delay of `RetryInfo`.
async fn with_retries<T>(mut call: impl AsyncFnMut() -> Result<T, CallError>) -> T {
    for _ in 0..100 {
        match call().await {
            Ok(answer) => return answer,
            Err(error) => {
                assert_eq!(error.kind(), BUSY, "{error:?}");
                tokio::time::sleep(error.retry_after.unwrap()).await;
            }
        }
    }
    panic!("a hundred calls were rejected")
}

/// With a burst of ten and one a second: the bound allows for a run of a minute.
async fn only_the_hot_partition_is_throttled(world: &World) {
    let table = world.table("uneven").await;

    let (count, error) = insert_until_rejected(&table, |_| "hot".to_owned()).await;

    assert!((10..70).contains(&count), "{count} inserts");
    assert_eq!(error.kind(), BUSY);
    assert_eq!(error.quotas, ["partition `hot` of table `uneven`"]);
    let wait = error.retry_after.unwrap();
    assert!(wait > Duration::ZERO && wait <= Duration::from_secs(1), "{wait:?}");
    for cold in 0..20 {
        table.insert(plain(&format!("cold {cold}"), "r")).await.unwrap();
    }
    let hottest = hottest(world).await;
    assert_eq!(hottest[0].table, "uneven");
    assert_eq!(hottest[0].partition_key, "hot");
    assert!(hottest[0].throttled >= 1, "{hottest:?}");
    assert!(hottest[0].entities_per_second > 0.0, "{hottest:?}");
}

const ONE: Quotas<'static> =
    &[("PARTITION_ENTITIES_PER_SECOND", "1"), ("PARTITION_BURST_ENTITIES", "10")];

#[tokio::test]
async fn hot_partition_is_throttled_alone() {
    only_the_hot_partition_is_throttled(&world(ONE).await).await;
}

#[tokio::test]
async fn hot_partition_is_throttled_through_a_separate_gateway() {
    let table = server("table", ONE);
    let endpoint = table.endpoint();
    let settings = [("TRESTLE__GATEWAY__TABLE_ENDPOINT", endpoint.as_str())];
    let gateway = Server::start(&["--roles", "gateway"], &settings);

    only_the_hot_partition_is_throttled(&World::of(gateway).await).await;
}

#[tokio::test]
async fn throttled_write_succeeds_after_its_retry_delay() {
    let world = world(ONE).await;
    let table = world.table("waiting").await;
    let (_, error) = insert_until_rejected(&table, |_| "p".to_owned()).await;

    tokio::time::sleep(error.retry_after.unwrap()).await;

    table.insert(plain("p", "after the wait")).await.unwrap();
}

#[tokio::test]
async fn the_limit_of_an_account_spans_its_partitions() {
    let limits = [("ACCOUNT_ENTITIES_PER_SECOND", "1"), ("ACCOUNT_BURST_ENTITIES", "10")];
    let world = world(&limits).await;
    let table = world.table("wide").await;

    let (count, error) = insert_until_rejected(&table, |count| format!("p{count}")).await;

    assert!((10..70).contains(&count), "{count} inserts");
    assert_eq!(error.kind(), BUSY);
    assert_eq!(error.quotas, ["account `devstoreaccount1`"]);
    // Calls that are not on entities are not throttled.
    world.client().get_service_properties(GetServicePropertiesRequest {}).await.unwrap();
    world.table("another").await;
}

#[tokio::test]
async fn account_limits_override_the_defaults() {
    let limits = [
        ("ACCOUNT_ENTITIES_PER_SECOND", "1"),
        ("ACCOUNTS__DEVSTOREACCOUNT1__ACCOUNT_ENTITIES_PER_SECOND", "1000000"),
    ];
    let world = world(&limits).await;
    let table = world.table("excepted").await;

    for row in names(100) {
        table.insert(plain("p", &row)).await.unwrap();
    }
}

#[tokio::test]
async fn throttled_batch_writes_nothing() {
    let limits = [("PARTITION_ENTITIES_PER_SECOND", "1"), ("PARTITION_BURST_ENTITIES", "60")];
    let world = world(&limits).await;
    let table = world.table("batches").await;
    let batch = |range: std::ops::Range<usize>| {
        range.map(|row| insert_op(plain("p", &format!("{row:04}")))).collect::<Vec<_>>()
    };
    table.batch(batch(0..50)).await.unwrap();

    let rejected = table.batch(batch(50..100)).await.unwrap_err();

    assert_eq!(rejected.kind(), BUSY);
    assert_eq!(rejected.quotas, ["partition `p` of table `batches`"]);
    assert!(rejected.retry_after.unwrap() > Duration::from_secs(1), "{rejected:?}");
    for row in ["0050", "0075", "0099"] {
        let absent = table.get("p", row).await.unwrap_err();
        assert_eq!(absent.kind(), (Code::NotFound, "RESOURCE_NOT_FOUND"), "{row}");
    }
    assert!(table.get("p", "0049").await.is_ok());
}

#[tokio::test]
async fn large_entities_cost_one_unit_per_kib() {
    let world = world(ONE).await;
    let table = world.table("large").await;
    let large = |row: &str| entity("p", row, [string("t", &"x".repeat(9000))]);
    table.insert(large("first")).await.unwrap();

    let rejected = table.insert(large("second")).await.unwrap_err();

    assert_eq!(rejected.kind(), BUSY);
    // Nine tokens are used, and those for the second are nine again: eight seconds, less the time
    // that the test took.
    assert!(rejected.retry_after.unwrap() > Duration::from_secs(1), "{rejected:?}");
}

#[tokio::test]
async fn write_cost_is_the_size_of_the_resulting_or_deleted_entity() {
    let limits = [("PARTITION_ENTITIES_PER_SECOND", "1"), ("PARTITION_BURST_ENTITIES", "35")];
    let world = world(&limits).await;
    let table = world.table("debited").await;
    for how in ["merge", "merge in a batch", "merge in an import", "delete"] {
        let large = entity(how, "large", [string("t", &"x".repeat(30_000))]);
        table.insert(large).await.unwrap();

        let small = || entity(how, "large", [string("u", "x")]);
        match how {
            "merge" => drop(table.upsert(small(), WriteMode::Merge).await.unwrap()),
            "merge in a batch" => {
                let update = update_op(small(), WriteMode::Merge, Some("*"));
                table.batch(vec![update]).await.unwrap();
            }
            "merge in an import" => {
                let failures = table.import(Some(WriteMode::Merge), vec![vec![small()]]).await;
                assert_eq!(failures.unwrap(), []);
            }
            _ => table.delete(how, "large", None).await.unwrap(),
        }

        let rejected = table.insert(plain(how, "next")).await.unwrap_err();
        assert_eq!(rejected.kind(), BUSY, "{how}");
        // Thirty tokens twice where there are 35: 26 seconds, less the time that the test took.
        assert!(rejected.retry_after.unwrap() > Duration::from_secs(4), "{how}: {rejected:?}");
    }
}

#[tokio::test]
async fn throttled_page_ends_early_and_continues_by_token() {
    let world = world(HUNDRED).await;
    let table = world.table("pages").await;
    assert_eq!(table.import(None, vec![rows(300)]).await.unwrap(), []);

    let (mut found, mut early, mut page_token) = (Vec::new(), 0, String::new());
    loop {
        let request = QueryEntitiesRequest { page_token: page_token.clone(), ..Default::default() };
        let (entities, page) = with_retries(async || table.page(request.clone()).await).await;
        assert_eq!(page.cost.unwrap().scanned, entities.len() as u64);
        found.extend(entities.into_iter().map(|entity| entity.row_key));
        page_token = page.next_page_token;
        if page_token.is_empty() {
            break;
        }
        early += 1;
    }

    assert_eq!(found, names(300));
    assert!(early > 0, "no page ended early");
}

#[tokio::test]
async fn examined_entities_count_against_the_quota() {
    let world = world(HUNDRED).await;
    let table = world.table("examined").await;
    assert_eq!(table.import(None, vec![rows(300)]).await.unwrap(), []);
    let filter = "PartitionKey eq 'p' and nothing eq 1".to_owned();
    let request = QueryEntitiesRequest { filter, ..Default::default() };

    let (entities, page) = with_retries(async || table.page(request.clone()).await).await;

    assert_eq!(entities, []);
    assert_ne!(page.next_page_token, "", "one call cannot examine 300 after they were written");
    assert!((1..300).contains(&page.cost.unwrap().scanned), "{:?}", page.cost);
}

#[tokio::test]
async fn throttled_stream_slows_down_and_is_complete() {
    let world = world(HUNDRED).await;
    let table = world.table("streams").await;
    assert_eq!(table.import(None, vec![rows(300)]).await.unwrap(), []);

    let started = Instant::now();
    let all = StreamEntitiesRequest::default();
    let messages = with_retries(async || table.stream(all.clone()).await).await;

    let entities = messages.iter().flat_map(|m| decode_entities(&m.entities).unwrap());
    assert_eq!(entities.map(|entity| entity.row_key).collect::<Vec<_>>(), names(300));
    assert!(messages.len() > 1);
    // At most a hundred tokens were available; the others were refilled meanwhile.
    assert!(started.elapsed() > Duration::from_secs(1), "{:?}", started.elapsed());
}

#[tokio::test]
async fn throttled_import_slows_down_and_is_complete() {
    let world = world(HUNDRED).await;
    let table = world.table("imports").await;
    let started = Instant::now();

    let failures = table.import(Some(WriteMode::Replace), vec![rows(200), rows(200)]).await;

    assert_eq!(failures.unwrap(), []);
    assert!(started.elapsed() > Duration::from_secs(2), "{:?}", started.elapsed());
    let found = with_retries(async || table.get("p", "0199").await).await;
    assert_eq!(found.row_key, "0199");
}

#[tokio::test]
async fn import_rejects_an_entity_that_exceeds_the_maximum_wait() {
    let limits = [("PARTITION_ENTITIES_PER_SECOND", "1"), ("PARTITION_BURST_ENTITIES", "100")];
    let world = world(&limits).await;
    let table = world.table("impatient").await;
    let text = "x".repeat(30_000);
    let large = |row: &str| entity("p", row, ["a", "b", "c"].map(|name| string(name, &text)));
    let chunk = vec![large("0"), large("1"), large("2"), plain("q", "r")];

    let failures = table.import(None, vec![chunk]).await.unwrap();

    // The first takes 88 of 100 tokens. The others would wait for more than a minute.
    let indexes: Vec<u64> = failures.iter().map(|(index, _)| *index).collect();
    assert_eq!(indexes, [1, 2], "{failures:?}");
    for (_, status) in failures {
        assert_eq!(Code::from(status.code), Code::ResourceExhausted);
    }
    assert!(table.get("p", "0").await.is_ok());
    assert!(table.get("q", "r").await.is_ok());
}

#[tokio::test]
async fn hottest_partitions_are_reported_with_keys_only_if_allowed() {
    for (shown, setting) in [(false, "false"), (true, "true")] {
        let server = server("all", &[("SHOW_PARTITION_KEYS", setting)]);
        let admin = server.address("admin");
        let world = World::of(server).await;
        let table = world.table("watched").await;
        assert_eq!(table.import(None, vec![rows(100)]).await.unwrap(), []);
        table
            .batch((0..50).map(|row| insert_op(plain("secret", &row.to_string()))).collect())
            .await
            .unwrap();

        let metrics = page(&admin, "/metrics").await;
        let page = page(&admin, "/hot-partitions").await;

        let rate = |rank: u32| {
            let series =
                format!("trestle_partition_hottest_per_second{{trestle_partition_rank=\"{rank}\"");
            metric(&metrics, &series)
        };
        assert!(rate(1) >= rate(2) && rate(2) > Some(0.0), "{metrics}");
        // Ranks without a partition are not reported.
        assert_eq!((rate(3), rate(10)), (None, None), "{metrics}");
        assert!(!metrics.contains("watched") && !metrics.contains("secret"), "{metrics}");
        assert!(page.contains("\"account\": \"devstoreaccount1\""), "{page}");
        assert!(page.contains("\"table\": \"watched\""), "{page}");
        assert_eq!(page.contains("secret"), shown, "{page}");
        assert!(page.contains("\"throttled\": 0"), "{page}");
    }
}

#[tokio::test]
async fn reload_changes_limits_and_ignores_invalid_ones() {
    let directory = tempfile::tempdir().unwrap();
    let (config, log) = (directory.path().join("trestle.toml"), directory.path().join("log"));
    let limits = |numbers: &str| replace_file(&config, &format!("[quotas]\n{numbers}"));
    limits("partition_entities_per_second = 1\npartition_burst_entities = 10\n");
    let args = ["--ephemeral", "--config", config.to_str().unwrap()];
    let world = World::of(Server::start_logging(&log, &args, &[])).await;
    let table = world.table("uneven").await;
    insert_until_rejected(&table, |_| "p".to_owned()).await;

    limits("partition_entities_per_second = 1000000001\n");
    world.hang_up();
    while !fs::read_to_string(&log).unwrap().contains("must be 0 to") {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let broken = insert_until_rejected(&table, |_| "q".to_owned()).await;
    limits("");
    world.hang_up();
    let lifted = async {
        while table.batch((0..100).map(|_| insert_op(fresh("p"))).collect()).await.is_err() {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };

    assert!((10..70).contains(&broken.0), "{broken:?}");
    let lifted = tokio::time::timeout(HANG, lifted).await;
    assert!(lifted.is_ok(), "still limited");
}

/// An entity that does not exist.
fn fresh(partition: &str) -> Entity {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    plain(partition, &format!("fresh {}", NEXT.fetch_add(1, Ordering::Relaxed)))
}

#[tokio::test]
async fn quotas_are_off_by_default_and_hottest_partitions_are_tracked() {
    let world = world(&[]).await;
    let table = world.table("free").await;
    let chunks = vec![rows(1000); 4];

    assert_eq!(table.import(Some(WriteMode::Replace), chunks).await.unwrap(), []);
    table.insert(plain("cold", "r")).await.unwrap();
    assert_eq!(table.query("").await.unwrap().len(), 1001);

    let hottest = hottest(&world).await;
    assert_eq!(hottest[0].table, "free");
    assert_eq!(hottest[0].partition_key, "p");
    assert_eq!(hottest[0].throttled, 0);
    assert!(hottest[0].entities_per_second > 50.0, "{hottest:?}");

    for (resource_types, shows_keys) in [("s", false), ("so", true)] {
        let held = world.signed(&token(terms(over_account("t", resource_types), "r")));
        assert_eq!(!self::hottest(&held).await.is_empty(), shows_keys, "{resource_types}");
    }
}
