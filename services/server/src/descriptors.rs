//! Divides the file descriptors of the process between the store and connections.
//!
//! A store that cannot open a file for a flush accepts no writes until a restart, so it has a reserve that
//! connections never get.

use std::fmt;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tracing::warn;
use trestle_runtime::{admin, serve::Connections};

use crate::{process_error::ProcessError, roles::ROLES, settings::Settings};

/// Descriptors of the process itself: listeners, timers, logs, telemetry, connections to other roles.
const PROCESS: usize = 64;
/// What a store opens besides its cached files: journals, outputs of a flush, all inputs of a compaction,
/// files that scans hold open.
const STORE_WORK: usize = 192;
/// Files that a store keeps open with enough descriptors: at 64 MiB each, 56 GiB.
const STORE_FILES_MAX: usize = 900;
/// The minimum of the same: with fewer, reads reopen files often.
const STORE_FILES_MIN: usize = 64;
/// Fewest connections that are worth a start.
const CONNECTIONS_MIN: usize = 16;

/// The division of the descriptors of the process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DescriptorPlan {
    /// Most descriptors that the process may have.
    limit: usize,
    /// The number that the settings need.
    recommended: usize,
    /// Most connections of callers, at most as many as the settings name.
    pub connections_max: usize,
    /// Most files that the store keeps open.
    pub store_files: usize,
}

impl DescriptorPlan {
    /// Raises the limit of the process as far as it may, and divides it.
    ///
    /// # Errors
    /// [`ProcessError::DescriptorLimit`] if they are too few for the store and a few connections.
    pub fn for_process(settings: &Settings) -> Result<Self, ProcessError> {
        let limit = usize::try_from(raised_limit()).unwrap_or(usize::MAX);
        let has_store = settings.owns_data(ROLES) && !settings.storage.ephemeral;
        Self::divide(limit, settings.limits.connections_max, has_store)
    }

    fn divide(limit: usize, connections: usize, has_store: bool) -> Result<Self, ProcessError> {
        let work = if has_store { STORE_WORK } else { 0 };
        let fixed = PROCESS + work + admin::CONNECTIONS_MAX + 2 * Connections::EVICTED_MAX;
        let (files_min, files_max) =
            if has_store { (STORE_FILES_MIN, STORE_FILES_MAX) } else { (0, 0) };
        let recommended = fixed + files_max + connections;
        let needed = fixed + files_min + connections.min(CONNECTIONS_MIN);
        if limit < needed {
            return Err(ProcessError::DescriptorLimit { limit, needed, recommended });
        }
        let rest = limit - fixed;
        let store_files = rest.saturating_sub(connections).max(rest / 4);
        let store_files = store_files.clamp(files_min, files_max);
        let connections_max = connections.min(rest - store_files);
        Ok(Self { limit, recommended, connections_max, store_files })
    }

    /// Whether the limit is lower than the settings need.
    #[must_use]
    pub fn is_short(&self) -> bool {
        self.limit < self.recommended
    }

    /// Logs a limit that is lower than the settings need.
    pub fn log(&self) {
        let Self { limit, recommended, connections_max, .. } = *self;
        if self.is_short() {
            warn!(
                limit,
                recommended,
                connections_max,
                "few file descriptors: fewer connections are accepted than limits.connections_max; \
                 raise the hard limit (ulimit -Hn, LimitNOFILE)"
            );
        }
    }
}

impl fmt::Display for DescriptorPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { limit, recommended, connections_max, .. } = self;
        write!(
            f,
            "limit=`{limit}`, recommended=`{recommended}`, connections_max=`{connections_max}`"
        )
    }
}

/// The limit on descriptors, once the soft one is as high as the hard one.
fn raised_limit() -> u64 {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let raised = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum });
    let limit = if raised.is_ok() { maximum } else { current };
    limit.unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn divided(limit: usize, connections: usize, has_store: bool) -> (usize, usize) {
        let plan = DescriptorPlan::divide(limit, connections, has_store).expect("enough");
        (plan.connections_max, plan.store_files)
    }

    #[test]
    fn a_low_limit_reduces_connections_and_cached_files_and_never_the_reserve() {
        for (limit, connections, has_store, expected) in [
            (1 << 20, 4096, true, (4096, 900)),
            (5_444, 4096, true, (4096, 900)),
            (4_096, 4096, true, (2_748, 900)),
            (1_024, 4096, true, (432, 144)),
            (1_024, 100, true, (100, 476)),
            (528, 4096, true, (16, 64)),
            (1_024, 4096, false, (768, 0)),
        ] {
            assert_eq!(divided(limit, connections, has_store), expected, "{limit} {connections}");
            let (connections, files) = expected;
            let reserve = if has_store { STORE_WORK } else { 0 };
            assert!(connections + files + reserve + PROCESS < limit);
        }
    }

    #[test]
    fn rejects_a_limit_that_does_not_hold_the_store_and_a_few_connections() {
        let error = DescriptorPlan::divide(527, 4096, true).expect_err("too low");

        assert_eq!(
            error.to_string(),
            "too few file descriptors: limit=`527`, needed=`528`, recommended=`5444`; raise the hard limit \
             (ulimit -Hn, LimitNOFILE)"
        );
    }
}
