//! The cost of a read, for people and for programs.

use serde_json::{Value, json};
use trestle_proto::table::v1::{QueryCost, QueryScope};

use super::{bytes, thousands};

/// One line with the cost of a read.
pub fn cost_text(cost: &QueryCost) -> String {
    format!(
        "cost: {}, {} scanned, {} returned, {}",
        scope_name(cost.scope),
        thousands(cost.scanned),
        thousands(cost.returned),
        bytes(cost.bytes)
    )
}

/// The same for programs.
pub fn cost_json(cost: &QueryCost) -> Value {
    json!({
        "scope": scope_name(cost.scope), "scanned": cost.scanned, "returned": cost.returned,
        "bytes": cost.bytes,
    })
}

/// A scope as the contract spells it, without its prefix.
pub fn scope_name(scope: i32) -> &'static str {
    let name = QueryScope::try_from(scope).unwrap_or_default().as_str_name();
    name.strip_prefix("QUERY_SCOPE_").unwrap_or(name)
}
