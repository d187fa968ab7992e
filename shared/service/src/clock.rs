//! Time, which the storage engine assigns together with versions: see [`trestle_kv::time`].

pub use trestle_kv::time::{Clock, ManualClock, SystemClock, Ticks};
