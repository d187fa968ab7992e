//! A disk with less free space than the reserve: writes are rejected, reads and deletes are served.

use tonic::Code;
use trestle_proto::table::v1::WriteMode;
use trestle_tests::{Table, delete_op, entity, insert_op, int};

use crate::{contents::MAIN, start, writer::create};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn full_disk_rejects_writes_and_accepts_deletes_until_space_is_freed() {
    let data = tempfile::tempdir().unwrap();
    let server = start(&data, &[]);
    let table = Table::over(&server.channel(), MAIN);
    create(&table).await.unwrap();
    for row in ["a", "b", "c", "d"] {
        table.insert(entity("p", row, [int("n", 1)])).await.unwrap();
    }
    assert_eq!(server.terminate(), Some(0));

    // More than any disk has.
    let server = start(&data, &[("TRESTLE__STORAGE__MIN_FREE_BYTES", "4000000000000000000")]);
    let table = Table::over(&server.channel(), MAIN);
    let row = |row| entity("p", row, [int("n", 2)]);
    let errors = [
        table.insert(row("e")).await.err(),
        table.upsert(row("a"), WriteMode::Merge).await.err(),
        table.update(row("a"), WriteMode::Replace, None).await.err(),
        table.batch(vec![insert_op(row("e"))]).await.err(),
        create(&Table::over(&server.channel(), "another")).await.err(),
    ];

    for (index, error) in errors.into_iter().enumerate() {
        let error = error.unwrap_or_else(|| panic!("operation {index} was accepted"));
        let expected = (Code::ResourceExhausted, "INSUFFICIENT_STORAGE");
        assert_eq!(error.kind(), expected, "operation {index}");
    }
    assert_eq!(table.rows("n eq 1").await.unwrap(), ["a", "b", "c", "d"]);
    table.delete("p", "b", None).await.unwrap();
    table.batch(vec![delete_op("p", "c", None)]).await.unwrap();
    assert_eq!(table.rows("").await.unwrap(), ["a", "d"]);
    assert_eq!(server.terminate(), Some(0));

    let server = start(&data, &[]);
    let table = Table::over(&server.channel(), MAIN);
    assert_eq!(table.rows("n eq 1").await.unwrap(), ["a", "d"]);
    table.insert(row("e")).await.unwrap();
}
