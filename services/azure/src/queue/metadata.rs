//! Metadata of queues in headers: `x-ms-meta-name: value`.

use std::collections::HashMap;

use http::{HeaderMap, HeaderName, HeaderValue};
use trestle_service::fault::{Fault, Reason, quoted};

/// How the names of the headers begin. One client sends a header that is no more than this without
/// the last letter; it says nothing.
const PREFIX: &str = "x-ms-meta-";

/// The metadata of a request. HTTP does not keep the case of names: they are in lower case.
///
/// # Errors
/// A name that is there twice.
pub(super) fn read_metadata(headers: &HeaderMap) -> Result<HashMap<String, String>, Fault> {
    let mut metadata = HashMap::new();
    for (header, value) in headers {
        let Some(name) = header.as_str().strip_prefix(PREFIX) else { continue };
        // What is no text is refused by the service, as what it becomes here is.
        let value = String::from_utf8_lossy(value.as_bytes()).into_owned();
        if metadata.insert(name.to_owned(), value).is_some() {
            let rule = format!("must not be there more than once: name=`{}`", quoted(name));
            return Err(Fault::violation(Reason::InvalidMetadata, "metadata", rule));
        }
    }
    Ok(metadata)
}

/// Puts metadata on an answer.
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
    fn headers_become_metadata_but_for_the_stray_one() {
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
    fn a_name_that_is_there_twice_is_refused() {
        let sent = headers(&[("x-ms-meta-k", "v"), ("x-ms-meta-k", "w")]);

        let fault = read_metadata(&sent).expect_err("refused");

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
