//! Work that blocks, and may take so long that people wonder whether it hangs.

use std::{
    sync::mpsc::{self, RecvTimeoutError},
    thread,
    time::Duration,
};

/// Runs work on this thread, and `on_slow` beside it once it takes longer than `limit`.
///
/// A thread of its own waits: the runtime may have one thread, which runs the work.
pub(crate) fn watch<T>(
    limit: Duration,
    on_slow: impl FnOnce() + Send,
    work: impl FnOnce() -> T,
) -> T {
    thread::scope(|scope| {
        let (ended, end) = mpsc::channel::<()>();
        let wait = move || {
            if end.recv_timeout(limit) == Err(RecvTimeoutError::Timeout) {
                on_slow();
            }
        };
        // Without a thread the work runs and is not reported.
        let _ = thread::Builder::new().name("slow-work".to_owned()).spawn_scoped(scope, wait);
        let result = work();
        drop(ended);
        result
    })
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;

    #[test]
    fn work_within_the_limit_is_not_reported() {
        let is_reported = AtomicBool::new(false);

        let done = watch(Duration::MAX, || is_reported.store(true, Ordering::Relaxed), || 7);

        assert_eq!((done, is_reported.into_inner()), (7, false));
    }

    #[test]
    fn work_beyond_the_limit_is_reported_while_it_runs() {
        let (report, reported) = mpsc::channel();

        let waited = watch(
            Duration::ZERO,
            move || report.send(()).unwrap(),
            || reported.recv_timeout(Duration::from_secs(30)),
        );

        assert_eq!(waited, Ok(()));
    }
}
