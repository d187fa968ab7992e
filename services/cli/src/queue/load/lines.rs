//! The lines of a file, as messages.

use std::{
    fs::File,
    io::{self, BufRead, BufReader, Read, Seek as _, SeekFrom},
    path::Path,
};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde::Deserialize;
use trestle_proto::queue::v1::outgoing_message::Body;

use super::notes::Place;
use crate::errors::CliError;

/// Longest line, in bytes: a message of 64 KiB, every byte of it escaped.
const LINE_BYTES_MAX: u64 = 1024 * 1024;

/// A line as `drain` writes it. What else is in it says how the message was, not how it is to be.
#[derive(Debug, Deserialize)]
struct Line {
    text: Option<String>,
    data_base64: Option<String>,
}

/// What a line says.
#[derive(Debug, PartialEq)]
pub(super) struct Message {
    pub(super) body: Body,
    pub(super) body_bytes: usize,
}

/// See the module.
pub(super) struct Lines {
    input: Box<dyn BufRead + Send>,
    /// Name of the file, for messages.
    name: String,
    is_text: bool,
    at: Place,
}

impl Lines {
    /// The lines of a file from `at` on, and how many bytes it has; none are known of a pipe. `-` is standard input.
    pub(super) fn open(
        path: &Path,
        is_text: bool,
        at: Place,
    ) -> Result<(Self, Option<u64>), CliError> {
        let name = path.display().to_string();
        if name == "-" {
            let input = Box::new(BufReader::new(io::stdin()));
            return Ok((Self { input, name, is_text, at }, None));
        }
        let open = || -> io::Result<(File, Option<u64>)> {
            let mut file = File::open(path)?;
            let metadata = file.metadata()?;
            let bytes = metadata.is_file().then_some(metadata.len());
            if bytes.is_some() {
                file.seek(SeekFrom::Start(at.byte))?;
            }
            Ok((file, bytes))
        };
        let (file, bytes) = open().map_err(CliError::input(format!("cannot read `{name}`")))?;
        if bytes.is_some_and(|bytes| bytes < at.byte) {
            let problem = "the file is shorter than what is sent of it";
            return Err(CliError::Usage(format!("{problem}: `{name}`")));
        }
        Ok((Self { input: Box::new(BufReader::new(file)), name, is_text, at }, bytes))
    }

    /// Where the next line begins.
    pub(super) fn place(&self) -> Place {
        self.at
    }

    /// The next message; none at the end.
    pub(super) fn next(&mut self) -> Result<Option<Message>, CliError> {
        let number = self.at.line + 1;
        let wrong = |problem| CliError::Usage(format!("{}:{number}: {problem}", self.name));
        let what = format!("cannot read `{}` after line {}", self.name, self.at.line);
        let read = read_line(&mut self.input).map_err(|error| match error.kind() {
            io::ErrorKind::InvalidData => wrong(error.to_string()),
            _ => CliError::file(what)(error),
        });
        let Some((line, bytes)) = read? else { return Ok(None) };
        let body = body_of(line, self.is_text).map_err(wrong)?;
        let body_bytes = match &body {
            Body::Text(text) => text.len(),
            Body::Data(data) => data.len(),
        };
        let Place { byte, messages, .. } = self.at;
        self.at = Place { byte: byte + bytes, line: number, messages: messages + 1 };
        Ok(Some(Message { body, body_bytes }))
    }
}

/// Whether what is there can be read once only.
pub(super) fn is_pipe(path: &Path) -> bool {
    path == Path::new("-") || path.metadata().is_ok_and(|metadata| !metadata.is_file())
}

/// A line without its end, and how many bytes it has with it.
fn read_line(input: &mut dyn BufRead) -> io::Result<Option<(String, u64)>> {
    let mut line = String::new();
    let mut bounded = input.take(LINE_BYTES_MAX);
    let bytes = u64::try_from(bounded.read_line(&mut line)?).unwrap_or(u64::MAX);
    if bytes == 0 {
        return Ok(None);
    }
    if !line.ends_with('\n') && bytes >= LINE_BYTES_MAX {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "a line is longer than 1 MiB"));
    }
    let trimmed = line.strip_suffix('\n').unwrap_or(&line);
    Ok(Some((trimmed.strip_suffix('\r').unwrap_or(trimmed).to_owned(), bytes)))
}

fn body_of(line: String, is_text: bool) -> Result<Body, String> {
    if is_text {
        return Ok(Body::Text(line));
    }
    let parsed: Line = serde_json::from_str(&line).map_err(|error| error.to_string())?;
    match (parsed.text, parsed.data_base64) {
        (Some(text), None) => Ok(Body::Text(text)),
        (None, Some(data)) => {
            let decoded = STANDARD.decode(data);
            decoded.map(|data| Body::Data(data.into())).map_err(|error| error.to_string())
        }
        _ => Err("must have either text or data_base64".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str) -> Body {
        Body::Text(text.to_owned())
    }

    #[test]
    fn a_line_is_text_or_an_object_with_one_body() {
        assert_eq!(body_of("{".to_owned(), true), Ok(text("{")));
        assert_eq!(body_of(r#"{"text":"a","dequeue_count":3}"#.to_owned(), false), Ok(text("a")));
        let data = body_of(r#"{"data_base64":"AP8="}"#.to_owned(), false);
        assert_eq!(data, Ok(Body::Data(vec![0, 255].into())));
        for line in ["{", "{}", r#"{"text":"a","data_base64":""}"#, r#"{"data_base64":"?"}"#] {
            assert!(body_of(line.to_owned(), false).is_err(), "{line}");
        }
    }

    #[test]
    fn lines_end_at_their_breaks_and_at_the_bound() {
        let mut input: &[u8] = b"a\r\nb\n\nc";
        let lines: Vec<_> =
            std::iter::from_fn(|| read_line(&mut input).expect("readable")).collect();
        let expected = [("a", 3), ("b", 2), ("", 1), ("c", 1)];
        assert_eq!(lines, expected.map(|(line, bytes)| (line.to_owned(), bytes)));
        let long = vec![b'x'; usize::try_from(LINE_BYTES_MAX).expect("fits") + 1];
        assert!(read_line(&mut &long[..]).is_err());
    }

    #[test]
    fn a_place_is_where_reading_goes_on() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("lines");
        std::fs::write(&path, "a\r\nb\nc\n").expect("written");
        let (mut lines, bytes) = Lines::open(&path, true, Place::default()).expect("there");
        assert_eq!(bytes, Some(7));
        lines.next().expect("readable");
        lines.next().expect("readable");

        let place = lines.place();
        let (mut rest, _) = Lines::open(&path, true, place).expect("there");

        assert_eq!(place, Place { byte: 5, line: 2, messages: 2 });
        assert_eq!(rest.next().expect("readable").map(|message| message.body), Some(text("c")));
        assert_eq!(rest.next().expect("readable"), None);
        assert!(Lines::open(&path, true, Place { byte: 8, ..place }).is_err());
    }
}
