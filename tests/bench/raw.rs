//! The ceiling of a write: group commits of the engine with nothing above it.

use std::{
    io::{BufRead as _, Write as _, stdin},
    path::Path,
    process::Command,
    sync::Arc,
    time::Duration,
};

use bytes::Bytes;
use trestle_kv::{Change, ChangeSpec, Domain, Engine, Lock, Reads, Version, Write, Writes};
use trestle_kv_fjall::{FjallEngine, FjallOptions};
use trestle_table::{KEYSPACES, keys};

use crate::{drive, drive::Done, server::Process};

/// The engine in a process of its own.
pub(crate) struct RawEngine(Process);

impl RawEngine {
    /// Opens an engine on a directory; `prepare` may change the command.
    pub(crate) fn start(directory: &Path, prepare: impl Fn(&mut Command)) -> Self {
        let mut command = Process::own("engine");
        command.env("TRESTLE_BENCH_DIR", directory);
        prepare(&mut command);
        Self(Process::start(&mut command))
    }

    /// Commits changes of `rows` new rows of 1 KiB from `tasks` tasks for a time; counts rows. Without rows, cycles of
    /// three commits as a queue makes them: a large and a small row put, the small one moved, both deleted. Also the
    /// processor time that it took, in microseconds.
    pub(crate) fn commit(&mut self, tasks: usize, rows: usize, time: Duration) -> (Done, f64) {
        let before = self.0.cpu_us();
        let input = self.0.child.stdin.as_mut().unwrap();
        writeln!(input, "{tasks} {rows} {}", time.as_millis()).unwrap();
        input.flush().unwrap();
        let mut line = String::new();
        self.0.stdout.read_line(&mut line).unwrap();
        let mut words = line.split_whitespace();
        let done = Done {
            operations: words.next().unwrap().parse().unwrap(),
            seconds: words.next().unwrap().parse().unwrap(),
        };
        (done, self.0.cpu_us() - before)
    }
}

/// Carries out the commands on standard input.
pub(crate) fn serve() {
    let directory = std::env::var("TRESTLE_BENCH_DIR").unwrap();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let options = FjallOptions::new(directory, KEYSPACES.to_vec());
        let engine = Arc::new(FjallEngine::open(options).unwrap());
        println!("ready");
        for line in stdin().lock().lines() {
            let line = line.unwrap();
            let numbers: Vec<usize> = line.split(' ').map(|word| word.parse().unwrap()).collect();
            let [tasks, rows, millis] = numbers.as_slice() else { panic!("unknown command") };
            let done = run(&engine, *tasks, *rows, Duration::from_millis(*millis as u64)).await;
            println!("{} {}", done.operations, done.seconds);
        }
    });
}

async fn commit(engine: &FjallEngine, writes: Vec<Write>) {
    let mut domains = writes.iter().map(|write| {
        let key = write.key();
        let kind = key.first().copied().unwrap_or_default();
        let keyspace = KEYSPACES.iter().find(|keyspace| keyspace.kinds.contains(&kind)).unwrap();
        Domain::of_key(key, keyspace.domain)
    });
    let mut spec = ChangeSpec::new(domains.next().unwrap());
    for domain in domains {
        spec.also(domain, Lock::Exclusive);
    }
    let mut writes = Some(Writes::from(writes));
    let decide = move |_: &Reads<'_>, _: Version| writes.take().unwrap_or_default();
    engine.commit(Change::new(spec, decide)).await.unwrap();
}

async fn run(engine: &Arc<FjallEngine>, tasks: usize, rows: usize, time: Duration) -> Done {
    let engine = Arc::clone(engine);
    let value = Bytes::from_static(crate::paths::payload().as_bytes());
    drive::drive(tasks, time, move |number| {
        let (engine, value) = (Arc::clone(&engine), value.clone());
        async move {
            let row = |row: usize| {
                let partition = format!("p{:05}", number % 1000);
                let key =
                    keys::row(keys::TableId(1), &partition, &format!("{number:012}-{row:03}"));
                Write::Put { key, value: value.clone() }
            };
            if rows > 0 {
                commit(&engine, (0..rows).map(row).collect()).await;
                return rows as u64;
            }
            let small =
                |position: usize| keys::row(keys::TableId(2), "q", &format!("{number}-{position}"));
            let state = Bytes::from_static(&[7; 42]);
            let put = |key| Write::Put { key, value: state.clone() };
            let delete = |key| Write::Delete { key };
            let body = row(0);
            let (Write::Put { key, .. } | Write::Delete { key }) = body.clone();
            commit(&engine, vec![body, put(small(0))]).await;
            commit(&engine, vec![delete(small(0)), put(small(1))]).await;
            commit(&engine, vec![delete(key), delete(small(1))]).await;
            1
        }
    })
    .await
}
