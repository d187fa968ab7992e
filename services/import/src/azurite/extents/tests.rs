//! Tests of the module.

use std::{fs, os::unix::fs::symlink};

use super::*;
use crate::azurite::documents::TextLocation;

fn piece(offset: u64, id: &str, extent_offset: u64, count: u64) -> ExtentPiece {
    let location = TextLocation { id: id.to_owned(), offset: extent_offset, count };
    ExtentPiece { offset, location }
}

fn content(directory: &Path, pieces: Vec<ExtentPiece>) -> StoredContent {
    let extents = Extents { directory: directory.to_owned(), files: HashMap::new() };
    StoredContent { extents: Arc::new(extents), pieces: Arc::new(pieces) }
}

async fn why(content: &StoredContent) -> String {
    match content.read(0, 5).await {
        Err(BlobFailure::Item(why)) => why,
        other => panic!("a failure of one blob: {other:?}"),
    }
}

#[tokio::test]
async fn a_window_is_read_from_the_pieces_that_it_covers() {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("a"), "0123456789").unwrap();
    fs::write(directory.path().join("b"), "abcdefghij").unwrap();
    let pieces = vec![piece(0, "a", 2, 4), piece(4, "b", 0, 3), piece(7, "a", 0, 2)];
    let content = content(directory.path(), pieces);

    for (offset, length, bytes) in
        [(0, 9, "2345abc01"), (3, 2, "5a"), (4, 3, "abc"), (5, 3, "bc0"), (8, 1, "1"), (9, 0, "")]
    {
        assert_eq!(content.read(offset, length).await.unwrap(), bytes, "{offset} {length}");
    }
}

#[tokio::test]
async fn pages_are_cut_to_the_listed_part() {
    let pieces = vec![piece(512, "a", 0, 1024), piece(4096, "a", 0, 512)];
    let content = content(Path::new("/nowhere"), pieces);
    let pages = |offset, length| PagesWithData { offset, length };

    assert_eq!(content.pages(0, 512).await.unwrap(), []);
    assert_eq!(content.pages(0, 1024).await.unwrap(), [pages(512, 512)]);
    let all = [pages(1024, 512), pages(4096, 512)];
    assert_eq!(content.pages(1024, 8192).await.unwrap(), all);
}

#[tokio::test]
async fn content_that_is_not_in_a_regular_file_of_the_workspace_is_missing() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name);
    fs::write(path("short"), "1234").unwrap();
    fs::create_dir(path("folder")).unwrap();
    symlink("/etc/passwd", path("link")).unwrap();
    for (id, rule) in [
        ("absent", "file=`absent` does not exist"),
        ("short", "file=`short` ends before it"),
        ("folder", "must be a regular file"),
        ("link", "must be a regular file: it is a link"),
        ("../short", "a name that Azurite does not use: `../short`"),
        ("", "a name that Azurite does not use: ``"),
    ] {
        let content = content(directory.path(), vec![piece(0, id, 0, 5)]);
        let why = why(&content).await;
        assert!(why.contains(rule), "{id}: {why}");
    }
}

#[tokio::test]
async fn an_extent_is_in_the_file_that_the_list_names() {
    let directory = tempfile::tempdir().unwrap();
    let database = directory.path().join("list");
    let list = |path: &str| {
        format!(
            r#"{{"collections":[{{"name":"{EXTENTS}","data":[{{"id":"x","path":"{path}"}}]}}]}}"#
        )
    };
    fs::write(directory.path().join("file"), "hello").unwrap();
    let open = async |path: &str| {
        fs::write(&database, list(path)).unwrap();
        Extents::open(directory.path().to_owned(), Some(&database)).await
    };
    let read = async |path: &str| {
        let extents = Arc::new(open(path).await.unwrap());
        StoredContent { extents, pieces: Arc::new(vec![piece(0, "x", 0, 5)]) }
    };

    assert_eq!(read("file").await.read(0, 5).await.unwrap(), "hello");
    assert!(why(&read("/etc/passwd").await).await.contains("a name that Azurite does not use"));
    fs::write(&database, list("file").replace("path", "place")).unwrap();
    let error = Extents::open(directory.path().to_owned(), Some(&database)).await.unwrap_err();
    let text = "document 1 of `$EXTENTS_COLLECTION$` is not as Azurite writes it";
    assert!(error.to_string().starts_with(text), "{error}");
}
