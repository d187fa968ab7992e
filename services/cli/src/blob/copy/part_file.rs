//! A file that has its name only when it is complete and on stable storage.

use std::{
    fs::{self, File},
    path::PathBuf,
};

use trestle_command::{errors::CliError, files};

/// Longest name of a file, in bytes, of most file systems.
const NAME_BYTES_MAX: usize = 255;

/// A file that is not complete. It is removed unless it gets its name.
pub(super) struct PartFile {
    /// The path until then.
    part: PathBuf,
    /// The path that it gets.
    pub(super) path: PathBuf,
    is_complete: bool,
}

impl PartFile {
    /// A new file beside the one that it becomes, in a folder that is made.
    pub(super) fn create(path: PathBuf) -> Result<(Self, File), CliError> {
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder).map_err(CliError::file(files::cannot("make", folder)))?;
        }
        let suffix = format!(".{:08x}.trestle-part", fastrand::u32(..));
        let name_bytes = path.file_name().map_or(0, |name| name.as_encoded_bytes().len());
        let part = if name_bytes + suffix.len() <= NAME_BYTES_MAX {
            files::with_suffix(&path, &suffix)
        } else {
            path.with_file_name(&suffix)
        };
        // The temporary name would not help.
        let file =
            File::create_new(&part).map_err(CliError::file(files::cannot("write", &path)))?;
        Ok((Self { part, path, is_complete: false }, file))
    }

    /// Gives the file its name, after its content is on stable storage.
    pub(super) fn complete(mut self, file: &File) -> Result<(), CliError> {
        files::publish(&self.part, file, &self.path)?;
        self.is_complete = true;
        Ok(())
    }
}

impl Drop for PartFile {
    fn drop(&mut self) {
        if !self.is_complete {
            // What ended the copy is reported, not this.
            let _ = files::remove(&self.part);
        }
    }
}
