//! What a request of OpenTelemetry answers of records that it does not store.

use std::{collections::BTreeMap, fmt::Write as _};

use trestle_model::fault::{Reason, reason_name};

use super::RecordError;

/// How many reasons an answer names: a request may have thousands of bad records.
const REASONS_MAX: u64 = 5;

/// Records, data points or spans that were not stored.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Rejected {
    /// How many.
    pub(crate) count: u64,
    /// The first reasons; empty where none was rejected.
    pub(crate) message: String,
    reasons: u64,
    /// Whether one of them was rejected for its time.
    pub(crate) has_time_out_of_range: bool,
    /// How many, by the name of the reason.
    by_reason: BTreeMap<&'static str, u64>,
}

impl Rejected {
    /// Adds `count` of them with one reason; `at` is where the first is.
    pub(crate) fn add(&mut self, count: u64, at: &str, error: &RecordError) {
        self.count += count;
        self.reasons += 1;
        self.has_time_out_of_range |= error.reason == Reason::RecordTimeOutOfRange;
        *self.by_reason.entry(reason_name(error.reason)).or_default() += count;
        if self.reasons <= REASONS_MAX {
            let separator = if self.message.is_empty() { "" } else { "; " };
            let error = error.clone().within(at);
            // Writing to a string never fails.
            let _ = write!(self.message, "{separator}{error}");
        } else if self.reasons == REASONS_MAX + 1 {
            self.message.push_str("; and others");
        }
    }

    /// How many, by the name of the reason.
    pub(crate) fn by_reason(&self) -> impl Iterator<Item = (&'static str, u64)> {
        self.by_reason.iter().map(|(reason, count)| (*reason, *count))
    }

    /// How many, and the first reasons; none where nothing was rejected.
    pub(crate) fn into_partial(self) -> Option<(i64, String)> {
        (self.count > 0).then(|| (i64::try_from(self.count).unwrap_or(i64::MAX), self.message))
    }

    /// Adds those of another stream of the request.
    pub(crate) fn merge(&mut self, other: &Self) {
        if other.count == 0 {
            return;
        }
        let separator = if self.message.is_empty() { "" } else { "; " };
        self.count += other.count;
        self.has_time_out_of_range |= other.has_time_out_of_range;
        if self.reasons < REASONS_MAX {
            self.message.push_str(separator);
            self.message.push_str(&other.message);
        }
        self.reasons += other.reasons;
        for (reason, count) in &other.by_reason {
            *self.by_reason.entry(reason).or_default() += count;
        }
    }
}
