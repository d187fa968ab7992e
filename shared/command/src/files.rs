//! Files that commands read and write, and the names derived from theirs.

use std::{
    fs::{self, File},
    io::{self, Read, Seek as _, SeekFrom},
    path::{Path, PathBuf},
};

use crate::errors::CliError;

/// Most links that are followed to a file. As many as the system follows.
const LINKS_MAX: usize = 40;
/// What some programs write before a text; no content.
pub const BYTE_ORDER_MARK: &str = "\u{feff}";

/// A failed file operation, such as ``cannot read `FILE` ``.
#[must_use]
pub fn cannot(what: &str, path: &Path) -> String {
    format!("cannot {what} `{}`", path.display())
}

/// The destination of the lines of a command.
#[derive(Debug, PartialEq, Eq)]
pub enum OutputTarget {
    /// Standard output.
    Standard,
    /// A pipe or a device: written directly, since a rename would replace it with a file.
    Stream,
    /// A file, or where one can be made; no link.
    File(PathBuf),
}

/// A file that is read from its beginning to its end.
pub struct InputFile {
    path: PathBuf,
    /// Its size; none for standard input, a pipe or a device, which cannot be read again.
    pub bytes: Option<u64>,
}

impl InputFile {
    /// Looks whether a file can be read; `-` is standard input.
    ///
    /// # Errors
    /// No such file, a folder, and with `resume` an input that cannot be read from the middle.
    pub fn find(path: &Path, resume: bool) -> Result<Self, CliError> {
        let bytes = if path == Path::new("-") {
            None
        } else {
            let metadata = path.metadata().map_err(CliError::input(cannot("read", path)))?;
            if metadata.is_dir() {
                return Err(is_folder(path));
            }
            if metadata.is_file() {
                File::open(path).map_err(CliError::input(cannot("read", path)))?;
            }
            metadata.is_file().then_some(metadata.len())
        };
        if resume && bytes.is_none() {
            return Err(CliError::Usage("--resume needs a file, not a pipe".to_owned()));
        }
        Ok(Self { path: path.to_owned(), bytes })
    }

    /// Its name, for messages.
    pub fn name(&self) -> String {
        self.path.display().to_string()
    }

    /// The base of its checkpoint and its hash; none for a pipe.
    pub fn file(&self) -> Option<&Path> {
        self.bytes.map(|_| self.path.as_path())
    }

    /// Its bytes from a position on, which is 0 for a pipe.
    ///
    /// # Errors
    /// The error of the file.
    pub fn open(&self, position: u64) -> io::Result<Box<dyn Read + Send>> {
        if self.path == Path::new("-") {
            return Ok(Box::new(io::stdin()));
        }
        let mut file = File::open(&self.path)?;
        if position > 0 {
            file.seek(SeekFrom::Start(position))?;
        }
        Ok(Box::new(file))
    }
}

/// A text without a byte order mark at its beginning.
pub(crate) fn without_mark(text: &str) -> &str {
    text.strip_prefix(BYTE_ORDER_MARK).unwrap_or(text)
}

/// The content of a small file, without a byte order mark; `-` is standard input.
///
/// # Errors
/// A file that cannot be read, is not UTF-8, or has more than `bytes_max` bytes.
pub fn read_small(path: &Path, bytes_max: u64) -> Result<String, CliError> {
    Ok(without_mark(&read_exact(path, bytes_max)?).to_owned())
}

/// The same with every byte, such as of a text that is sent.
///
/// # Errors
/// A file that cannot be read, is longer, or is not UTF-8.
pub fn read_exact(path: &Path, bytes_max: u64) -> Result<String, CliError> {
    let mut text = String::new();
    let opened = InputFile::find(path, false)?.open(0);
    let read = opened.and_then(|file| file.take(bytes_max + 1).read_to_string(&mut text));
    let bytes = read.map_err(CliError::input(cannot("read", path)))?;
    if u64::try_from(bytes).is_ok_and(|bytes| bytes > bytes_max) {
        let rule = format!("must have at most {bytes_max} bytes");
        return Err(CliError::Usage(format!("{rule}: `{}`", path.display())));
    }
    Ok(text)
}

/// The error of a folder in place of a file.
fn is_folder(path: &Path) -> CliError {
    CliError::Usage(format!("is a folder, not a file: file=`{}`", path.display()))
}

/// The kind of a path.
///
/// # Errors
/// A folder, or metadata that cannot be read.
pub fn target(path: &Path) -> Result<OutputTarget, CliError> {
    if path == Path::new("-") {
        return Ok(OutputTarget::Standard);
    }
    match fs::metadata(path) {
        Ok(found) if found.is_dir() => Err(is_folder(path)),
        Ok(found) if !found.is_file() => Ok(OutputTarget::Stream),
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(CliError::input(cannot("write", path))(error))
        }
        // The target of a link may not exist yet.
        _ => Ok(OutputTarget::File(without_links(path))),
    }
}

/// The same for a command that makes no folder, which must exist.
///
/// # Errors
/// A path that cannot be written, or whose folder does not exist.
pub fn target_in_folder(path: &Path) -> Result<OutputTarget, CliError> {
    let target = target(path)?;
    let OutputTarget::File(file) = &target else { return Ok(target) };
    match file.parent().filter(|folder| !folder.as_os_str().is_empty() && !folder.is_dir()) {
        Some(folder) => {
            let (failed, folder) = (cannot("write", path), folder.display());
            let text = format!("{failed}: the folder does not exist, create it: folder=`{folder}`");
            Err(CliError::Usage(text))
        }
        None => Ok(target),
    }
}

/// The error of a write that must not end silently, unlike with output that is only shown: the destination is
/// incomplete.
pub fn unread(error: io::Error) -> io::Error {
    match error.kind() {
        io::ErrorKind::BrokenPipe => io::Error::other("the reader closed it"),
        _ => error,
    }
}

/// The target of a link, over further links.
fn without_links(path: &Path) -> PathBuf {
    let mut path = path.to_owned();
    for _ in 0..LINKS_MAX {
        let Ok(to) = fs::read_link(&path) else { break };
        path = path.parent().map(|folder| folder.join(&to)).unwrap_or(to);
    }
    path
}

/// The path with a suffix after its whole name.
#[must_use]
pub fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

/// Makes a path the same in every working directory.
pub(crate) fn make_absolute(file: &mut Option<PathBuf>) -> Result<(), CliError> {
    if let Some(file) = file {
        *file = std::path::absolute(&*file).map_err(CliError::input(cannot("find", file)))?;
    }
    Ok(())
}

/// Removes a file if it exists.
///
/// # Errors
/// A file that exists and cannot be removed.
pub fn remove(path: &Path) -> Result<(), CliError> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(CliError::file(cannot("remove", path))(error))
        }
        _ => Ok(()),
    }
}

/// Renames a complete file, on stable storage.
///
/// # Errors
/// The disk, or a folder that cannot be written.
pub fn publish(part: &Path, file: &File, path: &Path) -> Result<(), CliError> {
    let publish = || -> io::Result<()> {
        file.sync_all()?;
        fs::rename(part, path)?;
        let folder = match path.parent() {
            Some(folder) if !folder.as_os_str().is_empty() => folder,
            _ => Path::new("."),
        };
        File::open(folder)?.sync_all()
    };
    publish().map_err(CliError::file(cannot("complete", path)))
}

#[cfg(test)]
mod tests;
