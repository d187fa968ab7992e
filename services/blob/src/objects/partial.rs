//! Files of writes that a crash ended. The object store writes a file as `NAME#NUMBER` and renames it when it is whole;
//! it lists no such files, and so nothing else would find them.

use std::{collections::BTreeSet, fs, io, path::Path};

use crate::{extent::ExtentId, record::ContentId};

/// Deletes those of contents that no blob has; how many.
///
/// # Errors
/// A directory or a file that cannot be used.
pub(super) fn delete(directory: &Path, contents: &BTreeSet<ContentId>) -> io::Result<usize> {
    let mut deleted = 0;
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        let id = entry.file_name().to_str().and_then(content_of);
        if id.is_some_and(|id| contents.contains(&id)) {
            fs::remove_file(entry.path())?;
            deleted += 1;
        }
    }
    Ok(deleted)
}

/// The content that a file is a part of, if its write did not end.
fn content_of(name: &str) -> Option<ContentId> {
    let (object, number) = name.split_once('#')?;
    let is_number = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    ExtentId::of_object(object).filter(|_| is_number).map(|id| id.content)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_files_of_writes_that_did_not_end_are_named_so() {
        let object = ExtentId { content: ContentId(7), mark: 0, index: 1 }.object();
        assert_eq!(content_of(&format!("{object}#1")), Some(ContentId(7)));
        assert_eq!(content_of(&format!("{object}#12")), Some(ContentId(7)));
        for other in [&*object, &format!("{object}#"), &format!("{object}#a"), "other#1", "#1"] {
            assert_eq!(content_of(other), None, "{other}");
        }
    }
}
