//! Splits `multipart/mixed`, and nothing more of MIME.
//!
//! Crates for multipart parse forms, which differ; those for mail decode encodings that batches
//! never use. Clients differ: lines end in CRLF or LF, boundaries are quoted or not, optional blank
//! lines occur, and the last boundary may lack its dashes. It is required, or a truncated batch
//! would pass for a complete one.

use memchr::memmem;

/// Longest accepted boundary, in bytes; the standard allows 70.
const BOUNDARY_BYTES_MAX: usize = 256;

/// The boundary in a content type of `multipart/mixed`; none in any other.
#[must_use]
pub fn boundary(content_type: &str) -> Option<&str> {
    let (kind, mut parameters) = content_type.split_once(';')?;
    if !kind.trim().eq_ignore_ascii_case("multipart/mixed") {
        return None;
    }
    loop {
        let (name, rest) = parameters.split_once('=')?;
        let rest = rest.trim_start();
        let (value, rest) = match rest.strip_prefix('"') {
            Some(quoted) => quoted.split_once('"')?,
            None => rest.split_at(rest.find(';').unwrap_or(rest.len())),
        };
        if name.trim().eq_ignore_ascii_case("boundary") {
            let value = value.trim();
            return (1..=BOUNDARY_BYTES_MAX).contains(&value.len()).then_some(value);
        }
        parameters = rest.trim_start().strip_prefix(';')?;
    }
}

/// The parts between the boundaries of a body, with their headers. Blank ones are ignored.
#[must_use]
pub fn parts<'a>(body: &'a [u8], boundary: &str) -> MultipartParts<'a> {
    let delimiter = [b"--", boundary.as_bytes()].concat();
    let delimiter = memmem::Finder::new(&delimiter).into_owned();
    let mut parts = MultipartParts { preamble: &[], rest: body, delimiter, has_more: true };
    // The preamble before the first boundary is not a part, but without any boundary the body is
    // truncated.
    if let Some(preamble) = parts.part() {
        parts.preamble = preamble;
    }
    parts
}

/// A truncated body: other text than the end follows its last boundary, or it has none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Truncated;

/// See [`parts`].
#[derive(Debug)]
pub struct MultipartParts<'a> {
    /// The preamble before the first boundary.
    preamble: &'a [u8],
    /// The unread rest; after the last boundary, the epilogue.
    rest: &'a [u8],
    /// Finds two dashes and the boundary.
    delimiter: memmem::Finder<'static>,
    /// Whether another part follows.
    has_more: bool,
}

impl<'a> Iterator for MultipartParts<'a> {
    type Item = Result<&'a [u8], Truncated>;

    fn next(&mut self) -> Option<Self::Item> {
        while self.has_more {
            match self.part() {
                Some(part) if is_blank(part) => {}
                Some(part) => return Some(Ok(part)),
                None => {
                    self.has_more = false;
                    // The last boundary may lack its dashes.
                    return (!is_blank(self.rest)).then_some(Err(Truncated));
                }
            }
        }
        None
    }
}

impl<'a> MultipartParts<'a> {
    /// Whether the preamble and, once every part was read, the epilogue are empty.
    #[must_use]
    pub fn are_all(&self) -> bool {
        is_blank(self.preamble) && is_blank(self.rest)
    }

    /// Whether the preamble or, once every part was read, the epilogue contains a line that begins
    /// as a boundary. MIME allows other text after it, which is ignored.
    #[must_use]
    pub fn surround_parts(&self) -> bool {
        let mut lines =
            [self.preamble, self.rest].into_iter().flat_map(|text| text.split(|b| *b == b'\n'));
        lines.any(|line| line.starts_with(b"--"))
    }

    /// Reads up to the next boundary, and the boundary; none if no other follows.
    fn part(&mut self) -> Option<&'a [u8]> {
        let mut from = 0;
        while let Some(found) = self.rest.get(from..).and_then(|rest| self.delimiter.find(rest)) {
            let (before, after) = self.rest.split_at(from + found);
            let is_line_start = before.last().is_none_or(|byte| *byte == b'\n');
            let after = after.get(self.delimiter.needle().len()..).unwrap_or_default();
            if let Some((is_last, after)) = line_end(after).filter(|_| is_line_start) {
                (self.has_more, self.rest) = (!is_last, after);
                let before = before.strip_suffix(b"\n").unwrap_or(before);
                return Some(before.strip_suffix(b"\r").unwrap_or(before));
            }
            from += found + 1;
        }
        None
    }
}

fn is_blank(bytes: &[u8]) -> bool {
    bytes.iter().all(u8::is_ascii_whitespace)
}

/// The rest after the line of a boundary, and whether it is the last one; none if other text
/// follows on the line, which makes it no boundary.
fn line_end(after: &[u8]) -> Option<(bool, &[u8])> {
    let (is_last, after) = match after.strip_prefix(b"--") {
        Some(after) => (true, after),
        None => (false, after),
    };
    let blank = after.iter().take_while(|byte| matches!(byte, b' ' | b'\t' | b'\r')).count();
    match after.get(blank) {
        None => Some((is_last, &[])),
        Some(b'\n') => Some((is_last, after.get(blank + 1..).unwrap_or_default())),
        Some(_) => None,
    }
}

#[cfg(test)]
mod tests;
