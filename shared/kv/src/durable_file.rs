//! Small files: written whole or not at all, and durable once written.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

/// Writes a file of a directory, in place of the one with its name if there is one. A crash leaves the old one or the
/// new one, and perhaps a draft, which the next write replaces. Only the user of this process may read it.
///
/// # Errors
/// A directory that cannot be written, or synced.
pub fn replace_file(directory: &Path, name: &str, content: &[u8]) -> io::Result<()> {
    let draft = directory.join(format!("{name}.new"));
    let mut options = File::options();
    let mut file = options.create(true).write(true).truncate(true).mode(0o600).open(&draft)?;
    file.write_all(content)?;
    file.sync_all()?;
    fs::rename(&draft, directory.join(name))?;
    File::open(directory)?.sync_all()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn a_file_is_replaced_and_its_draft_is_not_left() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("name");
        for content in ["first, and longer", "second"] {
            fs::write(folder.path().join("name.new"), "left by a crash").unwrap();
            replace_file(folder.path(), "name", content.as_bytes()).unwrap();
            assert_eq!(fs::read_to_string(&path).unwrap(), content);
        }
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
        fs::remove_file(&path).unwrap();
        replace_file(folder.path(), "name", b"").unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    }
}
