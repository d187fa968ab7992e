//! The texts of messages, which Azurite stores in files of many.

use std::{
    io::{Error, ErrorKind},
    os::unix::fs::FileExt as _,
    path::Path,
};

use trestle_model::limits::MESSAGE_BODY_BYTES_MAX;
use trestle_proto::queue::v1::outgoing_message::Body;

use super::{documents::TextLocation, regular_file};

/// The content of a message, from the files in a directory.
pub(super) fn read(directory: &Path, location: &TextLocation) -> Result<Body, String> {
    let TextLocation { id, offset, count } = location;
    let bytes = usize::try_from(*count).ok().filter(|count| *count <= MESSAGE_BODY_BYTES_MAX);
    let Some(bytes) = bytes else {
        return Err(format!("its text is larger than {MESSAGE_BODY_BYTES_MAX} bytes: {count}"));
    };
    if bytes == 0 {
        return Ok(Body::Text(String::new()));
    }
    // Names come from an untrusted file.
    if id.is_empty() || !id.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-') {
        return Err(format!("its text is in a file with a name that Azurite does not use: `{id}`"));
    }
    let mut text = vec![0; bytes];
    let read = regular_file::open_in(directory, id);
    let read = read.and_then(|file| file.read_exact_at(&mut text, *offset));
    read.map_err(|error: Error| match error.kind() {
        ErrorKind::NotFound => format!("its text is missing: file=`{id}` does not exist"),
        ErrorKind::UnexpectedEof => format!("its text is missing: file=`{id}` ends before it"),
        _ => format!("its text cannot be read: file=`{id}`, {error}"),
    })?;
    String::from_utf8(text)
        .map(Body::Text)
        .map_err(|_| format!("its text is damaged: file=`{id}`, offset={offset}"))
}

#[cfg(test)]
mod tests;
