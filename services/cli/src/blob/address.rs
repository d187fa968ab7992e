//! Addresses of containers and blobs on the command line, and the paths of files for blobs.

use std::{fmt, path::PathBuf, str::FromStr};

use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};
use trestle_command::errors::CliError;

/// How an address of a blob begins where it could also be a path.
const SCHEME: &str = "blob://";
/// What is encoded in the header that names a blob: all but visible ASCII, and the sign of the encoding.
const ENCODED: &AsciiSet = &CONTROLS.add(b' ').add(b'%');

/// A container, and a blob in it or a prefix of names: `CONTAINER`, `CONTAINER/NAME`, or these after `blob://`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BlobAddress {
    pub(super) container: String,
    /// Empty for the container.
    pub(super) name: String,
}

/// One side of a copy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CopySide {
    /// A file or a folder.
    Local(PathBuf),
    /// A blob, or blobs with a common prefix, after `blob://`.
    Remote(BlobAddress),
    /// A URL, after `http://` or `https://`.
    Url(String),
}

impl FromStr for BlobAddress {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let path = text.strip_prefix(SCHEME).unwrap_or(text);
        let (container, name) = path.split_once('/').unwrap_or((path, ""));
        if container.is_empty() {
            return Err("must be CONTAINER/NAME, with or without blob:// before it".to_owned());
        }
        Ok(Self { container: container.to_owned(), name: name.to_owned() })
    }
}

impl FromStr for CopySide {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.starts_with(SCHEME) {
            true => text.parse().map(Self::Remote),
            false if is_url(text) => Ok(Self::Url(text.to_owned())),
            false => Ok(Self::Local(text.into())),
        }
    }
}

fn is_url(text: &str) -> bool {
    ["http://", "https://"].iter().any(|scheme| text.starts_with(scheme))
}

impl fmt::Display for BlobAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.container, self.name)
    }
}

impl BlobAddress {
    /// Another blob of the container.
    pub(super) fn with_name(&self, name: impl Into<String>) -> Self {
        Self { container: self.container.clone(), name: name.into() }
    }

    /// Itself, if it has a name.
    pub(crate) fn of_blob(self) -> Result<Self, CliError> {
        match self.name.is_empty() {
            false => Ok(self),
            true => {
                let rule = "must be a blob, not a container";
                Err(CliError::Usage(format!("{rule}: container=`{}`", self.container)))
            }
        }
    }

    /// The names of its container and its blob.
    pub(crate) fn into_parts(self) -> (String, String) {
        (self.container, self.name)
    }

    /// The same as a folder: the common prefix of the names of the blobs in it.
    pub(super) fn folder(&self) -> Self {
        match self.name.is_empty() || self.name.ends_with('/') {
            true => self.clone(),
            false => self.with_name(format!("{}/", self.name)),
        }
    }

    /// The last segment of the name.
    pub(super) fn last_segment(&self) -> &str {
        self.name.rsplit('/').next().unwrap_or_default()
    }

    /// The name in the header of calls with a shared access signature.
    pub(super) fn header(&self) -> String {
        utf8_percent_encode(&self.to_string(), ENCODED).to_string()
    }
}

/// The path of a file for a name of a blob, relative to the folder of the copy.
///
/// # Errors
/// A name with segments that no file below the folder can have, such as `..`.
pub(super) fn relative_path(name: &str) -> Result<PathBuf, CliError> {
    let is_file_name =
        |segment: &str| !matches!(segment, "" | "." | "..") && !segment.contains('\0');
    match name.split('/').all(is_file_name) {
        true => Ok(name.split('/').collect()),
        false => {
            Err(CliError::Usage(format!("no file in the folder can have this name: blob=`{name}`")))
        }
    }
}

#[cfg(test)]
mod tests;
