use std::fs;

use super::*;

const MIB: u64 = 1024 * 1024;

#[test]
fn the_blocks_of_a_file_are_all_of_it_in_order() {
    for (size, count) in
        [(8 * MIB + 1, 2), (16 * MIB, 2), (20 * MIB, 3), (500_000 * 8 * MIB, 50_000)]
    {
        let mut end = 0;
        let mut found = 0;
        for block in blocks(size) {
            assert_eq!(block.offset, end, "{size}");
            assert!(block.length > 0, "{size}");
            end += block.length;
            found += 1;
        }
        assert_eq!((end, found), (size, count), "{size}");
    }
}

#[tokio::test]
async fn a_file_that_changed_is_not_copied() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("log");
    fs::write(&path, "one").unwrap();
    let file = Arc::new(OpenedFile::open(path.clone(), Arc::default()).unwrap());
    file.verify_unchanged().await.unwrap();

    fs::write(&path, "one two").unwrap();

    assert!(matches!(file.verify_unchanged().await, Err(CliError::File { .. })));
}
