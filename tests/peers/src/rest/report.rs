//! The tables that are printed.

use super::{Done, calls::Operation};

/// How many times Azurite's rate ours should be, of tables and of queues.
const TABLE_TIMES: f64 = 8.0;
const QUEUE_TIMES: f64 = 300.0;
/// How much of Azurite's processor time for an operation ours may take.
const CPU_SHARE: f64 = 0.1;
/// How many times the processor time of gRPC for the same call that of REST may be.
const GRPC_TIMES: f64 = 2.0;

/// One side over all its turns.
#[derive(Default)]
pub(super) struct Sums {
    turns: Vec<Done>,
}

impl Sums {
    pub(super) fn add(&mut self, done: Done) {
        self.turns.push(done);
    }

    fn units(&self) -> f64 {
        self.turns.iter().map(|done| done.units as f64).sum::<f64>().max(1.0)
    }

    fn rate(&self) -> f64 {
        self.units() / self.turns.iter().map(|done| done.seconds).sum::<f64>()
    }

    fn cpu_us(&self) -> f64 {
        self.turns.iter().map(|done| done.server_cpu_us).sum::<f64>() / self.units()
    }
}

/// The middle of the ratios of the turns.
fn times(ours: &Sums, theirs: &Sums) -> f64 {
    let rate = |done: &Done| done.units.max(1) as f64 / done.seconds;
    let pairs = ours.turns.iter().zip(&theirs.turns);
    let mut ratios: Vec<f64> = pairs.map(|(ours, theirs)| rate(ours) / rate(theirs)).collect();
    ratios.sort_by(f64::total_cmp);
    ratios[ratios.len() / 2]
}

fn missed(is_missed: bool) -> &'static str {
    if is_missed { "  MISSED" } else { "" }
}

pub(super) fn azurite_header() {
    println!(
        "\n{:<26} {:>10} {:>10} {:>9} {:>8} {:>10} {:>10} {:>8} {:>7}",
        "REST beside Azurite",
        "trestle/s",
        "azurite/s",
        "times",
        "budget",
        "trestle us",
        "azurite us",
        "share",
        "budget"
    );
}

pub(super) fn beside_azurite(operation: Operation, [ours, theirs]: &[Sums; 2]) {
    let (times, share) = (times(ours, theirs), ours.cpu_us() / theirs.cpu_us());
    let is_queue = operation == Operation::QueueCycle;
    let budget = if is_queue { QUEUE_TIMES } else { TABLE_TIMES };
    println!(
        "{:<26} {:>10.0} {:>10.0} {:>7.1} x {:>6.0} x {:>10.1} {:>10.1} {:>8.3} {:>7.1}{}",
        operation.name(),
        ours.rate(),
        theirs.rate(),
        times,
        budget,
        ours.cpu_us(),
        theirs.cpu_us(),
        share,
        CPU_SHARE,
        missed(times < budget || share > CPU_SHARE),
    );
}

pub(super) fn grpc_header() {
    println!(
        "\n{:<26} {:>10} {:>10} {:>10} {:>10} {:>8} {:>8}",
        "REST beside gRPC", "REST/s", "gRPC/s", "REST us", "gRPC us", "times", "budget"
    );
}

pub(super) fn beside_grpc(operation: Operation, rest: &Sums, grpc: &Sums) {
    let times = rest.cpu_us() / grpc.cpu_us();
    println!(
        "{:<26} {:>10.0} {:>10.0} {:>10.1} {:>10.1} {:>6.2} x {:>6.0} x{}",
        operation.name(),
        rest.rate(),
        grpc.rate(),
        rest.cpu_us(),
        grpc.cpu_us(),
        times,
        GRPC_TIMES,
        missed(times > GRPC_TIMES),
    );
}
