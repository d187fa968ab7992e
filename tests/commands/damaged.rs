//! Damaged content is logged by the names that users gave.

use std::{fs, path::Path};

use tempfile::tempdir;
use trestle_tests::Server;

use crate::{
    client::{run, succeeds},
    observed::logged,
};

/// Every file below a folder.
fn files(folder: &Path) -> Vec<std::path::PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
        match entry.file_type().unwrap().is_dir() {
            true => found.extend(files(&entry.path())),
            false => found.push(entry.path()),
        }
    }
    found
}

#[test]
fn a_damaged_blob_is_logged_with_its_container_and_name_once() {
    let folder = tempdir().unwrap();
    let (data, log) = (folder.path().join("data"), folder.path().join("log"));
    let content = folder.path().join("content");
    fs::write(&content, vec![7; 100_000]).unwrap();
    let server = Server::start_logging(&log, &["--data-dir", data.to_str().unwrap()], &[]);
    succeeds(&server, &["blob", "container", "create", "photos"]);
    succeeds(&server, &["blob", "cp", content.to_str().unwrap(), "blob://photos/cat.png"]);
    let objects: Vec<_> = files(&data.join("blob"))
        .into_iter()
        .filter(|file| fs::metadata(file).unwrap().len() >= 100_000)
        .collect();
    let [object] = &objects[..] else { panic!("one object: {objects:?}") };
    let mut bytes = fs::read(object).unwrap();
    bytes[1000] ^= 1;
    fs::write(object, bytes).unwrap();

    for _ in 0..3 {
        let ended = run(&server, &["blob", "cat", "photos/cat.png"]);
        assert_eq!(ended.code, Some(1), "{ended:?}");
    }

    let line = logged(&log, &["the content of a blob is damaged", "container=\"photos\""]);
    assert!(line.contains("ERROR") && line.contains("blob=\"cat.png\""), "{line}");
    let lines = fs::read_to_string(&log).unwrap().matches("content of a blob is damaged").count();
    assert_eq!(lines, 1);
}
