//! Time, which the storage engine gives together with versions: see [`trestle_kv::time`].

pub use trestle_kv::time::{Clock, ManualClock, SystemClock, Ticks};
