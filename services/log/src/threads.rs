//! The threads that encode and decode segments, and those that encode the batches of large exports: few, and the same
//! ones for all of this work, since an allocator keeps freed memory for the thread that had it. Work that moves between
//! the many threads for blocking calls gets memory that the kernel clears each time.

use std::{sync::LazyLock, thread::available_parallelism};

use tokio::{
    runtime::{Builder, Runtime},
    task::JoinError,
};
use trestle_kv::turns::Turns;

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

static DECODERS: LazyLock<SharedThreads> = LazyLock::new(|| SharedThreads::new("log-decode"));

static EXPORTERS: LazyLock<SharedThreads> = LazyLock::new(|| SharedThreads::new("log-export"));

/// Threads, as many as there are processors, that accounts use in turns: a piece of work takes milliseconds, and who
/// has many of them waits for no more than one of each other's.
struct SharedThreads {
    threads: Option<Runtime>,
    turns: Turns,
}

impl SharedThreads {
    fn new(name: &str) -> Self {
        let count = available_parallelism().map_or(2, Into::into);
        Self { threads: threads(name, count, || {}), turns: Turns::new(count, count) }
    }

    async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, JoinError> {
        let turn = self.turns.take().await;
        let work = move || {
            let done = work();
            // Also where the caller no longer waits.
            drop(turn);
            done
        };
        run(self.threads.as_ref(), work).await
    }
}

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
    DECODERS.run(work).await
}

/// Runs work that encodes the batch of an export, beside the threads of calls.
///
/// # Errors
/// The work panicked.
pub(crate) async fn export<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, JoinError> {
    EXPORTERS.run(work).await
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
