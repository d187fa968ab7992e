use std::{fs, io::Write as _};

use super::*;

#[test]
fn a_blob_in_a_folder_keeps_the_last_part_of_its_name() {
    let directory = tempfile::tempdir().unwrap();
    let (folder, from) = (directory.path(), "c/x/cat.png".parse().unwrap());

    let in_folder = target(&from, folder.to_owned()).unwrap().to;
    let named = target(&from, folder.join("dog.png")).unwrap().to;
    let in_new = target(&from, folder.join("new/")).unwrap().to;

    assert_eq!(in_folder, folder.join("cat.png"));
    assert_eq!(named, folder.join("dog.png"));
    assert_eq!(in_new, folder.join("new/cat.png"));
}

#[test]
fn a_name_that_is_no_file_name_needs_another_one() {
    let directory = tempfile::tempdir().unwrap();
    for name in ["c/..", "c/a/", "c/a/."] {
        let from = name.parse().unwrap();
        assert!(
            matches!(target(&from, directory.path().into()), Err(CliError::Usage(_))),
            "{name}"
        );
        assert!(target(&from, directory.path().join("file")).is_ok(), "{name}");
    }
}

#[test]
fn a_file_that_was_not_completed_is_removed_and_the_former_one_kept() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("cat.png");
    fs::write(&path, "before").unwrap();
    let files = || fs::read_dir(directory.path()).unwrap().count();

    let (part, mut file) = PartFile::create(path.clone()).unwrap();
    file.write_all(b"after").unwrap();
    assert_eq!(files(), 2);
    drop(part);
    assert_eq!(files(), 1);
    assert_eq!(fs::read_to_string(&path).unwrap(), "before");

    let (part, mut file) = PartFile::create(path.clone()).unwrap();
    file.write_all(b"after").unwrap();
    part.complete(&file).unwrap();
    assert_eq!(files(), 1);
    assert_eq!(fs::read_to_string(&path).unwrap(), "after");
}
