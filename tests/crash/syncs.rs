//! Metrics of the disk.

use trestle_tests::{Table, entity, metric};

use crate::{contents::MAIN, faults, start, writer::create};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn metrics_report_sync_duration_separately() {
    const DELAY: f64 = 0.02;
    const WRITES: f64 = 10.0;
    let Some(library) = faults::library() else {
        return;
    };
    let data = tempfile::tempdir().unwrap();
    let slow = [("LD_PRELOAD", library), ("KVFAULT_SYNC_DELAY_US", "20000")];
    let server = start(&data, &slow);
    let table = Table::over(&server.channel(), MAIN);
    create(&table).await.unwrap();
    let before = server.page("/metrics").await;
    for row in 0..10 {
        table.insert(entity("p", &row.to_string(), [])).await.unwrap();
    }

    let after = server.page("/metrics").await;

    let grown = |series: &str| {
        metric(&after, series).expect(series) - metric(&before, series).expect(series)
    };
    assert_eq!(grown("trestle_storage_sync_duration_seconds_count"), WRITES);
    let synced = grown("trestle_storage_sync_duration_seconds_sum");
    let written = grown("trestle_storage_group_duration_seconds_sum");
    assert!(synced >= WRITES * DELAY && synced < written, "{synced} of {written}");
}
