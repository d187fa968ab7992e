//! Summaries of records: how many there are in each group, and of a number of them its sum, bounds and quantiles.

mod group_key;
mod sketch;
#[cfg(test)]
mod tests;

use std::{cmp::Reverse, collections::HashMap, num::NonZeroU64, ops::Range, sync::Arc};

use self::sketch::{BIN_BYTES, Sketch};
use crate::row::{Property, RowFields, RowPredicate, RowSink, ValueRef};

/// Most groups of a summary.
pub(crate) const GROUPS_MAX: usize = 100_000;
/// Most bytes that a summary takes.
pub(crate) const SUMMARY_BYTES_MAX: usize = 32 * 1024 * 1024;
/// About how many bytes a group takes beside its key and its bins.
const GROUP_BYTES: usize = 160;

/// What is summarized, and how.
#[derive(Clone)]
pub(crate) struct SummaryPlan {
    /// Records of these times, in nanoseconds since 1970.
    pub(crate) times: Range<u64>,
    /// Only records that match.
    pub(crate) predicate: Option<Arc<dyn RowPredicate>>,
    /// A group has the records of one interval of so many nanoseconds, counted from 1970; none: of all times.
    pub(crate) interval: Option<NonZeroU64>,
    /// A group has the records with equal values of these.
    pub(crate) group_by: Vec<Property>,
    /// The number that is summarized.
    pub(crate) value: Option<Property>,
    /// The parts, from 0 to 1, below which the number has the quantiles.
    pub(crate) quantiles: Vec<f64>,
}

impl SummaryPlan {
    /// The beginning of the interval that a time is in.
    fn start_of(&self, time: u64) -> u64 {
        self.interval.map_or(0, |interval| time - time % interval)
    }

    /// Whether all records of a range of times, both ends included, are in one group whatever they are.
    pub(crate) fn has_one_group_of(&self, (first, last): (u64, u64)) -> bool {
        self.predicate.is_none()
            && self.group_by.is_empty()
            && self.value.is_none()
            && self.times.contains(&first)
            && self.times.contains(&last)
            && self.start_of(first) == self.start_of(last)
    }
}

/// The groups so far.
pub(crate) struct RecordSummary {
    plan: Arc<SummaryPlan>,
    groups: HashMap<Vec<u8>, GroupTotals>,
    /// The key of the row that is taken in.
    key: Vec<u8>,
    bytes: usize,
}

/// What is counted of a group.
#[derive(Debug, Default)]
struct GroupTotals {
    records: u64,
    numbers: Option<Box<NumberTotals>>,
}

/// What is counted of the numbers of a group.
#[derive(Debug)]
struct NumberTotals {
    count: u64,
    sum: f64,
    min: f64,
    max: f64,
    sketch: Sketch,
}

/// A group of a summary.
#[derive(Debug, PartialEq)]
pub(crate) struct SummaryGroup<'s> {
    /// The beginning of its interval, in nanoseconds since 1970; none without intervals.
    pub(crate) start: Option<u64>,
    /// The values of its properties.
    pub(crate) key: Vec<Option<ValueRef<'s>>>,
    /// How many records it has.
    pub(crate) records: u64,
    /// Their numbers; none where no record has one.
    pub(crate) numbers: Option<NumberSummary>,
}

/// The numbers of a group.
#[derive(Debug, PartialEq)]
pub(crate) struct NumberSummary {
    pub(crate) count: u64,
    pub(crate) sum: f64,
    pub(crate) min: f64,
    pub(crate) max: f64,
    pub(crate) quantiles: Vec<f64>,
}

impl RecordSummary {
    /// Of no records yet.
    pub(crate) fn new(plan: Arc<SummaryPlan>) -> Self {
        Self { plan, groups: HashMap::new(), key: Vec::new(), bytes: 0 }
    }

    /// About how many bytes it takes.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Whether it takes more than it may. It takes in no row then.
    pub(crate) fn is_full(&self) -> bool {
        self.groups.len() > GROUPS_MAX || self.bytes > SUMMARY_BYTES_MAX
    }

    /// Counts so many records of one time, of a plan that does not tell them apart.
    pub(crate) fn count(&mut self, time: u64, records: u64) {
        group_key::begin(&mut self.key, self.plan.start_of(time));
        self.add(records, None);
    }

    /// Adds records to the group of the key, and the number of one.
    fn add(&mut self, records: u64, number: Option<f64>) {
        let Self { plan, groups, key, bytes } = self;
        let has_quantiles = !plan.quantiles.is_empty();
        if let Some(group) = groups.get_mut(key.as_slice()) {
            *bytes += group.add(records, number, has_quantiles);
        } else {
            let mut group = GroupTotals::default();
            *bytes += key.len() + GROUP_BYTES + group.add(records, number, has_quantiles);
            groups.insert(key.clone(), group);
        }
    }

    /// The groups in order of time; of one time, those with the most records first, and of as many in that
    /// of their keys. There is one without intervals and
    /// properties, also of no records.
    pub(crate) fn groups(&self) -> Vec<SummaryGroup<'_>> {
        let mut groups: Vec<_> = self.groups.iter().collect();
        groups.sort_unstable_by_key(|(key, group)| {
            let (start, values) = key.split_at_checked(8).unwrap_or_default();
            (start, Reverse(group.records), values)
        });
        let mut groups: Vec<_> = groups.iter().map(|(key, group)| self.group(key, group)).collect();
        if groups.is_empty() && self.plan.interval.is_none() && self.plan.group_by.is_empty() {
            groups.push(SummaryGroup { start: None, key: Vec::new(), records: 0, numbers: None });
        }
        groups
    }

    fn group<'s>(&'s self, key: &'s [u8], group: &GroupTotals) -> SummaryGroup<'s> {
        let (start, key) = group_key::parse(key);
        let numbers = group.numbers.as_ref();
        SummaryGroup {
            start: self.plan.interval.map(|_| start),
            key,
            records: group.records,
            numbers: numbers.map(|numbers| numbers.summary(&self.plan.quantiles)),
        }
    }
}

impl RowSink for RecordSummary {
    fn properties(&self) -> Vec<Property> {
        self.plan.group_by.iter().chain(&self.plan.value).cloned().collect()
    }

    fn take(&mut self, row: &dyn RowFields) {
        if self.is_full() {
            return;
        }
        let Self { plan, key, .. } = self;
        group_key::begin(key, plan.start_of(row.time()));
        for property in &plan.group_by {
            group_key::push(key, property.value_in(row));
        }
        let number = plan.value.as_ref().and_then(|value| number_of(&value.value_in(row)?));
        self.add(1, number);
    }
}

impl GroupTotals {
    /// Returns how many bytes more it takes.
    fn add(&mut self, records: u64, number: Option<f64>, has_quantiles: bool) -> usize {
        self.records += records;
        let Some(number) = number else { return 0 };
        let numbers = self.numbers.get_or_insert_with(|| Box::new(NumberTotals::of(number)));
        numbers.count += 1;
        numbers.sum += number;
        numbers.min = numbers.min.min(number);
        numbers.max = numbers.max.max(number);
        if has_quantiles && numbers.sketch.add(number) { BIN_BYTES } else { 0 }
    }
}

/// A finite number.
fn number_of(value: &ValueRef<'_>) -> Option<f64> {
    match value {
        #[expect(clippy::cast_precision_loss, reason = "a sum is a double")]
        ValueRef::Int(number) => Some(*number as f64),
        ValueRef::Double(number) => Some(*number).filter(|number| number.is_finite()),
        ValueRef::Str(_) | ValueRef::Bool(_) | ValueRef::Bytes(_) => None,
    }
}

impl NumberTotals {
    /// Of no numbers yet; the first is `number`.
    fn of(number: f64) -> Self {
        Self { count: 0, sum: 0.0, min: number, max: number, sketch: Sketch::default() }
    }

    fn summary(&self, quantiles: &[f64]) -> NumberSummary {
        let Self { count, sum, min, max, .. } = *self;
        let quantile = |part: &f64| self.sketch.quantile(*part).map(|found| found.clamp(min, max));
        let quantiles = quantiles.iter().filter_map(quantile).collect();
        NumberSummary { count, sum, min, max, quantiles }
    }
}
