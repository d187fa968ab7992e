use std::collections::HashSet;

use serde_json::json;
use trestle_kv::MemoryEngine;
use trestle_model::{name::AccountName, time::ManualClock};
use trestle_rpc::quota::{Quota, Quotas, Rate};

use super::*;
use crate::database::text_row::replace_text;

/// A store that processes of a test share, by a clock that the test moves.
struct World {
    clock: Arc<ManualClock>,
    engine: Arc<dyn Engine>,
}

impl World {
    fn new() -> Self {
        let clock = Arc::new(ManualClock::new(Ticks::new(1 << 60).expect("in range")));
        let engine = Arc::new(MemoryEngine::with_clock([KEYSPACE], Arc::clone(&clock) as _));
        Self { clock, engine }
    }

    fn process(&self, id: &str, roles: &str) -> StoreMembers {
        let default = Quota { account: Rate::new(900, 90), ..Quota::default() };
        let quotas = LiveQuotas::new(Quotas { default, ..Quotas::default() });
        let own = StoreMember::new(id, roles.to_owned(), format!("http://{id}:1"));
        let secret = GatewaySecret::of_store(&"s".repeat(32)).expect("a secret");
        let links = PeerLinks::new(&Settings::default(), secret);
        let store = SharedStore::new(Arc::clone(&self.engine), own, (quotas, links));
        StoreMembers(Some(Arc::new(store)))
    }

    async fn rows(&self) -> usize {
        let scanned = self.engine.scan(&Span::prefix(&[MEMBER]), ROWS).await;
        scanned.expect("a scan").entries.len()
    }
}

fn store(members: &StoreMembers) -> &SharedStore {
    members.0.as_ref().expect("a store that is shared")
}

/// As the task does, in each of these processes: the second look of each knows all of them.
async fn tick(processes: &[&StoreMembers]) {
    for process in processes.iter().chain(processes) {
        store(process).renew().await.expect("a renewal");
        store(process).read_others(Duration::ZERO).await.expect("a look");
    }
}

/// Tokens a second that an account has in a process.
fn rate(members: &StoreMembers) -> u64 {
    let account = AccountName::parse("someaccount").expect("a name");
    store(members).quotas.of(&account).account.expect("a limit").per_second()
}

#[tokio::test]
async fn processes_that_serve_tables_share_rates_as_long_as_they_renew_their_rows() {
    let world = World::new();
    let (a, b) = (world.process("a", "gateway,table"), world.process("b", "gateway,table"));
    let (c, other) = (world.process("c", "gateway,table,queue"), world.process("d", "queue"));
    assert_eq!(rate(&a), 900, "before the first look");

    tick(&[&a, &other]).await;
    assert_eq!(rate(&a), 900, "one with other roles has no share");
    tick(&[&a, &b, &c]).await;
    assert_eq!([&a, &b, &c].map(rate), [300; 3]);

    // The last one is killed, and the others go on.
    world.clock.advance(LIFE - EVERY);
    tick(&[&a, &b]).await;
    assert_eq!([&a, &b].map(rate), [300; 2], "it may be slow");
    world.clock.advance(2 * EVERY);
    tick(&[&a, &b]).await;
    assert_eq!([&a, &b].map(rate), [450; 2]);
    let shown: serde_json::Value = serde_json::from_str(&store(&a).json()).expect("JSON");
    let shown: Vec<_> = shown["members"].as_array().expect("a list").iter().collect();
    let ids: Vec<_> = shown.iter().map(|row| row["instance_id"].as_str()).collect();
    assert_eq!(ids, [Some("a"), Some("b")], "neither has a row that was not renewed");
    assert_eq!((&shown[0]["this"], &shown[1]["address"]), (&json!(true), &json!("http://b:1")));
}

#[tokio::test]
async fn rows_of_processes_that_are_gone_are_removed_unless_they_come_back() {
    let world = World::new();
    let (a, b) = (world.process("a", "table"), world.process("b", "table"));
    tick(&[&a, &b]).await;
    world.clock.advance(LIFE + KEPT);
    tick(&[&a]).await;
    assert_eq!(world.rows().await, 2, "its time is not over");

    world.clock.advance(EVERY);
    let scanned = world.engine.scan(&Span::prefix(&[MEMBER, b'b']), ROWS).await.expect("a scan");
    let seen = StoreMember::decode(&scanned.entries[0]).expect("the row");
    store(&b).renew().await.expect("a renewal");
    store(&a).remove_gone(seen).await.expect("a removal");
    assert_eq!(world.rows().await, 2, "it was renewed meanwhile");

    world.clock.advance(LIFE + KEPT + EVERY);
    tick(&[&a]).await;
    assert_eq!(world.rows().await, 1);
}

#[tokio::test]
async fn a_process_that_leaves_has_no_share_any_more() {
    let world = World::new();
    let (a, b) = (world.process("a", "table"), world.process("b", "table"));
    tick(&[&a, &b]).await;
    assert_eq!(store(&a).changes.count(), 1, "b came");
    b.leave().await;
    tick(&[&a]).await;
    assert_eq!((world.rows().await, rate(&a)), (1, 900));
    assert_eq!(store(&a).changes.count(), 2, "and went");
    assert_eq!(store(&b).changes.count(), 0, "its first look found all");
}

#[tokio::test]
async fn each_job_is_done_by_one_process_and_only_those_of_one_that_is_gone_move() {
    let jobs: Vec<&'static str> = (0..32).map(|job| &*format!("job-{job}").leak()).collect();
    let world = World::new();
    let [a, b, c] = ["a", "b", "c"].map(|id| world.process(id, "table"));
    for members in [&a, &b, &c] {
        jobs.iter().for_each(|job| drop(members.job(TABLE.name, job)));
    }
    let done_by =
        |members: &StoreMembers| -> HashSet<_> { store(members).own_jobs().into_iter().collect() };
    assert_eq!(done_by(&a).len(), jobs.len(), "as long as it knows no other one");
    tick(&[&a, &b, &c]).await;
    let [of_a, of_b, of_c] = [&a, &b, &c].map(done_by);
    assert_eq!(of_a.len() + of_b.len() + of_c.len(), jobs.len());
    assert!(
        [&of_a, &of_b, &of_c].iter().all(|jobs| !jobs.is_empty()),
        "{of_a:?} {of_b:?} {of_c:?}"
    );

    let listed = b.processes().list();
    for (process, own) in listed.iter().zip([&of_a, &of_b, &of_c]) {
        assert_eq!(process.roles, ["table"]);
        assert_eq!(process.jobs.iter().map(|job| &**job).collect::<HashSet<_>>(), *own);
    }

    world.clock.advance(LIFE - EVERY);
    tick(&[&a, &b]).await;
    world.clock.advance(2 * EVERY);
    tick(&[&a, &b]).await;
    let [after_a, after_b] = [&a, &b].map(done_by);
    assert!(after_a.is_superset(&of_a) && after_b.is_superset(&of_b));
    assert_eq!(after_a.len() + after_b.len(), jobs.len());
}

#[tokio::test]
async fn rows_of_another_version_are_left_alone() {
    let world = World::new();
    let a = world.process("a", "table");
    let put = |_: &Reads<'_>, _: Version| {
        let mut writes = Writes::new();
        writes.put(vec![MEMBER, b'z'], vec![FORMAT + 1, 7]);
        Ok::<_, CommitError>((writes, ()))
    };
    transact(&*world.engine, ChangeSpec::new(domain()), put).await.expect("a commit").expect("ok");
    tick(&[&a]).await;
    world.clock.advance(LIFE + KEPT + EVERY);
    tick(&[&a]).await;
    assert_eq!((world.rows().await, rate(&a)), (2, 900));
}

#[tokio::test]
async fn each_queue_is_served_by_one_process_and_those_of_one_that_leaves_at_once_by_others() {
    let queues: Vec<_> = (0..64).map(|number| format!("queue-{number}")).collect();
    let world = World::new();
    let [a, b] = ["a", "b"].map(|id| world.process(id, "table,queue"));
    let c = world.process("c", "gateway,table");
    tick(&[&a, &b, &c]).await;
    let here = |members: &StoreMembers| -> HashSet<&String> {
        let placement = members.queues().expect("a store that is shared");
        queues.iter().filter(|queue| placement.elsewhere("account", queue).is_none()).collect()
    };
    let (of_a, of_b) = (here(&a), here(&b));
    assert!(of_a.is_disjoint(&of_b) && of_a.len() + of_b.len() == queues.len());
    assert!(!of_a.is_empty() && !of_b.is_empty());
    assert_eq!(here(&c).len(), 0, "it has not the role");

    // Every process counts them the same, also one that serves none.
    for members in [&a, &c] {
        let mut owners = members.count_queues();
        assert!(members.processes().list().iter().all(|process| process.queues.is_none()));
        queues.iter().for_each(|queue| owners.count("account", queue));
        owners.publish();
        let listed = members.processes().list();
        let counts: Vec<_> = listed.iter().map(|it| (&*it.instance_id, it.queues)).collect();
        let [of_a, of_b] = [&of_a, &of_b].map(|queues| Some(queues.len() as u64));
        assert_eq!(counts, [("a", of_a), ("b", of_b), ("c", Some(0))]);
    }

    // It forwards what comes before the others know.
    b.leave().await;
    assert_eq!((here(&b).len(), here(&a).len()), (0, of_a.len()));
    store(&a).read_others(Duration::ZERO).await.expect("a look");
    assert_eq!(here(&a).len(), queues.len());
    assert!(!store(&b).is_renewal_due());
}

#[test]
fn versions_of_the_program_agree_where_a_queue_is() {
    // XXH3 with 64 bits of "account\0queue\0id", by another implementation.
    assert_eq!(placement::weight(&["account", "queue"], b"id"), 10_040_444_548_539_530_490);
}

#[tokio::test]
async fn the_processes_of_a_store_have_one_secret() {
    let world = World::new();
    let first = secret::of_store(&*world.engine, || 7).await.expect("made");
    let second = secret::of_store(&*world.engine, || 8).await.expect("read");
    assert_eq!(first.header(), second.header());
    tick(&[&world.process("a", "table")]).await;
    assert_eq!(world.rows().await, 1, "it is no process");
}

#[test]
fn a_store_of_one_process_has_none() {
    let members = StoreMembers(None);
    assert!(members.job(TABLE.name, "any").is_ours());
    assert!(members.task().is_none() && members.page().is_none());
    assert!(members.secret().is_none() && members.queues().is_none());
    assert!(members.processes().list().is_empty());
    members.count_queues().publish();
}

#[tokio::test]
async fn a_process_does_not_enter_a_store_with_an_unfinished_copy() {
    let clock = Arc::new(ManualClock::new(Ticks::new(1 << 60).expect("in range")));
    let engine = MemoryEngine::with_clock([KEYSPACE, marker::KEYSPACE], Arc::clone(&clock) as _);
    let world = World { clock, engine: Arc::new(engine) };
    let a = world.process("a", "table");
    let key = *marker::KEYSPACE.kinds.start();
    let mark = async |found: Option<&str>, text: Option<&str>| {
        let [found, text] = [found, text].map(|text| text.map(str::to_owned));
        assert!(replace_text(&*world.engine, key, found, text).await.expect("a commit"));
    };
    mark(None, Some("a copy")).await;

    assert_eq!(store(&a).enter().await.expect("a commit").as_deref(), Some("a copy"));
    assert_eq!(world.rows().await, 0);

    mark(Some("a copy"), None).await;
    assert_eq!(store(&a).enter().await.expect("a commit"), None);
    assert_eq!(world.rows().await, 1);
}
