//! The bounds of load.

use serde::{Deserialize, Serialize};

use super::at_least_one;

/// Longest setting for the time until an answer begins: the removal of deleted tables counts on
/// calls being over within two minutes.
const ANSWER_WITHIN_SECONDS_MAX: u64 = 110;

/// The section `limits`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct LimitSettings {
    /// Most calls at a time; more are refused at once. Default: 1024.
    pub calls_max: usize,
    /// Most connections at a time; more are closed at once. Default: 4096.
    pub connections_max: usize,
    /// Most calls at a time on one connection; more wait at the client. Default: 1024.
    pub calls_per_connection_max: u32,
    /// Longest time until an answer begins, in seconds, 1 to 110. Default: 60.
    pub answer_within_seconds: u64,
}

impl Default for LimitSettings {
    fn default() -> Self {
        Self {
            calls_max: 1024,
            connections_max: 4096,
            calls_per_connection_max: 1024,
            answer_within_seconds: 60,
        }
    }
}

impl LimitSettings {
    /// What is wrong with the section, each with its key.
    pub(super) fn problems(&self) -> Vec<String> {
        let counts = [
            at_least_one("limits.calls_max", self.calls_max > 0),
            at_least_one("limits.connections_max", self.connections_max > 0),
            at_least_one("limits.calls_per_connection_max", self.calls_per_connection_max > 0),
        ];
        let mut problems = Vec::from_iter(counts.into_iter().flatten());
        let seconds = self.answer_within_seconds;
        if !(1..=ANSWER_WITHIN_SECONDS_MAX).contains(&seconds) {
            let rule = format!("must be 1 to {ANSWER_WITHIN_SECONDS_MAX}: value=`{seconds}`");
            problems.push(format!("limits.answer_within_seconds: {rule}"));
        }
        problems
    }
}
