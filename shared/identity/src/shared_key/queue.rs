//! Shared Key and Shared Key Lite as the queues and blobs of Azure sign requests of HTTP: the
//! method, some headers, every header `x-ms-*`, the path and the query.
//!
//! Clients differ in details, so several signed texts are possible for a request; see `Form`.

use std::{borrow::Cow, collections::BTreeMap, fmt::Write as _};

use http::{HeaderMap, HeaderName, header};
use percent_encoding::percent_decode_str;

use super::{Scheme, is_near};
use crate::account::{AccountKey, AccountSet, Signature};
use trestle_service::clock::Ticks;

/// Since this version a length of zero is signed as no length.
const EMPTY_LENGTH_SINCE: &str = "2015-02-21";
/// Since this version headers without a value are signed.
const EMPTY_HEADERS_SINCE: &str = "2016-05-31";
/// The suffix of an account name in the address of its read-only replica.
const SECONDARY: &str = "-secondary";

/// The headers that are signed by position, between the method and those of `x-ms-*`.
const BY_PLACE: [HeaderName; 11] = [
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
const BY_PLACE_LITE: [HeaderName; 3] = [CONTENT_MD5, header::CONTENT_TYPE, header::DATE];

const CONTENT_MD5: HeaderName = HeaderName::from_static("content-md5");

/// A signed request, each part as it was sent.
#[derive(Debug, Clone, Copy)]
pub struct Signed<'a> {
    /// How much of it is signed.
    pub scheme: Scheme,
    /// The method, in upper case.
    pub method: &'a str,
    /// Every header.
    pub headers: &'a HeaderMap,
    /// The path, percent-encoded as it was sent.
    pub path: &'a str,
    /// The query, percent-encoded as it was sent, without `?`; may be empty.
    pub query: &'a str,
}

/// One of the forms in which clients write the signed text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Form {
    order: Order,
    white_space: WhiteSpace,
    secondary: Secondary,
}

/// The sort order of header names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Order {
    /// By bytes, as in Go and Rust.
    Bytes,
    /// As in a culture-aware comparison, where `-` sorts last, as in Python and .NET.
    Words,
}

/// The handling of white space inside the value of a header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum WhiteSpace {
    Kept,
    Collapsed,
}

/// Where the suffix of a read-only replica, `/account-secondary/…`, appears in the signed text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Secondary {
    /// In the path, where it was sent.
    InPath,
    /// In the path and in the name of the account.
    InBoth,
    /// Nowhere.
    Nowhere,
}

/// The form of most clients, and ours.
const USUAL: Form =
    Form { order: Order::Bytes, white_space: WhiteSpace::Kept, secondary: Secondary::InPath };

impl Signed<'_> {
    /// The signed text for `account` in the form of most clients.
    #[must_use]
    pub fn string_to_sign(&self, account: &str) -> String {
        self.text(account, USUAL)
    }

    /// Signs for `account` with one of its keys.
    #[must_use]
    pub fn sign(&self, account: &str, key: &AccountKey) -> Signature {
        key.sign(&self.string_to_sign(account))
    }

    /// Whether a key of the account made the signature, and the date is within the allowed
    /// difference of `now`. Takes as long for an absent account.
    #[must_use]
    pub fn verify(
        &self,
        account: &str,
        signature: &Signature,
        accounts: &AccountSet,
        now: Ticks,
    ) -> bool {
        let signed = self.forms(account).any(|form| {
            let text = |name: &str| self.text(name, form);
            accounts.with_signature(account, text, signature).is_some()
        });
        signed && is_near(&self.date(), now)
    }

    /// The header x-ms-date or, if absent, Date, which is compared with the current time.
    fn date(&self) -> Cow<'_, str> {
        let date = self.headers.get("x-ms-date").or_else(|| self.headers.get(header::DATE));
        date.map(|value| text_of(value.as_bytes())).unwrap_or_default()
    }

    /// The possible forms of this request, the most likely one first; a dozen at most.
    fn forms(&self, account: &str) -> impl Iterator<Item = Form> {
        let names = self.names(Order::Bytes);
        let is_sorted_alike = names.is_sorted_by_key(|name| word_order(name));
        let values = || names.iter().map(|name| self.value(name, WhiteSpace::Kept));
        let has_white_space = values().any(|value| *value != *collapsed(&value));
        let is_secondary = self.path_of_primary(account).is_some();

        let several = |wanted: bool| if wanted { 2 } else { 1 };
        let orders = [Order::Bytes, Order::Words].into_iter().take(several(!is_sorted_alike));
        let secondaries = [Secondary::InPath, Secondary::InBoth, Secondary::Nowhere]
            .into_iter()
            .take(if is_secondary { 3 } else { 1 });
        let white_spaces =
            [WhiteSpace::Kept, WhiteSpace::Collapsed].into_iter().take(several(has_white_space));
        secondaries.flat_map(move |secondary| {
            let orders = orders.clone();
            white_spaces.clone().flat_map(move |white_space| {
                orders.clone().map(move |order| Form { order, white_space, secondary })
            })
        })
    }

    fn text(&self, account: &str, form: Form) -> String {
        let mut text = String::with_capacity(512);
        text.push_str(self.method);
        text.push('\n');
        let by_place: &[HeaderName] = match self.scheme {
            Scheme::Full => &BY_PLACE,
            Scheme::Lite => &BY_PLACE_LITE,
        };
        for name in by_place {
            text.push_str(&self.value_by_place(name));
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
    fn value_by_place(&self, name: &HeaderName) -> Cow<'_, str> {
        let value = || self.headers.get(name).map(|value| text_of(value.as_bytes()));
        let value = value().unwrap_or_default();
        let is_left_out = match *name {
            header::CONTENT_LENGTH => value == "0" && self.is_since(EMPTY_LENGTH_SINCE),
            // Signed among the headers of x-ms-*.
            header::DATE => self.headers.contains_key("x-ms-date"),
            _ => false,
        };
        if is_left_out { Cow::Borrowed("") } else { value }
    }

    /// Whether the request has this version or a later one; true without a version.
    fn is_since(&self, version: &str) -> bool {
        let own = self.headers.get("x-ms-version").and_then(|value| value.to_str().ok());
        own.is_none_or(|own| own >= version)
    }

    /// The names of the headers that are signed by name.
    fn names(&self, order: Order) -> Vec<&str> {
        let has_empty = self.is_since(EMPTY_HEADERS_SINCE);
        let is_signed = |name: &&str| {
            let counts = || has_empty || !self.value(name, WhiteSpace::Kept).is_empty();
            name.starts_with("x-ms-") && counts()
        };
        let mut names: Vec<_> = self.headers.keys().map(HeaderName::as_str).collect();
        names.retain(is_signed);
        match order {
            Order::Bytes => names.sort_unstable(),
            Order::Words => names.sort_by_cached_key(|name| word_order(name)),
        }
        names
    }

    /// The value of a header that is signed by name; several are joined.
    fn value(&self, name: &str, white_space: WhiteSpace) -> Cow<'_, str> {
        let mut values = self.headers.get_all(name).iter();
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

    fn push_resource(&self, text: &mut String, account: &str, secondary: Secondary) {
        let (suffix, path) = match secondary {
            Secondary::InPath => ("", Cow::Borrowed(self.path)),
            Secondary::InBoth => (SECONDARY, Cow::Borrowed(self.path)),
            Secondary::Nowhere => {
                ("", self.path_of_primary(account).unwrap_or(Cow::Borrowed(self.path)))
            }
        };
        let path = if path.is_empty() { "/" } else { &path };
        let _ = write!(text, "/{account}{suffix}{path}");
        let parameters = parameters(self.query);
        match self.scheme {
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

    /// The path without the suffix of a read-only replica, if it begins with such an account.
    fn path_of_primary(&self, account: &str) -> Option<Cow<'_, str>> {
        let rest = self.path.strip_prefix('/')?.strip_prefix(account)?.strip_prefix(SECONDARY)?;
        let is_whole = rest.is_empty() || rest.starts_with('/');
        is_whole.then(|| Cow::Owned(format!("/{account}{rest}")))
    }
}

/// The parameters of a query, decoded: names in lower case and sorted, and the values of each, sorted too. Equal ones
/// are signed as often as they occur.
fn parameters(query: &str) -> BTreeMap<String, Vec<String>> {
    let mut parameters = BTreeMap::<_, Vec<_>>::new();
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        parameters.entry(decoded(name).to_lowercase()).or_default().push(decoded(value));
    }
    parameters.values_mut().for_each(|values| values.sort());
    parameters
}

fn decoded(text: &str) -> String {
    let spaced = text.replace('+', " ");
    percent_decode_str(&spaced).decode_utf8_lossy().into_owned()
}

/// The bytes of a header as text: UTF-8, or else Latin-1, in which some clients send non-ASCII
/// text.
fn text_of(bytes: &[u8]) -> Cow<'_, str> {
    match std::str::from_utf8(bytes) {
        Ok(text) => Cow::Borrowed(text.trim_ascii()),
        Err(_) => Cow::Owned(bytes.trim_ascii().iter().map(|byte| char::from(*byte)).collect()),
    }
}

/// The value with every run of white space as one space.
fn collapsed(value: &str) -> Cow<'_, str> {
    let is_plain = !value.contains('\t') && !value.contains("  ");
    if is_plain {
        return Cow::Borrowed(value);
    }
    Cow::Owned(value.split_ascii_whitespace().collect::<Vec<_>>().join(" "))
}

/// The sort key of header names in the culture-aware order: first without `-` and `'`, symbols
/// before digits before letters; then by the positions of those.
fn word_order(name: &str) -> (Vec<usize>, Vec<usize>) {
    /// Every other character that a name of a header can have, in their order.
    const CHARACTERS: &[u8] = b"!#$%&*.^_`|~+0123456789abcdefghijklmnopqrstuvwxyz";
    const LAST: &[u8] = b"'-";
    let rank = |among: &[u8], byte: u8| among.iter().position(|candidate| *candidate == byte);
    let words = name.bytes().filter_map(|byte| rank(CHARACTERS, byte));
    let marks = name.bytes().map(|byte| rank(LAST, byte).map_or(0, |rank| rank + 1));
    (words.collect(), marks.collect())
}

#[cfg(test)]
mod tests;
