//! Shared Key and Shared Key Lite as the queues and blobs of Azure sign requests of HTTP: the
//! method, some headers, every header `x-ms-*`, the path and the query.
//!
//! Clients differ in details, so several signed texts are possible for a request; see `form`.

mod form;
#[cfg(test)]
mod tests;

use std::{borrow::Cow, fmt::Write as _};

use http::{HeaderName, header};
use trestle_model::fault::quoted;

use self::form::{Order, Secondary, SignedForm, WhiteSpace};
use super::{
    SECONDARY, Scheme, SignedRequest,
    header_text::{collapsed, text_of, word_order},
    query::parameters,
};

/// Since this version a length of zero is signed as no length.
const EMPTY_LENGTH_SINCE: &str = "2015-02-21";
/// Since this version headers without a value are signed.
const EMPTY_HEADERS_SINCE: &str = "2016-05-31";
/// The headers that are signed by position, between the method and those of `x-ms-*`.
const BY_POSITION: [HeaderName; 11] = [
    header::CONTENT_ENCODING,
    header::CONTENT_LANGUAGE,
    header::CONTENT_LENGTH,
    CONTENT_MD5,
    header::CONTENT_TYPE,
    header::DATE,
    header::IF_MODIFIED_SINCE,
    header::IF_MATCH,
    header::IF_NONE_MATCH,
    header::IF_UNMODIFIED_SINCE,
    header::RANGE,
];
/// The same of [`Scheme::Lite`].
const BY_POSITION_LITE: [HeaderName; 3] = [CONTENT_MD5, header::CONTENT_TYPE, header::DATE];

/// The start of the names of metadata.
const METADATA: &str = "x-ms-meta-";
const CONTENT_MD5: HeaderName = HeaderName::from_static("content-md5");

/// The texts that clients may sign for a request: one for each form.
pub(crate) fn texts<'a>(
    request: &'a SignedRequest<'a>,
    account: &'a str,
) -> Box<dyn Iterator<Item = String> + 'a> {
    let request = Canonical(request);
    Box::new(request.forms(account).map(move |form| request.text(account, form)))
}

/// What makes a request have the signed text of another one too, if anything does: the text joins the values of a
/// header or a parameter with commas, and ends each with a line feed. No client sends such a request.
pub(crate) fn ambiguity(request: &SignedRequest<'_>) -> Option<String> {
    let is_repeated = |name: &&HeaderName| {
        // Repeated metadata has an error of its own.
        let is_signed = name.as_str().starts_with("x-ms-") && !name.as_str().starts_with(METADATA);
        is_signed && request.headers.get_all(*name).iter().nth(1).is_some()
    };
    if let Some(name) = request.headers.keys().find(is_repeated) {
        return Some(format!("{name}: must not be repeated"));
    }
    let name = |name: &str| format!("the parameter `{}`", quoted(name));
    let parameters = parameters(request.query);
    parameters.iter().find_map(|(key, values)| match &values[..] {
        [_, _, ..] => Some(format!("{}: must not be repeated", name(key))),
        _ if key.contains([':', '\n', '\r']) => {
            Some(format!("{}: its name must have no colon and no line feed", name(key)))
        }
        values if values.iter().any(|value| value.contains(['\n', '\r'])) => {
            Some(format!("{}: must have no line feed", name(key)))
        }
        _ => None,
    })
}

/// A request in the form of queues and blobs.
#[derive(Debug, Clone, Copy)]
struct Canonical<'a>(&'a SignedRequest<'a>);

impl<'a> Canonical<'a> {
    fn text(self, account: &str, form: SignedForm) -> String {
        let mut text = String::with_capacity(512);
        text.push_str(self.0.method);
        text.push('\n');
        let by_position: &[HeaderName] = match self.0.scheme {
            Scheme::Full => &BY_POSITION,
            Scheme::Lite => &BY_POSITION_LITE,
        };
        for name in by_position {
            text.push_str(&self.value_by_position(name));
            text.push('\n');
        }
        for name in self.names(form.order) {
            let value = self.value(name, form.white_space);
            let _ = writeln!(text, "{name}:{value}");
        }
        self.push_resource(&mut text, account, form.secondary);
        text
    }

    /// The value of a header that is signed by position; empty if the scheme omits it.
    fn value_by_position(self, name: &HeaderName) -> Cow<'a, str> {
        let value = || self.0.headers.get(name).map(|value| text_of(value.as_bytes()));
        let value = value().unwrap_or_default();
        let is_left_out = match *name {
            header::CONTENT_LENGTH => value == "0" && self.is_since(EMPTY_LENGTH_SINCE),
            // Signed among the headers of x-ms-*.
            header::DATE => self.0.headers.contains_key("x-ms-date"),
            _ => false,
        };
        if is_left_out { Cow::Borrowed("") } else { value }
    }

    /// Whether the request has this version or a later one; true without a version.
    fn is_since(self, version: &str) -> bool {
        let own = self.0.headers.get("x-ms-version").and_then(|value| value.to_str().ok());
        own.is_none_or(|own| own >= version)
    }

    /// The names of the headers that are signed by name.
    fn names(self, order: Order) -> Vec<&'a str> {
        let has_empty = self.is_since(EMPTY_HEADERS_SINCE);
        let is_signed = |name: &&str| {
            let counts = || has_empty || !self.value(name, WhiteSpace::Kept).is_empty();
            name.starts_with("x-ms-") && counts()
        };
        let mut names: Vec<_> = self.0.headers.keys().map(HeaderName::as_str).collect();
        names.retain(is_signed);
        match order {
            Order::Bytes => names.sort_unstable(),
            Order::Words => names.sort_by_cached_key(|name| word_order(name)),
        }
        names
    }

    /// The value of a header that is signed by name; several are joined.
    fn value(self, name: &str, white_space: WhiteSpace) -> Cow<'a, str> {
        let mut values = self.0.headers.get_all(name).iter();
        let mut value = values.next().map(|value| text_of(value.as_bytes())).unwrap_or_default();
        for more in values {
            let value = value.to_mut();
            value.push(',');
            value.push_str(text_of(more.as_bytes()).trim_ascii());
        }
        match white_space {
            WhiteSpace::Kept => value,
            WhiteSpace::Collapsed => Cow::Owned(collapsed(&value).into_owned()),
        }
    }

    fn push_resource(self, text: &mut String, account: &str, secondary: Secondary) {
        let (suffix, path) = match secondary {
            Secondary::InPath => ("", Cow::Borrowed(self.0.path)),
            Secondary::InBoth => (SECONDARY, Cow::Borrowed(self.0.path)),
            Secondary::Nowhere => {
                let primary = self.0.path_of_primary(account).map(Cow::Owned);
                ("", primary.unwrap_or(Cow::Borrowed(self.0.path)))
            }
        };
        let path = if path.is_empty() { "/" } else { &path };
        let _ = write!(text, "/{account}{suffix}{path}");
        let parameters = parameters(self.0.query);
        match self.0.scheme {
            Scheme::Full => {
                for (name, values) in parameters {
                    let _ = write!(text, "\n{name}:{}", values.join(","));
                }
            }
            Scheme::Lite => {
                if let Some(value) = parameters.get("comp").and_then(|values| values.first()) {
                    let _ = write!(text, "?comp={value}");
                }
            }
        }
    }
}
