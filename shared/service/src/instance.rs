//! The identity of this process.

use std::sync::OnceLock;

use uuid::Uuid;

/// The id of this process: random, and the same for every role in it until it exits.
#[must_use]
pub fn instance_id() -> &'static str {
    static ID: OnceLock<String> = OnceLock::new();
    ID.get_or_init(|| Uuid::new_v4().to_string())
}
