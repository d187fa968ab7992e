//! The engine over real servers of PostgreSQL, which each test starts for itself. Where the machine has none, the tests
//! say so and pass; with `TRESTLE_TEST_POSTGRES_BIN` they use the programs of that directory.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "tests")]

mod conform;
mod crash;
mod failures;
mod lock_table;
mod long_keys;
mod model;
mod open;
mod standby;
mod stats;
mod world;
