//! The threads that encode and decode segments, and those that encode the batches of large exports: few, and the same
//! ones for all of this work, since an allocator keeps freed memory for the thread that had it. Work that moves between
//! the many threads for blocking calls gets memory that the kernel clears each time.

use std::{sync::LazyLock, thread::available_parallelism};

use tokio::{
    runtime::{Builder, Runtime},
    task::JoinError,
};

/// How much lower the priority of encoding is than that of calls, as a nice value: acknowledgements wait for a
/// processor otherwise. Encoding keeps a third of the weight of a call, so it goes on beside any load.
const ENCODE_NICE: i32 = 5;

/// One segment is written at a time.
static ENCODER: LazyLock<Option<Runtime>> = LazyLock::new(|| {
    let lower = || {
        let own = rustix::process::getpriority_process(None).unwrap_or_default();
        // Without it, calls wait longer while segments are written.
        let _ = rustix::process::setpriority_process(None, own + ENCODE_NICE);
    };
    threads("log-encode", 1, lower)
});

static DECODERS: LazyLock<Option<Runtime>> =
    LazyLock::new(|| threads("log-decode", available_parallelism().map_or(2, Into::into), || {}));

static EXPORTERS: LazyLock<Option<Runtime>> =
    LazyLock::new(|| threads("log-export", available_parallelism().map_or(2, Into::into), || {}));

/// So many threads for blocking work; they end where there is none for ten seconds. None in unit tests: a clock that is
/// paused waits only for the blocking work of its own runtime.
fn threads(name: &str, count: usize, start: fn()) -> Option<Runtime> {
    if cfg!(test) {
        return None;
    }
    let mut builder = Builder::new_current_thread();
    builder.thread_name(name).max_blocking_threads(count).on_thread_start(start);
    builder.build().inspect_err(|error| tracing::warn!(%error, name, "no threads")).ok()
}

/// Runs work that encodes, beside the threads of calls.
///
/// # Errors
/// The work panicked.
pub(crate) async fn encode<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, JoinError> {
    run(ENCODER.as_ref(), work).await
}

/// Runs work that decodes, beside the threads of calls.
///
/// # Errors
/// The work panicked.
pub(crate) async fn decode<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, JoinError> {
    run(DECODERS.as_ref(), work).await
}

/// Runs work that encodes the batch of an export, beside the threads of calls.
///
/// # Errors
/// The work panicked.
pub(crate) async fn export<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, JoinError> {
    run(EXPORTERS.as_ref(), work).await
}

async fn run<T: Send + 'static>(
    threads: Option<&Runtime>,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, JoinError> {
    match threads {
        Some(threads) => threads.spawn_blocking(work).await,
        None => tokio::task::spawn_blocking(work).await,
    }
}
