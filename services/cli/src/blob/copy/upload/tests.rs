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
async fn a_folder_is_found_with_all_its_files() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name);
    fs::create_dir_all(path("a/b")).unwrap();
    fs::create_dir_all(path("empty")).unwrap();
    for (name, text) in [("one", "1"), ("a/two", "22"), ("a/b/three", "")] {
        fs::write(path(name), text).unwrap();
    }
    std::os::unix::fs::symlink("one", path("link")).unwrap();
    let to = "blobs/x".parse().unwrap();

    let mut found = find(directory.path().to_owned(), &to, true).await.unwrap();

    found.sort_by(|a, b| a.to.name.cmp(&b.to.name));
    let found: Vec<_> = found.iter().map(|it| (it.to.name.as_str(), it.size)).collect();
    assert_eq!(found, [("x/a/b/three", 0), ("x/a/two", 2), ("x/link", 1), ("x/one", 1)]);
}

#[tokio::test]
async fn a_file_below_a_container_or_a_folder_keeps_its_name() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("cat.png");
    fs::write(&file, "").unwrap();

    for (to, name) in [("c", "cat.png"), ("c/x/", "x/cat.png"), ("c/x", "x")] {
        let found = find(file.clone(), &to.parse().unwrap(), false).await.unwrap();
        assert_eq!(found.first().map(|it| it.to.name.as_str()), Some(name), "{to}");
    }
}

#[tokio::test]
async fn what_is_neither_file_nor_folder_as_requested_is_rejected() {
    let directory = tempfile::tempdir().unwrap();
    let folder = directory.path().to_owned();
    fs::write(folder.join("file"), "").unwrap();
    fs::create_dir(folder.join("inner")).unwrap();
    std::os::unix::fs::symlink("..", folder.join("inner/up")).unwrap();
    let to = "c".parse().unwrap();

    for (from, recursive, rule) in [
        (folder.join("file"), true, "must be a folder"),
        (folder.join("absent"), false, "cannot read"),
        (folder.clone(), false, "repeat with --recursive"),
        (folder.clone(), true, "not followed"),
    ] {
        let error = find(from, &to, recursive).await.unwrap_err();
        assert!(matches!(error, CliError::Usage(_)), "{error}");
        assert!(error.to_string().contains(rule), "{error}");
    }
}

#[tokio::test]
async fn a_file_that_changed_is_not_copied() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("log");
    fs::write(&path, "one").unwrap();
    let file = Arc::new(OpenedFile::open(path.clone()).unwrap());
    file.verify_unchanged().await.unwrap();

    fs::write(&path, "one two").unwrap();

    assert!(matches!(file.verify_unchanged().await, Err(CliError::File { .. })));
}
