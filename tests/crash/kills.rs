//! `kill -9` at random instants under load, again and again on one data directory.

use std::{
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use rand::{RngExt as _, SeedableRng as _, rngs::StdRng};
use tempfile::TempDir;
use tonic::transport::Channel;
use trestle_tests::{Server, Table, server_binary};

use crate::{
    contents::{Contents, MAIN},
    start,
    writer::{Writer, create, crew, resolve, work},
};

/// Kills under load, at least, of a run by default.
const KILLS: usize = 24;
/// The time limit of a run.
const KILLS_MAX: usize = 10 * KILLS;
/// Fewest acknowledged writes of a run: it continues until then.
const ACKNOWLEDGED_MIN: u64 = 1_000;

/// Runs the writers until the server is killed.
async fn work_and_kill(crew: Vec<Writer>, server: Server, after: Duration) -> Vec<Writer> {
    let channel = server.channel();
    let (crew, ()) = tokio::join!(work(crew, &channel), async {
        tokio::time::sleep(after).await;
        server.kill();
    });
    for writer in &crew {
        let error = writer.error.as_ref().expect("only a failure ends a run");
        assert_eq!(error.reason, "", "the server rejected: {error:?}");
    }
    crew
}

/// Starts a server and kills it before it is ready, most likely while it reads its journal.
async fn kill_at_start(data: &TempDir, after: Duration) {
    let mut command = Command::new(server_binary());
    command.args(["serve", "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"]);
    command.args(["--azure-table", "off", "--azure-queue", "off", "--azure-blob", "off"]);
    command.arg("--data-dir").arg(data.path()).stdin(Stdio::null()).stdout(Stdio::null());
    let mut child = command.spawn().expect("the server starts");
    tokio::time::sleep(after).await;
    child.kill().expect("the server is killed");
    child.wait().expect("the server ends");
}

async fn see(server: &Server, crew: &mut [Writer]) -> Channel {
    let channel = server.channel();
    let contents = Contents::take(&channel).await;
    resolve(crew, &contents);
    channel
}

/// Acknowledged writes of all writers.
fn acknowledged(crew: &[Writer]) -> u64 {
    crew.iter().map(|writer| writer.acknowledged.made()).sum()
}

/// The seed in `CRASH_SEED`, to repeat a run; else a new one.
#[allow(clippy::disallowed_methods, reason = "no setting of the product")]
pub(crate) fn seed() -> u64 {
    match std::env::var("CRASH_SEED") {
        Ok(seed) => seed.parse().expect("CRASH_SEED is a number"),
        Err(_) => rand::random(),
    }
}

/// The time until a kill in one of the rounds that were added because earlier ones acknowledged too little: twice as
/// long for each time that as many rounds were added as planned, since the machine is slow.
pub(crate) fn lengthened(after: Duration, times: usize) -> Duration {
    after * (1 << times.min(5))
}

/// Kills of this run: `CRASH_KILLS`, or else few.
#[allow(clippy::disallowed_methods, reason = "no setting of the product")]
fn kills_expected() -> usize {
    let kills = std::env::var("CRASH_KILLS").ok();
    kills.map_or(KILLS, |kills| kills.parse().expect("CRASH_KILLS is a number"))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn acknowledged_writes_survive_random_kills_and_batches_stay_atomic() {
    let seed = seed();
    println!("to repeat: CRASH_SEED={seed}");
    let mut random = StdRng::seed_from_u64(seed);
    let data = tempfile::tempdir().unwrap();
    let mut crew = crew();
    let mut server = start(&data, &[]);
    create(&Table::over(&server.channel(), MAIN)).await.unwrap();
    let began = Instant::now();

    let (mut kills, expected) = (0, kills_expected());
    while kills < expected || acknowledged(&crew) < ACKNOWLEDGED_MIN {
        assert!(
            kills < expected.max(KILLS_MAX),
            "only {} acknowledged writes",
            acknowledged(&crew)
        );
        let after = Duration::from_micros(random.random_range(20_000..600_000));
        let after = lengthened(after, kills / KILLS);
        crew = work_and_kill(crew, server, after).await;
        if kills % 4 == 3 {
            let after = Duration::from_micros(random.random_range(0..60_000));
            kill_at_start(&data, after).await;
        }
        server = start(&data, &[]);
        see(&server, &mut crew).await;
        kills += 1;
    }

    let elapsed = began.elapsed();
    let acknowledged = acknowledged(&crew);
    println!("{kills} kills, {acknowledged} acknowledged writes, in {elapsed:?}");
    assert!(acknowledged >= ACKNOWLEDGED_MIN, "only {acknowledged} acknowledged writes");
    let idle: Vec<&Writer> = crew.iter().filter(|writer| writer.acknowledged.made() == 0).collect();
    assert!(idle.is_empty(), "never acknowledged: {idle:?}");
    assert_eq!(server.terminate(), Some(0));
}
