//! How long the write of a group took, and how much of it was its sync.

use std::time::{Duration, Instant};

/// Measures a write of this thread.
///
/// The database writes, syncs and applies a batch in one call and reports nothing of its parts. The
/// sync is where the thread waits; everything else is work. So the time without processor is the
/// time of the sync, and of waiting for a processor where others have them all.
pub(super) struct GroupClock {
    started: Instant,
    worked: Duration,
}

/// What a [`GroupClock`] measured.
pub(super) struct Elapsed {
    pub(super) took: Duration,
    /// Of it, without processor.
    pub(super) waited: Duration,
}

impl GroupClock {
    pub(super) fn start() -> Self {
        Self { started: Instant::now(), worked: thread_time() }
    }

    pub(super) fn stop(self) -> Elapsed {
        let took = self.started.elapsed();
        let worked = thread_time().saturating_sub(self.worked);
        Elapsed { took, waited: took.saturating_sub(worked) }
    }
}

/// The processor time of this thread.
fn thread_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::try_from(time).unwrap_or_default()
}
