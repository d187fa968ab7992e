//! Metadata of queues in headers: `x-ms-meta-name: value`.

use std::collections::HashMap;

use http::{Extensions, HeaderMap, HeaderName, HeaderValue, Response};
use tonic::body::Body;
use trestle_model::fault::{Fault, Reason, quoted};

use crate::header_case;

/// The prefix of the header names. One client sends a header with only this prefix without its last
/// letter; it is ignored.
const PREFIX: &str = "x-ms-meta-";

/// The metadata of a request, with the case of names that its `extensions` keep.
///
/// # Errors
/// A name that is repeated, in any case.
pub(crate) fn read_metadata(
    headers: &HeaderMap,
    extensions: &Extensions,
) -> Result<HashMap<String, String>, Fault> {
    let mut metadata = lower(headers)?;
    let is_metadata = |name: &&HeaderName| name.as_str().starts_with(PREFIX);
    let named: Vec<_> = headers.keys().filter(is_metadata).cloned().collect();
    if named.is_empty() {
        return Ok(metadata);
    }
    let sent = header_case::sent(extensions, &named);
    let cased = sent.iter().filter_map(|name| {
        let name = name.get(PREFIX.len()..)?;
        Some((name.to_owned(), metadata.remove(&name.to_ascii_lowercase())?))
    });
    let cased: HashMap<_, _> = cased.collect();
    metadata.extend(cased);
    Ok(metadata)
}

/// The metadata with names in lower case, as `http` has them.
fn lower(headers: &HeaderMap) -> Result<HashMap<String, String>, Fault> {
    let mut metadata = HashMap::new();
    for (header, value) in headers {
        let Some(name) = header.as_str().strip_prefix(PREFIX) else { continue };
        // Invalid UTF-8 becomes the replacement character, which the service rejects.
        let value = String::from_utf8_lossy(value.as_bytes()).into_owned();
        if metadata.insert(name.to_owned(), value).is_some() {
            let rule = format!("must not be repeated: name=`{}`", quoted(name));
            return Err(Fault::violation(Reason::InvalidMetadata, "metadata", rule));
        }
    }
    Ok(metadata)
}

/// Writes metadata into a response, and the case of its names.
pub(crate) fn write_metadata(metadata: &HashMap<String, String>, answer: &mut Response<Body>) {
    let names: Vec<_> = metadata.keys().map(|name| format!("{PREFIX}{name}")).collect();
    for (name, value) in names.iter().zip(metadata.values()) {
        let name: Option<HeaderName> = name.parse().ok();
        let value = HeaderValue::from_str(value).ok();
        answer.headers_mut().extend(name.zip(value));
    }
    if names.iter().any(|name| name.bytes().any(|byte| byte.is_ascii_uppercase())) {
        answer.extensions_mut().extend(header_case::extensions(&names).unwrap_or_default());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(of: &[(&'static str, &'static str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in of {
            headers.append(HeaderName::from_static(name), HeaderValue::from_static(value));
        }
        headers
    }

    #[test]
    fn headers_become_metadata_except_the_stray_one() {
        let sent = headers(&[
            ("x-ms-meta-k", "v"),
            ("x-ms-meta-long_name", "a  b"),
            ("x-ms-meta-", "nameless"),
            ("x-ms-meta", "{'k': 'v'}"),
            ("x-ms-date", "today"),
        ]);

        let metadata = read_metadata(&sent, &Extensions::new()).expect("metadata");

        let expected = [("k", "v"), ("long_name", "a  b"), ("", "nameless")];
        assert_eq!(metadata.len(), expected.len());
        for (name, value) in expected {
            assert_eq!(metadata.get(name).map(String::as_str), Some(value), "{name}");
        }
    }

    #[test]
    fn rejects_a_repeated_name() {
        let sent = headers(&[("x-ms-meta-k", "v"), ("x-ms-meta-k", "w")]);

        let fault = read_metadata(&sent, &Extensions::new()).expect_err("rejected");

        assert_eq!(fault.reason, Reason::InvalidMetadata);
    }

    #[test]
    fn metadata_becomes_headers() {
        let metadata = [("Name".to_owned(), "v w".to_owned())].into_iter().collect();
        let mut answer = Response::new(Body::empty());

        write_metadata(&metadata, &mut answer);

        assert_eq!(answer.headers(), &headers(&[("x-ms-meta-name", "v w")]));
        let mut sent = HeaderMap::new();
        sent.clone_from(answer.headers());
        let read = read_metadata(&sent, answer.extensions()).expect("metadata");
        assert_eq!(read, metadata, "with its case");
    }
}
