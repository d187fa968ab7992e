//! The lines of a file, as messages.

use std::io;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde::Deserialize;
use trestle_command::{errors::CliError, lines::Lines};
use trestle_model::json_error::json_problem;
use trestle_proto::queue::v1::outgoing_message::Body;

/// Longest line, in bytes: a message of 64 KiB, every byte of it escaped.
pub(super) const LINE_BYTES_MAX: u64 = 1024 * 1024;

/// The rule for a line that is not a text.
const FORMAT: &str = "must be a JSON object with text or data_base64, as `drain` writes it";

/// A line in the format of `drain`. Its other fields describe the message in its old queue.
#[derive(Debug, Deserialize)]
struct MessageLine {
    text: Option<String>,
    data_base64: Option<String>,
}

/// See the module.
pub(super) struct MessageLines {
    pub(super) lines: Lines,
    /// Name of the file, for messages.
    pub(super) name: String,
    pub(super) is_text: bool,
}

impl MessageLines {
    /// The body of the next message, and its size in bytes; none at the end.
    pub(super) fn next(&mut self) -> Result<Option<(Body, usize)>, CliError> {
        let (name, before) = (&self.name, self.lines.at.line);
        let invalid = |rule| CliError::Usage(format!("{name}:{}: {rule}", before + 1));
        let line = self.lines.read_line().map_err(|error| match error.kind() {
            io::ErrorKind::InvalidData => invalid(error.to_string()),
            _ => CliError::file(format!("cannot read `{name}` after line {before}"))(error),
        });
        let Some(line) = line? else { return Ok(None) };
        let (body, bytes) = body_of(line, self.is_text).map_err(invalid)?;
        self.lines.at.row += 1;
        Ok(Some((body, bytes)))
    }
}

fn body_of(line: &[u8], is_text: bool) -> Result<(Body, usize), String> {
    let text = |text: String| (text.len(), Body::Text(text));
    let (bytes, body) = if is_text {
        text(str::from_utf8(line).map_err(|_| "must be UTF-8")?.to_owned())
    } else {
        let parsed: MessageLine = serde_json::from_slice(line).map_err(|error| {
            let problem = json_problem(&String::from_utf8_lossy(line), &error);
            format!("{FORMAT}: {problem}; with --text every line is the text of a message")
        })?;
        match (parsed.text, parsed.data_base64) {
            (Some(body), None) => text(body),
            (None, Some(data)) => {
                let data = STANDARD.decode(data).map_err(|_| "data_base64: must be base64")?;
                (data.len(), Body::Data(data.into()))
            }
            _ => return Err("must have either text or data_base64".to_owned()),
        }
    };
    Ok((body, bytes))
}

#[cfg(test)]
mod tests;
