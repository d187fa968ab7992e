//! The bounds of an error in the trailers of a response. Clients accept few: gRPC's C library 8 KiB, Java 8 KiB.

use super::{Fault, Violation};

/// Most bytes of the text in `grpc-message`, where each byte that is not printable ASCII has three.
const MESSAGE_BYTES_MAX: usize = 1536;
/// Most bytes of the name of a resource; those of ASCII are whole.
const NAME_BYTES_MAX: usize = 1024;
/// Most bytes of a field, and of a description.
const TEXT_BYTES_MAX: usize = 512;
/// Most bytes of all violations, which base64 makes a third longer.
const VIOLATIONS_BYTES_MAX: usize = 2560;

impl Fault {
    /// With shortened texts, where they do not fit; of many violations the first ones.
    #[must_use]
    pub fn bounded(mut self) -> Self {
        let in_header = |it: char| if it == '%' || !is_printable(it) { 3 } else { 1 };
        cut(&mut self.message, MESSAGE_BYTES_MAX, in_header);
        if let Some(resource) = &mut self.resource {
            cut(&mut resource.name, NAME_BYTES_MAX, |_| 1);
        }
        let mut bytes = 0;
        self.violations.retain_mut(|Violation { field, description, .. }| {
            cut(field, TEXT_BYTES_MAX, |_| 1);
            cut(description, TEXT_BYTES_MAX, |_| 1);
            // Each has some bytes beside its texts.
            bytes += field.len() + description.len() + 8;
            bytes <= VIOLATIONS_BYTES_MAX
        });
        self
    }
}

fn is_printable(it: char) -> bool {
    it.is_ascii_graphic() || it == ' '
}

/// Shortens a text to so many bytes, where each byte of a character counts as often as its `weight`.
fn cut(text: &mut String, bytes_max: usize, weight: impl Fn(char) -> usize) {
    let mut bytes = 0;
    let past = text.char_indices().find(|(_, it)| {
        bytes += it.len_utf8() * weight(*it);
        bytes > bytes_max
    });
    if let Some((end, _)) = past {
        text.truncate(end);
        text.push('…');
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fault::Reason;

    #[test]
    fn what_fits_is_whole() {
        let name = "n".repeat(1024);
        let fault = Fault::about(Reason::BlobNotFound, format!("absent: {name}"), "blob", name);
        assert_eq!(fault.clone().bounded(), fault);
        let mut text = "ab漢".to_owned();
        cut(&mut text, 4, |_| 1);
        assert_eq!(text, "ab…");
    }
}
