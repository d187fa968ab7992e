//! The admin page of the hottest partitions.

use std::sync::Arc;

use serde_json::{Value, json};
use trestle_rpc::{quota::HeavyHitter, quota::heavy_hitters::WINDOW};
use trestle_runtime::admin::AdminPage;
use trestle_table::{HotPartition, TableRole};

/// Most partitions on the page.
const SHOWN_MAX: usize = 100;

/// The page of a table role. Partition keys are data of the clients, so they are shown only by
/// a setting.
pub(crate) fn page(table: &TableRole, show_keys: bool) -> AdminPage {
    let table = table.clone();
    let json = move || {
        let partitions = table.hottest_partitions(SHOWN_MAX);
        let partitions: Vec<_> = partitions.into_iter().map(|hot| row(hot, show_keys)).collect();
        let page = json!({ "window_seconds": WINDOW.as_secs(), "partitions": partitions });
        format!("{page:#}\n")
    };
    let about = "the partitions that were used most, as JSON";
    AdminPage { path: "/hot-partitions", about, json: Arc::new(json) }
}

fn row(hot: HeavyHitter<HotPartition>, show_keys: bool) -> Value {
    let HeavyHitter { name, per_second, rejected } = hot;
    json!({
        "account": name.account.as_str(),
        "table": name.table,
        "partition": format!("{:016x}", name.hash),
        "partition_key": show_keys.then_some(name.partition_key),
        "entities_per_second": per_second,
        "throttled": rejected,
    })
}
