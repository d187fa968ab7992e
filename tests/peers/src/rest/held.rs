//! The server memory of a page while it is sent: clients that send requests and read no response.

use std::time::Duration;

use super::{
    CONNECTIONS,
    calls::{Caller, ROWS},
    sides,
    sign::ACCOUNT,
};
use crate::{load, servers::Installed, wire::Connection};

/// Entities of the page.
const ENTITIES: u64 = 1000;
/// Text of an entity: so many fit into a page by their bytes as well.
const TEXT_BYTES: usize = 3500;
/// How many times the bytes of a page its reader may cost: less than to hold it twice.
const TIMES: f64 = 1.5;

pub(super) async fn run(installed: &Installed) {
    let side = sides::trestle(installed).await.expect("trestle starts");
    let mut caller = Caller::over(Connection::open(side.table_port).await);
    let tables = format!("/{ACCOUNT}/Tables");
    let prefer = "Prefer: return-no-content\r\n";
    caller.table(("POST", &tables), prefer, &format!("{{\"TableName\":\"{ROWS}\"}}"), 204).await;
    let text = load::payload().repeat(TEXT_BYTES / load::payload().len() + 1);
    for row in 0..ENTITIES {
        let text = &text[..TEXT_BYTES];
        let body =
            format!("{{\"PartitionKey\":\"p\",\"RowKey\":\"{row:04}\",\"text\":\"{text}\"}}");
        caller.table(("POST", &format!("/{ACCOUNT}/{ROWS}")), prefer, &body, 204).await;
    }
    let page = format!("/{ACCOUNT}/{ROWS}()?$filter=PartitionKey%20eq%20'p'");
    // The caches, and freed pages that the allocator retains.
    for _ in 0..20 {
        caller.table(("GET", &page), "", "", 200).await;
    }
    let before = side.server.resident_mib();
    let mut readers = Vec::new();
    for _ in 0..CONNECTIONS {
        let mut reader = Caller::over(Connection::open_narrow(side.table_port).await);
        reader.request_only(&page).await;
        readers.push(reader);
    }
    tokio::time::sleep(Duration::from_secs(1)).await;
    let held = (side.server.resident_mib() - before) / CONNECTIONS as f64;
    let bytes = ENTITIES as f64 * TEXT_BYTES as f64 / f64::from(1 << 20);
    let times = held / bytes;
    println!(
        "\nmemory of a page of 1,000 entities of 3.5 KB, {CONNECTIONS} readers that do not read"
    );
    println!(
        "  {bytes:.2} MiB of text, {held:.2} MiB held: {times:.2} times (budget <= {TIMES}){}",
        if times > TIMES { "  MISSED" } else { "" }
    );
}
