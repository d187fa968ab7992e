use std::os::unix::{ffi::OsStrExt as _, fs::symlink, net::UnixListener};

use super::*;

const RECURSIVE: FindOptions = FindOptions { recursive: true, follow_links: false };
const FOLLOWED: FindOptions = FindOptions { recursive: true, follow_links: true };

/// The names of the found blobs and of what is left out, sorted.
async fn names(folder: &Path, options: FindOptions) -> (Vec<String>, Vec<String>) {
    let to = "blobs/x".parse().unwrap();
    let FoundFiles { files, skipped } = find(folder.to_owned(), &to, options).await.unwrap();
    let mut found: Vec<_> = files.into_iter().map(|file| file.to.name).collect();
    let last = |name: String| name.rsplit('/').next().unwrap_or_default().to_owned();
    let mut skipped: Vec<_> = skipped.into_iter().map(|item| last(item.name)).collect();
    found.sort();
    skipped.sort();
    (found, skipped)
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
    symlink("one", path("link")).unwrap();
    let to = "blobs/x".parse().unwrap();

    let mut found = find(directory.path().to_owned(), &to, RECURSIVE).await.unwrap().files;

    found.sort_by(|a, b| a.to.name.cmp(&b.to.name));
    let found: Vec<_> = found.iter().map(|it| (it.to.name.as_str(), it.size)).collect();
    assert_eq!(found, [("x/a/b/three", 0), ("x/a/two", 2), ("x/link", 1), ("x/one", 1)]);
}

#[tokio::test]
async fn what_is_no_file_of_the_folder_is_left_out_and_the_others_are_found() {
    let directory = tempfile::tempdir().unwrap();
    let folder = directory.path().join("folder");
    fs::create_dir_all(folder.join("inner")).unwrap();
    fs::write(directory.path().join("secret"), "x").unwrap();
    fs::write(folder.join("inner/file"), "x").unwrap();
    fs::write(folder.join(std::ffi::OsStr::from_bytes(b"\xff")), "x").unwrap();
    symlink("../secret", folder.join("out")).unwrap();
    symlink("absent", folder.join("dangling")).unwrap();
    symlink("..", folder.join("inner/up")).unwrap();
    let _socket = UnixListener::bind(folder.join("socket")).unwrap();

    let (found, skipped) = names(&folder, RECURSIVE).await;

    assert_eq!(found, ["x/inner/file"]);
    assert_eq!(skipped, ["dangling", "out", "socket", "up", "\u{fffd}"]);
}

#[tokio::test]
async fn followed_links_end_at_a_folder_that_leads_back() {
    let directory = tempfile::tempdir().unwrap();
    let folder = directory.path().join("folder");
    fs::create_dir_all(folder.join("inner")).unwrap();
    fs::create_dir_all(directory.path().join("beside")).unwrap();
    fs::write(directory.path().join("beside/file"), "x").unwrap();
    symlink("../beside", folder.join("out")).unwrap();
    symlink("../beside/file", folder.join("file")).unwrap();
    symlink("..", folder.join("inner/up")).unwrap();
    symlink("..", directory.path().join("beside/above")).unwrap();

    let (found, skipped) = names(&folder, FOLLOWED).await;

    assert_eq!(found, ["x/file", "x/out/file"]);
    // `above` has the folder and what the link led to, both of which are open.
    assert_eq!(skipped, ["beside", "folder", "up"]);
}

#[tokio::test]
async fn a_file_below_a_container_or_a_folder_keeps_its_name() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("cat.png");
    fs::write(&file, "").unwrap();

    for (to, name) in [("c", "cat.png"), ("c/x/", "x/cat.png"), ("c/x", "x")] {
        let to = to.parse().unwrap();
        let found = find(file.clone(), &to, FindOptions::default()).await.unwrap().files;
        assert_eq!(found.first().map(|it| it.to.name.as_str()), Some(name), "{to}");
    }
}

#[tokio::test]
async fn what_is_neither_file_nor_folder_as_requested_is_rejected() {
    let directory = tempfile::tempdir().unwrap();
    let folder = directory.path().to_owned();
    fs::write(folder.join("file"), "").unwrap();
    let to = "c".parse().unwrap();

    for (from, options, rule) in [
        (folder.join("file"), RECURSIVE, "must be a folder"),
        (folder.join("absent"), FindOptions::default(), "cannot read"),
        (folder.clone(), FindOptions::default(), "repeat with --recursive"),
    ] {
        let error = find(from, &to, options).await.unwrap_err();
        assert!(matches!(error, CliError::Usage(_)), "{error}");
        assert!(error.to_string().contains(rule), "{error}");
    }
}
