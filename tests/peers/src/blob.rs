//! Blobs: Trestle over gRPC, or over REST and gRPC, beside Azurite, Garage, SeaweedFS and s3s-fs over their protocols.
//!
//! Each server gets the same blobs and the same operations, in turns, from as many connections with one call under way
//! on each. Trestle, Garage and SeaweedFS answer a write when it is on disk, and Trestle verifies what it reads.
//! Azurite and s3s-fs do neither: they answer from the page cache of the system. Only requests to Garage are signed for
//! each call; the others cost less than usual.

mod grpc;
mod http;
mod report;
mod sides;

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::{Duration, Instant},
};

use async_trait::async_trait;
use bytes::Bytes;

use self::sides::Side;
use crate::{load::Plan, servers::Installed};

/// Connections of a turn, each with one call under way.
const CONNECTIONS: usize = 16;
/// The container, or bucket.
const CONTAINER: &str = "bench";
const KIB: usize = 1024;
const MIB: usize = 1024 * KIB;
/// Blobs that reads choose from, by their size.
const SMALL_BLOBS: u64 = 256;
const MIDDLE_BLOBS: u64 = 32;
/// Length of the blob that is read whole and in ranges, in bytes.
const LARGE: usize = 256 * MIB;
const RANGE: usize = 64 * KIB;

/// What is measured.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Operation {
    PutSmall,
    GetSmall,
    PutMiddle,
    GetMiddle,
    ReadLarge,
    GetRange,
}

/// Every operation, in the order of the report.
const OPERATIONS: [Operation; 6] = [
    Operation::PutSmall,
    Operation::GetSmall,
    Operation::PutMiddle,
    Operation::GetMiddle,
    Operation::ReadLarge,
    Operation::GetRange,
];

impl Operation {
    fn name(self) -> &'static str {
        match self {
            Self::PutSmall => "put 4 KiB",
            Self::GetSmall => "get 4 KiB",
            Self::PutMiddle => "put 1 MiB",
            Self::GetMiddle => "get 1 MiB",
            Self::ReadLarge => "read 256 MiB (by MiB)",
            Self::GetRange => "get range of 64 KiB",
        }
    }
}

/// A blob, or a part of one.
#[derive(Debug, Clone)]
struct Target {
    name: String,
    /// The first byte and the length, where a part is read.
    range: Option<(usize, usize)>,
}

impl Target {
    fn whole(name: String) -> Self {
        Self { name, range: None }
    }
}

/// A connection to a server, with one call under way.
#[async_trait]
trait Store: Send {
    /// Writes a blob.
    async fn put(&mut self, target: &Target, data: &Bytes);

    /// Reads a blob or a part of it, and returns how many bytes came.
    async fn get(&mut self, target: &Target) -> usize;
}

/// The result of a turn.
#[derive(Clone, Copy)]
struct Done {
    units: u64,
    seconds: f64,
    server_cpu_us: f64,
}

/// Runs every operation on every server that starts.
pub(crate) async fn run(installed: &Installed, plan: Plan) {
    compare(sides::all(installed).await, plan, report::line).await;
}

/// Runs every operation over REST, over gRPC, and on Azurite.
pub(crate) async fn run_rest(installed: &Installed, plan: Plan) {
    compare(sides::of_azure(installed).await, plan, report::rest_line).await;
}

/// Runs every operation on the servers that started, and reports each on a line.
async fn compare(
    started: Vec<(&'static str, Result<Side, String>)>,
    plan: Plan,
    line: fn(Operation, &[Side], &[Vec<Done>]),
) {
    let mut running = Vec::new();
    for (name, started) in started {
        match started {
            Ok(side) => running.push(side),
            Err(reason) => println!("SKIPPED: {name}: {reason}"),
        }
    }
    for side in &running {
        fill(side).await;
    }
    report::header(&running);
    for operation in OPERATIONS {
        let mut sums: Vec<Vec<Done>> = running.iter().map(|_| Vec::new()).collect();
        for _ in 0..plan.rounds {
            for (side, sums) in running.iter().zip(&mut sums) {
                sums.push(turn(side, operation, plan.turn).await);
            }
        }
        line(operation, &running, &sums);
    }
    for side in &running {
        println!("{}: {:.0} MiB resident", side.name, side.server.resident_mib());
    }
}

/// Bytes that do not compress, since a server may try; the same for each length.
fn data(length: usize) -> Bytes {
    let mut state = 0x9E37_79B9_7F4A_7C15_u64;
    let words = std::iter::repeat_with(|| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()
    });
    words.flatten().take(length).collect::<Vec<_>>().into()
}

/// Writes the blobs that are read.
async fn fill(side: &Side) {
    let mut store = side.open().await;
    for (size, count) in [(4 * KIB, SMALL_BLOBS), (MIB, MIDDLE_BLOBS), (LARGE, 1)] {
        let data = data(size);
        for number in 0..count {
            store.put(&Target::whole(format!("{size}-{number}")), &data).await;
        }
    }
}

/// A number that no call had.
fn number() -> u64 {
    static NUMBERS: AtomicU64 = AtomicU64::new(0);
    NUMBERS.fetch_add(1, Ordering::Relaxed)
}

/// Carries out one operation; the number of its units.
async fn call(store: &mut dyn Store, operation: Operation, data: &Bytes) -> u64 {
    let number = number();
    let (target, expected) = match operation {
        Operation::PutSmall | Operation::PutMiddle => {
            store.put(&Target::whole(format!("new-{number}")), data).await;
            return 1;
        }
        Operation::GetSmall => {
            (Target::whole(format!("{}-{}", 4 * KIB, number % SMALL_BLOBS)), 4 * KIB)
        }
        Operation::GetMiddle => (Target::whole(format!("{MIB}-{}", number % MIDDLE_BLOBS)), MIB),
        Operation::ReadLarge => (Target::whole(format!("{LARGE}-0")), LARGE),
        Operation::GetRange => {
            // Steps of a prime of ranges: each call reads another part.
            let ranges = (LARGE / RANGE) as u64;
            let first = usize::try_from(number * 1009 % ranges).expect("a small number") * RANGE;
            (Target { name: format!("{LARGE}-0"), range: Some((first, RANGE)) }, RANGE)
        }
    };
    assert_eq!(store.get(&target).await, expected, "{target:?}");
    if operation == Operation::ReadLarge { (LARGE / MIB) as u64 } else { 1 }
}

/// One turn of an operation on every connection; a read of the large blob on two, which are enough for two cores.
async fn turn(side: &Side, operation: Operation, time: Duration) -> Done {
    let connections = if operation == Operation::ReadLarge { 2 } else { CONNECTIONS };
    let mut stores = Vec::new();
    for _ in 0..connections {
        stores.push(side.open().await);
    }
    let data = data(if operation == Operation::PutMiddle { MIB } else { 4 * KIB });
    let (before, began) = (side.server.cpu_us(), Instant::now());
    let tasks: Vec<_> = stores
        .into_iter()
        .map(|mut store| {
            let data = data.clone();
            tokio::spawn(async move {
                let mut units = 0;
                while began.elapsed() < time {
                    units += call(&mut *store, operation, &data).await;
                }
                units
            })
        })
        .collect();
    let mut units = 0;
    for task in tasks {
        units += task.await.expect("a connection that works");
    }
    let seconds = began.elapsed().as_secs_f64();
    Done { units, seconds, server_cpu_us: side.server.cpu_us() - before }
}
