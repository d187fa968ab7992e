//! Writing documents.

use trestle_model::xml::is_allowed;

/// The start of every document.
const DECLARATION: &str = "<?xml version=\"1.0\" encoding=\"utf-8\"?>";

/// A document that is being written. The same function opens and closes an element.
pub(super) struct XmlWriter(String);

impl XmlWriter {
    /// A document with one root element, whose content `inside` writes.
    pub(super) fn document(root: &str, inside: impl FnOnce(&mut Self)) -> String {
        let mut writer = Self(String::with_capacity(512));
        writer.0.push_str(DECLARATION);
        writer.element(root, inside);
        writer.0
    }

    /// The same, with those attributes on the root element that have a value.
    pub(super) fn document_of(
        root: &str,
        attributes: &[(&str, Option<&str>)],
        inside: impl FnOnce(&mut Self),
    ) -> String {
        let mut writer = Self(String::with_capacity(512));
        writer.0.push_str(DECLARATION);
        writer.0.push('<');
        writer.0.push_str(root);
        for (name, value) in attributes {
            if let Some(value) = value {
                writer.attribute(name, value);
            }
        }
        writer.0.push('>');
        inside(&mut writer);
        writer.end(root);
        writer.0
    }

    fn attribute(&mut self, name: &str, value: &str) {
        for part in [" ", name, "=\""] {
            self.0.push_str(part);
        }
        self.push_escaped(value);
        self.0.push('"');
    }

    /// An element, whose content `inside` writes.
    pub(super) fn element(&mut self, name: &str, inside: impl FnOnce(&mut Self)) {
        self.0.push('<');
        self.0.push_str(name);
        let end = self.0.len();
        self.0.push('>');
        inside(self);
        if self.0.len() == end + 1 {
            self.0.truncate(end);
            self.0.push_str(" />");
        } else {
            self.end(name);
        }
    }

    /// An element with a text.
    pub(super) fn text(&mut self, name: &str, text: &str) {
        self.element(name, |writer| writer.push_escaped(text));
    }

    /// The same, with an attribute.
    pub(super) fn text_with(&mut self, name: &str, attribute: (&str, &str), text: &str) {
        self.0.push('<');
        self.0.push_str(name);
        self.attribute(attribute.0, attribute.1);
        self.0.push('>');
        self.push_escaped(text);
        self.end(name);
    }

    /// An element with a number or a boolean.
    pub(super) fn value(&mut self, name: &str, value: &impl ToString) {
        self.text(name, &value.to_string());
    }

    fn end(&mut self, name: &str) {
        for part in ["</", name, ">"] {
            self.0.push_str(part);
        }
    }

    /// Text in XML. A carriage return is written as a reference, since a parser may read a plain
    /// one as a line feed; a character that XML cannot represent is written as U+FFFD.
    fn push_escaped(&mut self, text: &str) {
        let mut plain_from = 0;
        for (at, character) in text.char_indices() {
            let Some(escaped) = escaped(character) else { continue };
            self.0.push_str(&text[plain_from..at]);
            self.0.push_str(escaped);
            plain_from = at + character.len_utf8();
        }
        self.0.push_str(&text[plain_from..]);
    }
}

/// The replacement of a character that a document cannot contain.
fn escaped(character: char) -> Option<&'static str> {
    match character {
        '&' => Some("&amp;"),
        '<' => Some("&lt;"),
        '>' => Some("&gt;"),
        '"' => Some("&quot;"),
        '\r' => Some("&#xD;"),
        other if is_allowed(other) => None,
        _ => Some("\u{fffd}"),
    }
}

/// The content of an error body.
#[derive(Debug, Clone, Copy)]
pub struct ErrorBody<'a> {
    /// The error code of Azure.
    pub code: &'a str,
    /// The message.
    pub message: &'a str,
    /// More elements, by name, such as `QueryParameterName`.
    pub details: &'a [(&'a str, &'a str)],
}

/// The body of an error of queues and blobs.
#[must_use]
pub fn write_error(error: &ErrorBody<'_>) -> String {
    XmlWriter::document("Error", |writer| {
        writer.text("Code", error.code);
        writer.text("Message", error.message);
        for (name, value) in error.details {
            writer.text(name, value);
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_element_closes_itself_and_others_nest() {
        let text = XmlWriter::document("A", |writer| {
            writer.text("B", "");
            writer.element("C", |writer| writer.value("D", &7));
            writer.element("E", |_| {});
        });

        assert_eq!(text, format!("{DECLARATION}<A><B /><C><D>7</D></C><E /></A>"));
    }

    #[test]
    fn text_is_escaped_and_keeps_every_line_break() {
        let text = XmlWriter::document_of("A", &[("b", Some("\"<&")), ("c", None)], |writer| {
            writer.text("C", "<&>\"'\r\n\té\u{1f600}\u{1}\u{ffff}");
        });

        let value = "&lt;&amp;&gt;&quot;'&#xD;\n\té\u{1f600}\u{fffd}\u{fffd}";
        assert_eq!(text, format!("{DECLARATION}<A b=\"&quot;&lt;&amp;\"><C>{value}</C></A>"));
    }

    #[test]
    fn an_error_has_its_details_after_its_message() {
        let details = [("QueryParameterName", "popreceipt"), ("Reason", "a < b")];
        let error = ErrorBody { code: "InvalidInput", message: "one\ntwo", details: &details };

        assert_eq!(
            write_error(&error),
            format!(
                "{DECLARATION}<Error><Code>InvalidInput</Code><Message>one\ntwo</Message>\
                 <QueryParameterName>popreceipt</QueryParameterName><Reason>a &lt; b</Reason></Error>"
            )
        );
    }
}
