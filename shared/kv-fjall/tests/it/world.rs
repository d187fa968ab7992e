//! What the tests need to open engines and to talk to them in few words.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use trestle_kv::conformance::KEYSPACES;
pub(crate) use trestle_kv::conformance::rows::*;
use trestle_kv_fjall::{FjallEngine, FjallOptions, RepairRules};

/// Options for a directory: a quick tick, and no reserve, as test machines are often full.
pub(crate) fn options(path: &Path) -> FjallOptions {
    let defaults = FjallOptions::new(path, KEYSPACES.to_vec());
    FjallOptions {
        cache_bytes: 8 * 1024 * 1024,
        min_free_bytes: 0,
        tick: Duration::from_millis(20),
        ..defaults
    }
}

pub(crate) fn open(path: &Path) -> Arc<FjallEngine> {
    Arc::new(FjallEngine::open(options(path)).unwrap())
}

/// Rules of services that change nothing in a repair.
pub(crate) fn rules() -> RepairRules {
    RepairRules { repaired: Some, raised: Vec::new() }
}
