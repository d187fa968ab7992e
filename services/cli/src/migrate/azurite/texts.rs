//! The texts of messages, which Azurite stores in files of many.

use std::{
    collections::HashMap,
    fs::File,
    io::{ErrorKind, Read as _, Seek as _, SeekFrom},
    path::PathBuf,
};

use trestle_proto::queue::v1::outgoing_message::Body;
use trestle_service::limits::MESSAGE_BODY_BYTES_MAX;

use super::documents::TextLocation;

/// Most files that are open at a time.
const OPEN_MAX: usize = 16;

/// Reads texts.
pub(super) struct Texts {
    directory: PathBuf,
    open: HashMap<String, File>,
}

impl Texts {
    /// A reader of the files in a directory.
    pub(super) fn new(directory: PathBuf) -> Self {
        Self { directory, open: HashMap::new() }
    }

    /// The content of a message.
    pub(super) fn read(&mut self, location: &TextLocation) -> Result<Body, String> {
        let TextLocation { id, offset, count } = location;
        let fits = usize::try_from(*count).is_ok_and(|count| count <= MESSAGE_BODY_BYTES_MAX);
        if !fits {
            return Err(format!("its text is larger than {MESSAGE_BODY_BYTES_MAX} bytes: {count}"));
        }
        if *count == 0 {
            return Ok(Body::Text(String::new()));
        }
        let file = self.file(id)?;
        let mut bytes = Vec::new();
        file.seek(SeekFrom::Start(*offset))
            .and_then(|_| file.take(*count).read_to_end(&mut bytes))
            .map_err(|error| format!("its text cannot be read: file=`{id}`, {error}"))?;
        if u64::try_from(bytes.len()).ok() != Some(*count) {
            return Err(format!("its text is missing: file=`{id}` ends before it"));
        }
        String::from_utf8(bytes)
            .map(Body::Text)
            .map_err(|_| format!("its text is damaged: file=`{id}`, offset={offset}"))
    }

    fn file(&mut self, id: &str) -> Result<&mut File, String> {
        let plain = |b: u8| b.is_ascii_alphanumeric() || b == b'-';
        // Names come from an untrusted file.
        if id.is_empty() || !id.bytes().all(plain) {
            return Err(format!(
                "its text is in a file with a name that Azurite does not use: `{id}`"
            ));
        }
        if !self.open.contains_key(id) {
            if self.open.len() >= OPEN_MAX {
                self.open.clear();
            }
            let file = File::open(self.directory.join(id)).map_err(|error| match error.kind() {
                ErrorKind::NotFound => format!("its text is missing: file=`{id}` does not exist"),
                _ => format!("its text cannot be read: file=`{id}`, {error}"),
            })?;
            self.open.insert(id.to_owned(), file);
        }
        self.open.get_mut(id).ok_or_else(|| format!("its text cannot be read: file=`{id}`"))
    }
}

#[cfg(test)]
mod tests;
