//! Data directories as files of the repository, which has no empty directories, and no zeros at the end of journals.

use std::fs;
use std::path::Path;

/// Keeps a directory that has no files in the repository.
const KEEP: &str = ".gitkeep";

/// How many bytes a journal has before the zeros at its end. Most of it are zeros: whole pages of them are compared at
/// once, since a test that looks at each byte takes seconds.
pub(crate) fn data_length(journal: &[u8]) -> usize {
    let zeros = [0; 4096];
    let mut end = journal.len();
    while end >= zeros.len() && journal[end - zeros.len()..end] == zeros {
        end -= zeros.len();
    }
    journal[..end].iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1)
}

/// Copies files, without the zeros that a journal has at its end, and marks empty directories.
pub(crate) fn copy_to_fixture(from: &Path, to: &Path) {
    copy(from, to);
    if fs::read_dir(from).unwrap().next().is_none() {
        fs::write(to.join(KEEP), "").unwrap();
    }
    for entry in fs::read_dir(from).unwrap().map(Result::unwrap) {
        if entry.path().is_dir() {
            copy_to_fixture(&entry.path(), &to.join(entry.file_name()));
        }
    }
}

/// Copies files, without the zeros that a journal has at its end.
pub(crate) fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap().map(Result::unwrap) {
        if entry.file_name() == KEEP {
            continue;
        }
        let (source, target) = (entry.path(), to.join(entry.file_name()));
        if source.is_dir() {
            copy(&source, &target);
        } else {
            let mut bytes = fs::read(&source).unwrap();
            if source.extension().is_some_and(|extension| extension == "jnl") {
                bytes.truncate(data_length(&bytes));
            }
            fs::write(target, bytes).unwrap();
        }
    }
}
