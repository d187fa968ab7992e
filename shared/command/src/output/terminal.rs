//! Standard output of results: on a terminal no control character reaches it, in a pipe bytes are as they are.

use std::io::{self, BufWriter, IsTerminal as _, Write};

use super::cells::controls_terminal;

/// Buffered standard output for results that may contain stored text.
#[must_use]
pub fn standard_output() -> Box<dyn Write + Send> {
    let out = BufWriter::new(io::stdout());
    match io::stdout().is_terminal() {
        true => Box::new(Neutralized { out, held: Vec::new() }),
        false => Box::new(out),
    }
}

/// Escapes control characters of UTF-8 as JSON does, except those that separate lines and columns.
struct Neutralized<W> {
    out: W,
    /// The last bytes, where they may begin a control character; not written yet.
    held: Vec<u8>,
}

/// Whether a byte after those may begin, or continue without an end, a character that is escaped.
fn is_open(held: &[u8], byte: u8) -> bool {
    matches!((held, byte), ([], 0xc2 | 0xd8 | 0xe2) | ([0xe2], 0x80 | 0x81))
}

/// The character that these bytes are, if it is escaped.
fn escape(bytes: &[u8]) -> Option<char> {
    let c = str::from_utf8(bytes).ok()?.chars().next()?;
    (controls_terminal(c) && !matches!(c, '\n' | '\r' | '\t')).then_some(c)
}

impl<W> Neutralized<W> {
    fn push(&mut self, byte: u8, text: &mut Vec<u8>) {
        let is_open = is_open(&self.held, byte);
        self.held.push(byte);
        if is_open {
            return;
        }
        if let Some(c) = escape(&self.held) {
            self.held.clear();
            text.extend_from_slice(format!("\\u{:04x}", u32::from(c)).as_bytes());
        } else if self.held.len() == 1 {
            text.append(&mut self.held);
        } else {
            // The bytes before are another character, and this one may begin one.
            self.held.pop();
            text.append(&mut self.held);
            self.push(byte, text);
        }
    }
}

impl<W: Write> Write for Neutralized<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut text = Vec::with_capacity(bytes.len());
        for &byte in bytes {
            self.push(byte, &mut text);
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
        let text = concat!(
            "a\u{1b}[31m\u{9b}1m\u{7f}é\u{a0}Â\u{80}\r\n\t日",
            "\u{202e}…\u{2066}\u{2070}\u{61c}؟\u{200f}."
        );
        let expected = concat!(
            "a\\u001b[31m\\u009b1m\\u007fé\u{a0}Â\\u0080\r\n\t日",
            "\\u202e…\\u2066\u{2070}\\u061c؟\\u200f."
        );

        for size in 1..5 {
            let mut out = Neutralized { out: Vec::new(), held: Vec::new() };
            text.as_bytes().chunks(size).for_each(|part| out.write_all(part).unwrap());
            assert_eq!(String::from_utf8(out.out).unwrap(), expected, "{size}");
        }
    }
}
