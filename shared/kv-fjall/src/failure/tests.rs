use super::*;

#[test]
fn reads_operation_file_and_error_of_what_the_database_logs() {
    let directory = Path::new("/data/kv");
    let full = r#"Os { code: 28, kind: StorageFull, message: "No space left on device" }"#;
    let cases = [
        (format!("Failed to fsyncdata journal file at /data/kv/db/3.jnl: {full}"), "3.jnl"),
        (format!("Flush error: Storage(Io({full}))"), "keyspaces"),
        (format!("Compaction failed: Io({full})"), "keyspaces"),
    ];
    for (text, file) in cases {
        let found = parse(&text, directory).expect("it is one of them");
        assert!(found.file.ends_with(file), "{}", found.file);
        assert_eq!(found.error, "No space left on device (os error 28)");
    }
    assert!(parse("Failed to fsync journal file at /other/db/3.jnl: x", directory).is_none());
    assert!(parse("something else", directory).is_none());
}
