//! The table that is printed.

use crate::drive::Done;

/// One side of a comparison over all its turns.
#[derive(Clone, Default)]
pub(crate) struct Side {
    turns: Vec<Done>,
    cpu_us: f64,
}

impl Side {
    pub(crate) fn add(&mut self, done: Done, cpu_us: f64) {
        self.turns.push(done);
        self.cpu_us += cpu_us;
    }

    fn operations(&self) -> f64 {
        self.turns.iter().map(|done| done.operations as f64).sum()
    }

    /// Operations a second, over all turns.
    pub(crate) fn rate(&self) -> f64 {
        self.operations() / self.turns.iter().map(|done| done.seconds).sum::<f64>()
    }

    /// Processor time of the server for each operation.
    pub(crate) fn cpu_us_per_operation(&self) -> f64 {
        self.cpu_us / self.operations().max(1.0)
    }
}

/// The middle of the ratios of the turns.
fn ratio(measured: &Side, ceiling: &Side) -> f64 {
    let pairs = measured.turns.iter().zip(&ceiling.turns);
    let mut ratios: Vec<f64> = pairs.map(|(a, b)| a.rate() / b.rate()).collect();
    ratios.sort_by(f64::total_cmp);
    ratios.get(ratios.len() / 2).copied().unwrap_or(f64::NAN)
}

pub(crate) fn header() {
    println!(
        "{:<44} {:>12} {:>12} {:>8} {:>8} {:>10} {:>11}",
        "path", "measured/s", "ceiling/s", "ratio", "budget", "server us", "ceiling us"
    );
}

/// A path beside its ceiling, as a share.
pub(crate) fn compared(path: &str, measured: &Side, ceiling: &Side, budget: f64) {
    let ratio = ratio(measured, ceiling);
    println!(
        "{path:<44} {:>12.0} {:>12.0} {:>7.0}% {:>7.0}% {:>10.1} {:>11.1}{}",
        measured.rate(),
        ceiling.rate(),
        ratio * 100.0,
        budget * 100.0,
        measured.cpu_us_per_operation(),
        ceiling.cpu_us_per_operation(),
        if ratio < budget { "  MISSED" } else { "" },
    );
}

/// A figure beside its bound; `at_most` is which side of the bound is good.
pub(crate) fn figure(name: &str, value: f64, bound: f64, at_most: bool, unit: &str) {
    let missed = if at_most { value > bound } else { value < bound };
    let sign = if at_most { "<=" } else { ">=" };
    let suffix = if missed { "  MISSED" } else { "" };
    println!("{name:<44} {value:>12.1} {unit} (budget {sign} {bound} {unit}){suffix}");
}
