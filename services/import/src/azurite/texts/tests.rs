//! Tests of the module.

use std::fs;

use super::*;

#[test]
fn reads_texts_or_names_the_file_without_them() {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("a-1"), "onétwo\u{ff}").unwrap();
    let read = |id: &str, offset, count| {
        read(directory.path(), &TextLocation { id: id.to_owned(), offset, count })
    };

    let text = |text: &str| Ok(Body::Text(text.to_owned()));
    assert_eq!(read("a-1", 4, 3), text("two"));
    assert_eq!(read("a-1", 0, 4), text("oné"));
    assert_eq!(read("missing", 0, 0), text(""), "an empty text needs no file");
    for (id, offset, count, rule) in [
        ("a-1", 7, 99, "ends before it"),
        ("a-1", 3, 2, "damaged"),
        ("a-1", 0, 65_537, "larger than 65536"),
        ("missing", 0, 1, "file=`missing` does not exist"),
        ("../a-1", 0, 1, "does not use"),
        ("", 0, 1, "does not use"),
    ] {
        let error = read(id, offset, count).unwrap_err();
        assert!(error.contains(rule), "{id}: {error}");
    }
}
