//! Queues of several servers on one database: each server answers for all of them, and whoever is killed or ends, no
//! acknowledged message is lost, and none is delivered while another delivery of it is not over.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    time::{Duration, Instant},
};

use serde_json::Value;
use tonic::Code;
use trestle_kv_postgres::testing::PostgresServer;
use trestle_proto::queue::v1 as proto;
use trestle_tests::{
    CallError, HANG, Queue, Server, duration, metric, receipt_of, seconds, text, text_of, texts,
};

use crate::{client::succeeds, members::members};

const ROLES: [&str; 2] = ["--roles", "gateway,table,queue"];

fn start(url: &str) -> Server {
    Server::start(&ROLES, &[("TRESTLE__STORAGE__ENGINE", url)])
}

/// A queue at each of these servers.
fn at_each<const N: usize>(servers: [&Server; N], name: &str) -> [Queue; N] {
    servers.map(|server| Queue::over(&server.channel(), name))
}

async fn create(queue: &Queue, settings: proto::Queue) {
    let settings = Some(proto::Queue { name: queue.name(), ..settings });
    queue.client().create_queue(proto::CreateQueueRequest { queue: settings }).await.unwrap();
}

/// Whether a call may be repeated, as clients do: what it did may be there, or not.
fn is_over(error: &CallError) -> bool {
    let codes = [Code::Unavailable, Code::Unknown, Code::Cancelled, Code::Internal];
    codes.contains(&error.code)
}

/// Repeats a call until it is answered.
pub(crate) async fn answered<T>(call: impl AsyncFn() -> Result<T, CallError>) -> T {
    let repeated = async {
        loop {
            match call().await {
                Ok(done) => return done,
                Err(error) => assert!(is_over(&error), "{error:?}"),
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    tokio::time::timeout(HANG, repeated).await.expect("it is answered in the end")
}

/// What a consumer gets that waits until something is there.
async fn arrived(queue: &Queue) -> Vec<proto::Delivery> {
    let waited = async {
        loop {
            let delivered = queue.wait(seconds(20)).await.unwrap();
            if !delivered.is_empty() {
                return delivered;
            }
        }
    };
    tokio::time::timeout(HANG, waited).await.expect("it arrives")
}

/// Calls that a server forwarded to others.
async fn forwarded(server: &Server) -> f64 {
    metric(&server.page("/metrics").await, "trestle_store_forwarded").unwrap_or_default()
}

/// The jobs of the three processes that `trestle status` shows, once it shows that they serve as many queues.
async fn shown(server: &Server, queues: u64) -> Vec<String> {
    let deadline = Instant::now() + HANG;
    loop {
        let status = succeeds(server, &["status", "-o", "json"]).output;
        let status: Value = serde_json::from_str(&status).expect("JSON");
        let processes = status["processes"].as_array().expect("a list");
        let served: Vec<_> = processes.iter().filter_map(|it| it["queues"].as_u64()).collect();
        if served.len() == 3 && served.iter().sum::<u64>() == queues {
            let jobs = processes.iter().flat_map(|it| it["jobs"].as_array().expect("a list"));
            let mut jobs: Vec<_> = jobs.map(|job| job.as_str().unwrap().to_owned()).collect();
            jobs.sort();
            return jobs;
        }
        assert!(Instant::now() < deadline, "{status:#}");
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_server_answers_for_all_queues() {
    let Some(postgres) = PostgresServer::start(&[]).await else { return };
    let url = postgres.url(&postgres.database().await);
    let servers = [start(&url), start(&url), start(&url)];
    for server in &servers {
        members(server, 3).await;
    }
    let [a, b, c] = &servers;
    for number in 0..12 {
        let dead = format!("dead-{number}");
        let [first, second, third] = at_each([a, b, c], &format!("work-{number}"));
        let [dead_first, dead_second, _] = at_each([a, b, c], &dead);
        create(&dead_first, proto::Queue::default()).await;
        let dead_letter = Some(proto::DeadLetterPolicy { queue: dead, max_dequeue_count: 1 });
        create(&second, proto::Queue { dead_letter, ..Default::default() }).await;

        // A consumer at one server gets what is sent at another one, deletes and updates at the third.
        let (delivered, sent) = tokio::join!(arrived(&first), second.send(text("one")));
        sent.unwrap();
        assert_eq!(texts(&delivered), ["one"]);
        let gone = third.delete(receipt_of(&delivered[0])).await;
        gone.unwrap();

        // Its dead letters may be in a queue of another server, where a consumer waits.
        third.send(text("two")).await.unwrap();
        let poison = second.receive(1, seconds(60)).await.unwrap();
        assert_eq!(texts(&poison), ["two"]);
        first.update(receipt_of(&poison[0]), duration(Duration::ZERO), None).await.unwrap();
        let exhausted = third.receive(1, seconds(60));
        let (dead, exhausted) = tokio::join!(arrived(&dead_second), exhausted);
        assert_eq!((texts(&dead), exhausted.unwrap()), (vec!["two"], vec![]));
        dead_first.update(receipt_of(&dead[0]), duration(Duration::ZERO), None).await.unwrap();
        assert_eq!(dead_first.redrive("", 10).await.unwrap(), 1);
        assert_eq!(texts(&second.receive(1, seconds(60)).await.unwrap()), ["two"]);
        assert_eq!((third.count().await, dead_first.count().await), (1, 0));
        third.clear().await.unwrap();
        assert_eq!(third.peek(1).await.unwrap(), []);
        third.drop_queue().await.unwrap();
    }
    for server in &servers {
        assert!(forwarded(server).await > 0.0, "none is the owner of all");
        assert_eq!(shown(server, 12).await, ["queue-sweep", "table-sweep"], "each once");
    }
    for server in servers {
        assert_eq!(server.terminate(), Some(0));
    }
}

/// What clients saw of one queue.
#[derive(Debug, Default)]
struct Seen {
    sent: BTreeSet<String>,
    /// By text: the number of the delivery whose receipt deleted it.
    deleted: BTreeMap<String, u32>,
    /// By text: when each delivery began and when it was over, by the time of the store, and its number.
    deliveries: BTreeMap<String, Vec<(i128, i128, u32)>>,
}

const VISIBILITY: Duration = Duration::from_secs(2);

fn nanos(time: &prost_types::Timestamp) -> i128 {
    i128::from(time.seconds) * 1_000_000_000 + i128::from(time.nanos)
}

impl Seen {
    fn add(&mut self, delivery: &proto::Delivery) {
        let message = delivery.message.as_ref().unwrap();
        let end = nanos(delivery.next_visible_time.as_ref().unwrap());
        let begin = end - i128::try_from(VISIBILITY.as_nanos()).unwrap();
        let seen = self.deliveries.entry(text_of(message).to_owned()).or_default();
        seen.push((begin, end, message.dequeue_count));
    }

    /// Why this cannot be, if so.
    fn violation(&self) -> Option<String> {
        let never = self.deliveries.keys().find(|text| !text.starts_with("job"));
        if let Some(text) = never {
            return Some(format!("never sent: {text}"));
        }
        let lost = self.sent.iter().find(|text| !self.deliveries.contains_key(*text));
        if let Some(text) = lost {
            return Some(format!("lost: {text}"));
        }
        let after = self.deleted.iter().find(|(text, number)| {
            let seen = self.deliveries.get(*text).into_iter().flatten();
            seen.into_iter().any(|delivery| delivery.2 > **number)
        });
        if let Some((text, _)) = after {
            return Some(format!("delivered after it was deleted: {text}"));
        }
        self.deliveries.iter().find_map(|(text, seen)| {
            let mut seen = seen.clone();
            seen.sort_unstable();
            let wrong = seen.windows(2).find(|pair| {
                let (earlier, later) = (pair[0], pair[1]);
                later.0 < earlier.1 || later.2 <= earlier.2
            });
            wrong.map(|pair| format!("delivered twice at a time, or counts fell: {text} {pair:?}"))
        })
    }
}

#[test]
fn violations_of_a_queue_are_found_where_there_are_some() {
    let seen = |deliveries: &[(i128, i128, u32)]| Seen {
        sent: BTreeSet::from(["job".to_owned()]),
        deliveries: BTreeMap::from([("job".to_owned(), deliveries.to_vec())]),
        ..Seen::default()
    };
    assert_eq!(seen(&[(0, 2, 1), (2, 4, 2)]).violation(), None);
    let overlapping = seen(&[(0, 2, 1), (1, 3, 2)]).violation().unwrap();
    let fallen = seen(&[(0, 2, 2), (2, 4, 1)]).violation().unwrap();
    assert!(overlapping.contains("delivered twice") && fallen.contains("counts fell"));
    let mut deleted = seen(&[(0, 2, 1), (2, 4, 2)]);
    deleted.deleted.insert("job".to_owned(), 1);
    assert!(deleted.violation().unwrap().starts_with("delivered after"));
    let lost = Seen { deliveries: BTreeMap::new(), ..seen(&[]) }.violation().unwrap();
    assert!(lost.starts_with("lost"), "{lost}");
}

/// A client of several servers, of which some are gone.
struct Client {
    queues: Vec<Queue>,
    seen: Arc<Mutex<Seen>>,
    sent: Arc<AtomicUsize>,
}

impl Client {
    /// The queue at any of the servers.
    fn queue(&self) -> &Queue {
        &self.queues[self.sent.fetch_add(1, Relaxed) % self.queues.len()]
    }

    async fn send(&self, name: &str) {
        let send = async || {
            let sent = self.queue().send_as(name, vec![text(name)]).await?;
            sent.into_iter().next().expect("an outcome")
        };
        answered(send).await;
        self.seen.lock().unwrap().sent.insert(name.to_owned());
    }

    /// Receives, and deletes half of it: the rest comes again.
    async fn receive(&self, deletes: bool) -> usize {
        let receive = async || self.queue().receive(4, duration(VISIBILITY)).await;
        let delivered = answered(receive).await;
        for delivery in &delivered {
            self.seen.lock().unwrap().add(delivery);
            let number = delivery.message.as_ref().unwrap().dequeue_count;
            if deletes || number > 1 {
                self.delete(delivery).await;
            }
        }
        delivered.len()
    }

    async fn delete(&self, delivery: &proto::Delivery) {
        let message = delivery.message.as_ref().unwrap();
        let name = text_of(message).to_owned();
        match self.queue().delete(receipt_of(delivery)).await {
            Ok(()) => {
                let mut seen = self.seen.lock().unwrap();
                let before = seen.deleted.insert(name.clone(), message.dequeue_count);
                assert_eq!(before, None, "deleted twice: {name}");
            }
            // Its time may be over, or it was deleted without an answer.
            Err(error) => assert!(is_over(&error) || error.code == Code::NotFound, "{error:?}"),
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_message_is_lost_or_delivered_twice_at_a_time_while_servers_are_killed_and_end() {
    const JOBS: usize = 60;
    const CLIENTS: usize = 4;
    let Some(postgres) = PostgresServer::start(&["fsync=on"]).await else { return };
    let url = postgres.url(&postgres.database().await);
    let (kept, killed, ended) = (start(&url), start(&url), start(&url));
    members(&kept, 3).await;
    let names: Vec<_> = (0..6).map(|number| format!("jobs-{number}")).collect();
    let mut clients = Vec::new();
    for name in &names {
        let queues = at_each([&kept, &killed, &ended], name);
        create(&queues[0], proto::Queue::default()).await;
        let (seen, sent) = (Arc::default(), Arc::default());
        clients.push(Arc::new(Client { queues: queues.to_vec(), seen, sent }));
    }

    let done = AtomicUsize::new(0);
    let work =
        clients.iter().flat_map(|client| (0..CLIENTS).map(|part| (Arc::clone(client), part)));
    let work = work.map(async |(client, part)| {
        for job in 0..JOBS / CLIENTS {
            client.send(&format!("job {part}.{job}")).await;
            client.receive(job % 2 == 0).await;
            done.fetch_add(1, Relaxed);
        }
    });
    let total = names.len() * JOBS;
    let until = async |share: usize| {
        while done.load(Relaxed) < total * share / 4 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    let end = async {
        until(1).await;
        killed.kill();
        until(2).await;
        let ended = tokio::task::spawn_blocking(|| ended.terminate());
        assert_eq!(ended.await.unwrap(), Some(0));
    };
    tokio::join!(futures::future::join_all(work), end);

    for client in &clients {
        let alive = Client {
            queues: vec![client.queues[0].clone()],
            seen: Arc::clone(&client.seen),
            sent: Arc::default(),
        };
        let empty = async {
            while alive.queue().count().await > 0 {
                alive.receive(true).await;
            }
        };
        tokio::time::timeout(HANG, empty).await.expect("the queue is emptied");
        let seen = client.seen.lock().unwrap();
        assert_eq!(seen.sent.len(), JOBS);
        assert_eq!(seen.violation(), None);
    }
    assert_eq!(kept.terminate(), Some(0));
}
