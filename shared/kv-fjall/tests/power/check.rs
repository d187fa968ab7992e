//! What must hold of a store after a power cut, however the cut was made.

use std::{
    fmt,
    panic::{AssertUnwindSafe, catch_unwind},
    path::Path,
    time::{Duration, Instant},
};

use trestle_kv_fjall::{FjallEngine, OpenError};

use crate::load::{WRITERS, WriterLoad, head, options, rows};

/// How long the lock of a closed engine may outlive it.
const UNLOCKED_WITHIN: Duration = Duration::from_secs(120);

/// What is wrong with a store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum StoreDefect {
    /// It does not open.
    Closed(String),
    /// An acknowledged change is not there.
    Lost { writer: u64, acknowledged: u64, found: u64 },
    /// A change is there that was never written, or in part.
    Wrong { writer: u64, found: u64, reason: String },
}

impl fmt::Display for StoreDefect {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Closed(reason) => write!(formatter, "does not open: {reason}"),
            Self::Lost { writer, acknowledged, found } => write!(
                formatter,
                "acknowledged changes are lost: writer={writer}, acknowledged={acknowledged}, \
                 found={found}"
            ),
            Self::Wrong { writer, found, reason } => {
                write!(formatter, "wrong content: writer={writer}, change={found}: {reason}")
            }
        }
    }
}

/// A store without defects.
#[derive(Debug)]
pub(crate) struct CheckedStore {
    /// How long it took to open.
    pub(crate) opening: Duration,
    /// The newest change of each writer.
    pub(crate) heads: Vec<u64>,
}

/// Opens the store in `root`, compares it with what was acknowledged for sure and at most, and
/// writes to it.
pub(crate) fn check(
    root: &Path,
    load: WriterLoad,
    acknowledged: &[u64],
    begun: &[u64],
) -> Result<CheckedStore, StoreDefect> {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let began = Instant::now();
    let engine = open(root)?;
    let opening = began.elapsed();
    let mut heads = runtime.block_on(compare(&engine, load, acknowledged, begun))?;

    // It is not an archive: it takes changes, and has them after a clean shutdown.
    heads[0] += 1;
    let failed = |reason| StoreDefect::Wrong { writer: 0, found: heads[0], reason };
    let written = runtime.block_on(load.commit(&engine, 0, heads[0]));
    written.map_err(|error| failed(error.to_string()))?;
    drop(engine);
    let engine = open(root)?;
    let newest = runtime.block_on(head(&engine, 0)).map_err(failed)?;
    if newest != heads[0] {
        return Err(StoreDefect::Lost { writer: 0, acknowledged: heads[0], found: newest });
    }
    Ok(CheckedStore { opening, heads })
}

fn open(root: &Path) -> Result<FjallEngine, StoreDefect> {
    let began = Instant::now();
    loop {
        let opened =
            catch_unwind(AssertUnwindSafe(|| FjallEngine::open(options(&root.join("kv")))));
        match opened {
            Ok(Ok(engine)) => return Ok(engine),
            // A process that another thread starts has the files of this one, and so its lock, until it executes.
            Ok(Err(OpenError::Locked { .. })) if began.elapsed() < UNLOCKED_WITHIN => {
                std::thread::sleep(Duration::from_millis(1));
            }
            Ok(Err(error)) => return Err(StoreDefect::Closed(chain(&error))),
            Err(_) => return Err(StoreDefect::Closed("panicked".to_owned())),
        }
    }
}

/// The newest change of each writer.
async fn compare(
    engine: &FjallEngine,
    load: WriterLoad,
    acknowledged: &[u64],
    begun: &[u64],
) -> Result<Vec<u64>, StoreDefect> {
    let mut heads = Vec::new();
    for writer in 0..WRITERS {
        let (acknowledged, begun) = (acknowledged[writer as usize], begun[writer as usize]);
        let wrong = |found, reason| StoreDefect::Wrong { writer, found, reason };
        let found = head(engine, writer).await.map_err(|reason| wrong(0, reason))?;
        if found < acknowledged {
            return Err(StoreDefect::Lost { writer, acknowledged, found });
        }
        if found > begun + 1 {
            return Err(wrong(found, format!("only {begun} were acknowledged")));
        }
        let rows = rows(engine, writer).await.map_err(|reason| wrong(found, reason))?;
        let expected = load.expected(writer, found);
        if rows != expected {
            let differs = |key: &&bytes::Bytes| rows.get(*key) != expected.get(*key);
            let keys: Vec<_> = rows.keys().chain(expected.keys()).filter(differs).collect();
            return Err(wrong(found, format!("rows that differ: {keys:?}")));
        }
        heads.push(found);
    }
    Ok(heads)
}

/// An error with its causes.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        text.push_str(&format!(": {error:?}"));
        source = error.source();
    }
    text
}
