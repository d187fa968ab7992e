//! Files that are changed in one step: a server that reads one meanwhile reads the old or the new contents.

use std::{fs, path::Path};

/// Replaces the contents of a file.
///
/// # Panics
/// If it cannot be written.
pub fn replace_file(file: &Path, contents: &str) {
    let next = file.with_extension("next");
    fs::write(&next, contents).unwrap();
    fs::rename(next, file).unwrap();
}
