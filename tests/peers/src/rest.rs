//! The protocol of Azure Storage: tables and queues of Trestle beside those of Azurite, and beside its own gRPC.
//!
//! The same client drives both servers over persistent connections of HTTP/1.1. It builds requests as bytes and
//! signs each with the key of the account, as every official client does, and does nothing else for them, so that most
//! of the two cores is left to the server.

mod calls;
mod grpc;
mod held;
mod report;
mod sides;
mod sign;

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use self::{
    calls::{Caller, Operation},
    report::Sums,
    sides::Side,
};
use crate::{load::Plan, servers::Installed};

/// Connections of a turn, each with one call under way.
pub(crate) const CONNECTIONS: usize = 32;
/// What is compared with Azurite, deletes after the inserts that they undo.
const BESIDE_AZURITE: [Operation; 10] = [
    Operation::Insert,
    Operation::Delete,
    Operation::Get,
    Operation::PageOf100,
    Operation::PageOf1000,
    Operation::Update,
    Operation::Merge,
    Operation::Upsert,
    Operation::Batch,
    Operation::QueueCycle,
];
/// What is compared with gRPC.
const BESIDE_GRPC: [Operation; 6] = [
    Operation::Get,
    Operation::Insert,
    Operation::PageOf100,
    Operation::PageOf1000,
    Operation::Batch,
    Operation::QueueSend,
];

/// Runs every comparison that the installed servers allow.
pub(crate) async fn run(installed: &Installed, plan: Plan) {
    let began = Instant::now();
    let ours = sides::trestle(installed).await.expect("trestle starts");
    match sides::azurite(installed).await {
        Ok(theirs) => beside_azurite([ours, theirs], plan).await,
        Err(reason) => println!("SKIPPED: azurite: {reason}"),
    }
    let ours = sides::trestle(installed).await.expect("trestle starts");
    beside_grpc(&ours, plan).await;
    drop(ours);
    held::run(installed).await;
    println!("\nin {:.0} s", began.elapsed().as_secs_f64());
}

/// Whether an operation is to be measured: `BENCH_ONLY` is a part of its name.
fn is_expected(operation: &Operation) -> bool {
    std::env::var("BENCH_ONLY").map_or(true, |part| operation.name().contains(&part))
}

async fn beside_azurite(sides: [Side; 2], plan: Plan) {
    for side in &sides {
        calls::fill(side, plan.backlog).await;
    }
    report::azurite_header();
    for operation in BESIDE_AZURITE.into_iter().filter(is_expected) {
        let mut sums = [Sums::default(), Sums::default()];
        for _ in 0..plan.rounds {
            for (side, sums) in sides.iter().zip(&mut sums) {
                sums.add(turn(side, operation, plan.turn).await);
            }
        }
        report::beside_azurite(operation, &sums);
    }
}

async fn beside_grpc(ours: &Side, plan: Plan) {
    calls::fill(ours, plan.backlog).await;
    let channels = grpc::Channels::open(ours).await;
    report::grpc_header();
    for operation in BESIDE_GRPC.into_iter().filter(is_expected) {
        let (mut rest, mut grpc) = (Sums::default(), Sums::default());
        for _ in 0..plan.rounds {
            rest.add(turn(ours, operation, plan.turn).await);
            grpc.add(grpc::turn(ours, &channels, operation, plan.turn).await);
        }
        report::beside_grpc(operation, &rest, &grpc);
    }
}

/// The result of a turn.
#[derive(Clone, Copy, Default)]
struct Done {
    /// Calls; entities of a batch.
    units: u64,
    seconds: f64,
    server_cpu_us: f64,
}

/// One turn of an operation on every connection. It ends early where nothing is left to delete.
async fn turn(side: &Side, operation: Operation, time: Duration) -> Done {
    let mut callers = Vec::new();
    for _ in 0..CONNECTIONS {
        callers.push(Caller::open(side, operation).await);
    }
    let calls = callers.into_iter().map(|mut caller| async move {
        let (mut units, began) = (0, Instant::now());
        while began.elapsed() < time {
            match caller.call(operation).await {
                0 => break,
                more => units += more,
            }
        }
        units
    });
    side.measure(calls).await
}

impl Side {
    /// Runs the tasks of callers, each of which returns its number of units.
    async fn measure<C>(&self, callers: impl Iterator<Item = C>) -> Done
    where
        C: Future<Output = u64> + Send + 'static,
    {
        let before = self.server.cpu_us();
        let began = Instant::now();
        let tasks: Vec<_> = callers.map(tokio::spawn).collect();
        let mut units = 0;
        for task in tasks {
            units += task.await.expect("a caller does not fail");
        }
        let seconds = began.elapsed().as_secs_f64();
        Done { units, seconds, server_cpu_us: self.server.cpu_us() - before }
    }
}

/// Numbers that no two calls share.
#[derive(Clone, Default)]
pub(crate) struct Numbers {
    /// How many entities were inserted one by one.
    inserted: Arc<AtomicU64>,
    /// How many of these were deleted.
    deleted: Arc<AtomicU64>,
    /// Every other call.
    other: Arc<AtomicU64>,
}

impl Numbers {
    fn insert(&self) -> u64 {
        self.inserted.fetch_add(1, Ordering::Relaxed)
    }

    /// An existing entity that no other client deletes; none when all are deleted.
    fn delete(&self) -> Option<u64> {
        let number = self.deleted.fetch_add(1, Ordering::Relaxed);
        (number < self.inserted.load(Ordering::Relaxed)).then_some(number)
    }

    fn other(&self) -> u64 {
        self.other.fetch_add(1, Ordering::Relaxed)
    }
}
