//! The table that is printed.

use super::{Done, Operation, sides::Side};

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

/// One operation on every server, of which the first is ours.
pub(super) fn line(operation: Operation, sides: &[Side], turns: &[Vec<Done>]) {
    print!("{:<22}", operation.name());
    let mut cpu_us = Vec::new();
    for (_, turns) in sides.iter().zip(turns) {
        let units = turns.iter().map(|done| done.units).sum::<u64>().max(1) as f64;
        let rate = units / turns.iter().map(|done| done.seconds).sum::<f64>();
        let cpu = turns.iter().map(|done| done.server_cpu_us).sum::<f64>() / units;
        print!(" {rate:>12.0} {cpu:>9.1}");
        cpu_us.push(cpu);
    }
    let [ours, peers @ ..] = turns else { return println!() };
    // The middle of the ratios of the rounds, each to the best peer of the round.
    let mut ratios: Vec<f64> = ours
        .iter()
        .enumerate()
        .map(|(round, done)| {
            let best = peers.iter().filter_map(|turns| turns.get(round)).map(rate);
            rate(done) / best.fold(f64::MIN_POSITIVE, f64::max)
        })
        .collect();
    ratios.sort_by(f64::total_cmp);
    let times = ratios[ratios.len() / 2];
    let (times_min, cpu_max) = budget(operation);
    let expected = times_min.map_or("-".to_owned(), |times| format!("{times:.0} x"));
    let has_peers = !peers.is_empty();
    let is_missed = (has_peers && times_min.is_some_and(|min| times < min)) || cpu_us[0] > cpu_max;
    let suffix = if is_missed { "  MISSED" } else { "" };
    let times = if has_peers { format!("{times:.1} x") } else { "-".to_owned() };
    println!(" {times:>8} {expected:>7} {cpu_max:>8.0}{suffix}");
}
