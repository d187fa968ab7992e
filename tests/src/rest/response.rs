//! Answers of the Azure Storage protocol.

use bytes::Bytes;
use http::HeaderMap;

/// A response.
#[derive(Debug, Clone)]
pub struct RestResponse {
    /// The status.
    pub status: u16,
    /// The headers.
    pub headers: HeaderMap,
    /// The whole body.
    pub body: Bytes,
}

impl RestResponse {
    /// A header; empty where it is absent.
    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().expect("text"))
    }

    /// The body as text.
    pub fn text(&self) -> &str {
        str::from_utf8(&self.body).expect("UTF-8")
    }

    /// The texts of every element of this name, in their order.
    pub fn all(&self, name: &str) -> Vec<String> {
        let (open, close) = (format!("<{name}"), format!("</{name}>"));
        let (mut rest, mut texts) = (self.text(), Vec::new());
        while let Some((_, after)) = rest.split_once(&open) {
            rest = after;
            if let Some(after) = after.strip_prefix(" />") {
                texts.push(String::new());
                rest = after;
            } else if let Some(after) = after.strip_prefix('>') {
                let (text, later) = after.split_once(&close).expect("the element ends");
                texts.push(unescaped(text));
                rest = later;
            }
        }
        texts
    }

    /// The text of the only element of this name.
    pub fn only(&self, name: &str) -> String {
        let mut texts = self.all(name);
        assert_eq!(texts.len(), 1, "one {name}: {self:?}");
        texts.remove(0)
    }

    /// Status and error code of a failure, the same in headers and body.
    pub fn failure(&self) -> (u16, &str) {
        let code = self.header("x-ms-error-code");
        let forms = [
            format!("\"code\":\"{code}\""),
            format!("<m:code>{code}</m:code>"),
            format!("<Error><Code>{code}</Code><Message>"),
        ];
        let text = self.text();
        let has_form = forms.iter().any(|form| text.contains(form));
        assert!(!code.is_empty() && has_form, "{self:?}");
        (self.status, code)
    }
}

fn unescaped(text: &str) -> String {
    let plain = [("&lt;", "<"), ("&gt;", ">"), ("&quot;", "\""), ("&#xD;", "\r"), ("&amp;", "&")];
    plain.into_iter().fold(text.to_owned(), |text, (from, to)| text.replace(from, to))
}
