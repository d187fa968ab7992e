//! Metadata of queues in headers: `x-ms-meta-name: value`.

use std::collections::HashMap;

use http::{HeaderMap, HeaderName, HeaderValue};
use trestle_service::fault::{Fault, Reason, quoted};

/// The prefix of the header names. One client sends a header with only this prefix without its last
/// letter; it is ignored.
const PREFIX: &str = "x-ms-meta-";

/// The metadata of a request. HTTP header names are case-insensitive: they are in lower case.
///
/// # Errors
/// A repeated name.
pub(super) fn read_metadata(headers: &HeaderMap) -> Result<HashMap<String, String>, Fault> {
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

/// Writes metadata into a response.
pub(super) fn write_metadata(metadata: &HashMap<String, String>, headers: &mut HeaderMap) {
    for (name, value) in metadata {
        let name: Option<HeaderName> = format!("{PREFIX}{name}").parse().ok();
        let value = HeaderValue::from_str(value).ok();
        headers.extend(name.zip(value));
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

        let metadata = read_metadata(&sent).expect("metadata");

        let expected = [("k", "v"), ("long_name", "a  b"), ("", "nameless")];
        assert_eq!(metadata.len(), expected.len());
        for (name, value) in expected {
            assert_eq!(metadata.get(name).map(String::as_str), Some(value), "{name}");
        }
    }

    #[test]
    fn rejects_a_repeated_name() {
        let sent = headers(&[("x-ms-meta-k", "v"), ("x-ms-meta-k", "w")]);

        let fault = read_metadata(&sent).expect_err("rejected");

        assert_eq!(fault.reason, Reason::InvalidMetadata);
    }

    #[test]
    fn metadata_becomes_headers() {
        let metadata = [("Name".to_owned(), "v w".to_owned())].into_iter().collect();
        let mut answer = HeaderMap::new();

        write_metadata(&metadata, &mut answer);

        assert_eq!(answer, headers(&[("x-ms-meta-name", "v w")]));
    }
}
