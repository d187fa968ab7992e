//! The files of a copy, each with its blob. In a folder, what becomes no blob is left out.

#[cfg(test)]
mod tests;

use std::{
    fs::{self, DirEntry, Metadata},
    io,
    path::{Path, PathBuf},
};

use trestle_command::{errors::CliError, files};

use super::{blocking, not_copied::SkippedItem};
use crate::blob::{BlobAddress, address::relative_path};

/// A file to copy.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct SourceFile {
    pub(super) path: PathBuf,
    pub(super) size: u64,
    pub(super) to: BlobAddress,
}

/// The files to copy, and what is left out.
#[derive(Debug, Default)]
pub(super) struct FoundFiles {
    pub(super) files: Vec<SourceFile>,
    pub(super) skipped: Vec<SkippedItem>,
}

/// Which files are copied.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct FindOptions {
    /// Those of a folder.
    pub(super) recursive: bool,
    /// Also what links to folders, and to files outside of the folder, lead to.
    pub(super) follow_links: bool,
}

/// The file, or the files in the folder.
pub(super) async fn find(
    from: PathBuf,
    to: &BlobAddress,
    options: FindOptions,
) -> Result<FoundFiles, CliError> {
    let to = to.clone();
    blocking(move || {
        let failed = || CliError::input(files::cannot("read", &from));
        let found = fs::metadata(&from).map_err(failed())?;
        match (found.is_dir(), options.recursive) {
            (true, true) => {
                let root = fs::canonicalize(&from).map_err(failed())?;
                let open = vec![root.clone()];
                let FindOptions { follow_links, .. } = options;
                let mut walk =
                    FolderWalk { root, follow_links, open, found: FoundFiles::default() };
                walk.enter(&from, &to.folder())?;
                Ok(walk.found)
            }
            (true, false) => Err(usage("is a folder: repeat with --recursive", &from)),
            (false, true) => Err(usage("must be a folder with --recursive", &from)),
            (false, false) => {
                let in_folder = to.name.is_empty() || to.name.ends_with('/');
                let to = if in_folder { below(&to, &from)? } else { to };
                let files = vec![source(from, &found, to)?];
                Ok(FoundFiles { files, skipped: Vec::new() })
            }
        }
    })
    .await
}

/// A walk over a folder and those below it.
struct FolderWalk {
    /// The folder, without links.
    root: PathBuf,
    follow_links: bool,
    /// The folders around the present one, without links, where links are followed.
    open: Vec<PathBuf>,
    found: FoundFiles,
}

impl FolderWalk {
    /// Adds the files in a folder.
    fn enter(&mut self, folder: &Path, to: &BlobAddress) -> Result<(), CliError> {
        let failed = || CliError::input(files::cannot("read", folder));
        let entries: io::Result<Vec<_>> = fs::read_dir(folder).map_err(failed())?.collect();
        for entry in entries.map_err(failed())? {
            if let Err(error) = self.add(&entry, to) {
                let name = entry.path().display().to_string();
                self.found.skipped.push(SkippedItem::new(name, &error));
            }
        }
        Ok(())
    }

    /// Adds a file, or the files in a folder.
    fn add(&mut self, entry: &DirEntry, to: &BlobAddress) -> Result<(), CliError> {
        let path = entry.path();
        let failed = || CliError::input(files::cannot("read", &path));
        let is_link = entry.file_type().map_err(failed())?.is_symlink();
        let metadata = fs::metadata(&path).map_err(failed())?;
        let to = below(to, &path)?;
        if is_link && !self.follow_links {
            let target = fs::canonicalize(&path).map_err(failed())?;
            if metadata.is_dir() {
                return Err(usage("is a link to a folder: --follow-links copies it", &path));
            }
            if !target.starts_with(&self.root) {
                let rule = "is a link out of the folder: --follow-links copies its target";
                return Err(usage(rule, &path));
            }
        }
        if !metadata.is_dir() {
            self.found.files.push(source(path, &metadata, to)?);
            return Ok(());
        }
        if self.follow_links {
            let target = fs::canonicalize(&path).map_err(failed())?;
            if self.open.contains(&target) {
                return Err(usage("is a folder that a link in it leads back to", &path));
            }
            self.open.push(target);
        }
        let entered = self.enter(&path, &to.folder());
        if self.follow_links {
            self.open.pop();
        }
        entered
    }
}

fn source(path: PathBuf, found: &Metadata, to: BlobAddress) -> Result<SourceFile, CliError> {
    match found.is_file() {
        true => Ok(SourceFile { path, size: found.len(), to }),
        false => Err(usage("is not a file", &path)),
    }
}

/// The blob for a file in a folder.
fn below(folder: &BlobAddress, path: &Path) -> Result<BlobAddress, CliError> {
    let name = path.file_name().and_then(|name| name.to_str());
    let name = name.ok_or_else(|| usage("must have a name in UTF-8", path))?;
    relative_path(name)?;
    Ok(folder.with_name(format!("{}{name}", folder.name)))
}

fn usage(rule: &str, path: &Path) -> CliError {
    CliError::Usage(format!("{rule}: path=`{}`", path.display()))
}
