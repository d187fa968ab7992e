//! Quantiles of numbers in little memory, within a known error: numbers are counted in bins that grow by the same
//! factor (the idea of DDSketch, Masson, Rim and Lee 2019). The order in which they come does not matter.

use std::collections::BTreeMap;

/// How far a quantile is from a number that has its rank, at most, as a part of it.
pub(super) const RELATIVE_ERROR: f64 = 0.01;
/// By how much a bin ends above its beginning.
const GROWTH: f64 = (1.0 + RELATIVE_ERROR) / (1.0 - RELATIVE_ERROR);
/// About how many bytes a bin takes.
pub(super) const BIN_BYTES: usize = 32;

/// See the module.
#[derive(Debug, Clone, Default)]
pub(super) struct Sketch {
    /// How many numbers are in a bin, by the sign and the place of the bin, ascending by number.
    bins: BTreeMap<(i8, i32), u64>,
    count: u64,
}

impl Sketch {
    /// Counts a finite number. Returns whether it takes a new bin.
    pub(super) fn add(&mut self, number: f64) -> bool {
        self.count += 1;
        let bins = self.bins.len();
        *self.bins.entry(bin_of(number)).or_default() += 1;
        self.bins.len() > bins
    }

    /// About the number below which a part of all numbers is, from 0 to 1; none of no numbers. The exact one is that
    /// of rank `ceil(part * count)`, at least the first.
    pub(super) fn quantile(&self, part: f64) -> Option<f64> {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            clippy::cast_precision_loss,
            reason = "a rank within the count, which is exact to 2^53"
        )]
        let rank = ((part * self.count as f64).ceil() as u64).clamp(1, self.count.max(1));
        let mut below = 0;
        let found = self.bins.iter().find(|(_, count)| {
            below += **count;
            below >= rank
        });
        found.map(|((sign, place), _)| middle(*sign, *place))
    }
}

/// The number of a bin from which none in it is further than the error.
fn middle(sign: i8, place: i32) -> f64 {
    let end = GROWTH.powf(f64::from(place * i32::from(sign)));
    f64::from(sign) * 2.0 * end / (GROWTH + 1.0)
}

/// The bin of a number. That of a negative number has the place of its magnitude negated, so that bins are in order.
fn bin_of(number: f64) -> (i8, i32) {
    #[expect(
        clippy::cast_possible_truncation,
        reason = "the logarithm of a double has five digits"
    )]
    let place = |magnitude: f64| (magnitude.ln() / GROWTH.ln()).ceil() as i32;
    if number == 0.0 {
        (0, 0)
    } else if number > 0.0 {
        (1, place(number))
    } else {
        (-1, -place(-number))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn sketch_of(numbers: &[f64]) -> Sketch {
        let mut sketch = Sketch::default();
        for number in numbers {
            sketch.add(*number);
        }
        sketch
    }

    #[test]
    fn a_quantile_of_no_numbers_is_none_and_zero_is_exact() {
        assert_eq!(Sketch::default().quantile(0.5), None);
        let sketch = sketch_of(&[-1.0, 0.0, 0.0, 1.0]);
        assert_eq!(sketch.quantile(0.5), Some(0.0));
        assert!(sketch.quantile(0.0).unwrap() < -0.99);
        assert!(sketch.quantile(1.0).unwrap() > 0.99);
    }

    #[test]
    fn numbers_that_differ_by_little_share_a_bin() {
        let numbers: Vec<_> = (0..10_000).map(|at| 1.0 + f64::from(at) / 1_000_000.0).collect();
        assert!(sketch_of(&numbers).bins.len() <= 2);
    }

    proptest! {
        #[test]
        fn a_quantile_is_within_the_error_of_the_number_of_its_rank(
            mut numbers in prop::collection::vec(
                prop_oneof![-1e12..1e12, -1.0..1.0, -1e-9..1e-9, Just(0.0), Just(1e300), Just(-1e300)], 1..200),
            part in 0.0..=1.0,
        ) {
            let found = sketch_of(&numbers).quantile(part).unwrap();
            numbers.sort_by(f64::total_cmp);
            let rank = part * numbers.len() as f64;
            let at = (0..numbers.len()).find(|at| (at + 1) as f64 >= rank).unwrap();
            let exact = numbers[at];
            prop_assert!((found - exact).abs() <= exact.abs() * RELATIVE_ERROR * 1.000_001, "{found} for {exact}");
        }
    }
}
