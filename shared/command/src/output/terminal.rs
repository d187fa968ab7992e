//! Standard output of results: on a terminal no control character reaches it, in a pipe bytes are as they are.

use std::io::{self, BufWriter, IsTerminal as _, Write};

/// The first byte of the control characters U+0080 to U+009F in UTF-8.
const LEAD: u8 = 0xc2;

/// Buffered standard output for results that may contain stored text.
#[must_use]
pub fn standard_output() -> Box<dyn Write + Send> {
    let out = BufWriter::new(io::stdout());
    match io::stdout().is_terminal() {
        true => Box::new(Neutralized { out, has_lead: false }),
        false => Box::new(out),
    }
}

/// Escapes control characters of UTF-8 as JSON does, except those that separate lines and columns.
struct Neutralized<W> {
    out: W,
    /// Whether the last byte is [`LEAD`], which is not written yet.
    has_lead: bool,
}

impl<W: Write> Write for Neutralized<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut text = Vec::with_capacity(bytes.len());
        for &byte in bytes {
            let has_lead = std::mem::replace(&mut self.has_lead, byte == LEAD);
            let is_control = byte.is_ascii_control() || (has_lead && (0x80..=0x9f).contains(&byte));
            if has_lead && !(is_control && byte >= 0x80) {
                text.push(LEAD);
            }
            match byte {
                b'\n' | b'\r' | b'\t' => text.push(byte),
                _ if is_control => write!(text, "\\u{byte:04x}")?,
                LEAD => {}
                _ => text.push(byte),
            }
        }
        self.out.write_all(&text)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_escaped_wherever_a_write_ends() {
        let text = "a\u{1b}[31m\u{9b}1m\u{7f}é\u{a0}Â\u{80}\r\n\t日";
        let expected = "a\\u001b[31m\\u009b1m\\u007fé\u{a0}Â\\u0080\r\n\t日";

        for size in 1..5 {
            let mut out = Neutralized { out: Vec::new(), has_lead: false };
            text.as_bytes().chunks(size).for_each(|part| out.write_all(part).unwrap());
            assert_eq!(String::from_utf8(out.out).unwrap(), expected, "{size}");
        }
    }
}
