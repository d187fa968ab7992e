//! The table that is printed.

use super::{Done, Operation, sides::Side};

/// Most processor time of an operation over REST, as a multiple of that over gRPC.
const REST_CPU_MAX: f64 = 1.4;

/// How many times the rate of the best peer ours should be, and how much processor time an operation may take, in
/// microseconds.
fn budget(operation: Operation) -> (Option<f64>, f64) {
    match operation {
        Operation::PutSmall => (Some(8.0), 70.0),
        Operation::GetSmall => (Some(5.0), 35.0),
        Operation::PutMiddle => (None, 2600.0),
        Operation::GetMiddle | Operation::ReadLarge => (None, 450.0),
        Operation::GetRange => (Some(4.0), 80.0),
    }
}

pub(super) fn header(sides: &[Side]) {
    print!("\n{:<22}", "blobs");
    for side in sides {
        print!(" {:>12} {:>9}", format!("{}/s", side.name), "us");
    }
    println!(" {:>8} {:>7} {:>8}", "times", "budget", "us");
}

fn rate(done: &Done) -> f64 {
    done.units.max(1) as f64 / done.seconds
}

/// One operation over REST beside gRPC and Azurite: how many times the rate of Azurite, and how many times the
/// processor time of gRPC.
pub(super) fn rest_line(operation: Operation, sides: &[Side], turns: &[Vec<Done>]) {
    let cpu_us = figures(operation, turns);
    let (times_min, cpu_max) = match operation {
        Operation::PutSmall | Operation::GetSmall => (15.0, f64::INFINITY),
        Operation::PutMiddle => (5.0, 3000.0),
        Operation::GetMiddle | Operation::ReadLarge => (5.0, 300.0),
        Operation::GetRange => (5.0, f64::INFINITY),
    };
    let side = |name: &str| sides.iter().position(|side| side.name == name);
    let Some(rest) = side("rest") else { return println!() };
    if let Some(azurite) = side("azurite") {
        let times = middle_ratio(&turns[rest], |round| turns[azurite].get(round).map(rate));
        let suffix = if times < times_min { ", MISSED" } else { "" };
        print!(" {times:>6.1} x azurite (>= {times_min:.0}{suffix})");
    }
    if let Some(grpc) = side("trestle") {
        let times = cpu_us[rest] / cpu_us[grpc];
        let suffix = if times > REST_CPU_MAX { ", MISSED" } else { "" };
        print!(" {times:>5.2} x us of gRPC (<= {REST_CPU_MAX}{suffix})");
    }
    let suffix = if cpu_us[rest] > cpu_max { ", MISSED" } else { "" };
    if cpu_max.is_finite() { println!(" (<= {cpu_max:.0} us{suffix})") } else { println!() }
}

/// Prints the rate and the processor time of an operation on each server; the latter, in microseconds.
fn figures(operation: Operation, turns: &[Vec<Done>]) -> Vec<f64> {
    print!("{:<22}", operation.name());
    let mut cpu_us = Vec::new();
    for turns in turns {
        let units = turns.iter().map(|done| done.units).sum::<u64>().max(1) as f64;
        let rate = units / turns.iter().map(|done| done.seconds).sum::<f64>();
        let cpu = turns.iter().map(|done| done.server_cpu_us).sum::<f64>() / units;
        print!(" {rate:>12.0} {cpu:>9.1}");
        cpu_us.push(cpu);
    }
    cpu_us
}

/// The middle of the ratios of the rounds, each to another rate of the round.
fn middle_ratio(ours: &[Done], other: impl Fn(usize) -> Option<f64>) -> f64 {
    let ratio = |(round, done)| rate(done) / other(round).unwrap_or(f64::MIN_POSITIVE);
    let mut ratios: Vec<f64> = ours.iter().enumerate().map(ratio).collect();
    ratios.sort_by(f64::total_cmp);
    ratios[ratios.len() / 2]
}

/// One operation on every server, of which the first is ours.
pub(super) fn line(operation: Operation, _: &[Side], turns: &[Vec<Done>]) {
    let cpu_us = figures(operation, turns);
    let [ours, peers @ ..] = turns else { return println!() };
    // To the best peer.
    let times = middle_ratio(ours, |round| {
        peers.iter().filter_map(|turns| turns.get(round)).map(rate).max_by(f64::total_cmp)
    });
    let (times_min, cpu_max) = budget(operation);
    let expected = times_min.map_or("-".to_owned(), |times| format!("{times:.0} x"));
    let has_peers = !peers.is_empty();
    let is_missed = (has_peers && times_min.is_some_and(|min| times < min)) || cpu_us[0] > cpu_max;
    let suffix = if is_missed { "  MISSED" } else { "" };
    let times = if has_peers { format!("{times:.1} x") } else { "-".to_owned() };
    println!(" {times:>8} {expected:>7} {cpu_max:>8.0}{suffix}");
}
