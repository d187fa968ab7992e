//! The HTTP requests inside of a batch.

use http::{HeaderMap, HeaderName, HeaderValue};
use trestle_model::fault::{Fault, Reason};

/// Most headers of a part, and of a request in it.
const HEADERS_MAX: usize = 64;

/// A request in a part.
#[derive(Debug, Clone)]
pub struct Embedded<'a> {
    /// The verb as it was sent.
    pub method: &'a str,
    /// The host, of an absolute address.
    pub host: Option<&'a str>,
    /// The path and the query, without scheme and host.
    pub target: &'a str,
    /// The headers of the request; not those of the part around it.
    pub headers: HeaderMap,
    /// The body; blank lines may follow it.
    pub body: &'a [u8],
}

/// The headers of a part, and its content.
///
/// # Errors
/// Malformed headers, or too many.
pub fn part(part: &[u8]) -> Result<(HeaderMap, &[u8]), Fault> {
    headers(part)
}

/// Parses a request.
///
/// # Errors
/// A malformed request line, or malformed headers.
pub fn request(content: &[u8]) -> Result<Embedded<'_>, Fault> {
    let content = content.trim_ascii_start();
    let end = memchr::memchr(b'\n', content).unwrap_or(content.len());
    let (line, rest) = content.split_at(end);
    let malformed = || rejected("a part must begin with a request line such as `PUT /t HTTP/1.1`");
    let line = str::from_utf8(line).map_err(|_| malformed())?.trim_end();
    // Keys may contain spaces that are not percent-encoded, so the target is everything between the
    // verb and the version.
    let (method, line) = line.split_once(' ').ok_or_else(malformed)?;
    let (target, version) = line.rsplit_once(' ').ok_or_else(malformed)?;
    if !version.starts_with("HTTP/1.") || method.is_empty() {
        return Err(malformed());
    }
    let (headers, body) = headers(rest.strip_prefix(b"\n").unwrap_or(rest))?;
    let (host, target) = split(target.trim());
    Ok(Embedded { method, host, target, headers, body })
}

/// The host of an address, if it is absolute, and the rest without scheme and host.
fn split(target: &str) -> (Option<&str>, &str) {
    let Some((_, rest)) = target.split_once("://").filter(|(scheme, _)| is_scheme(scheme)) else {
        return (None, target);
    };
    let (host, rest) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
    (Some(host), if rest.is_empty() { "/" } else { rest })
}

fn is_scheme(scheme: &str) -> bool {
    scheme.eq_ignore_ascii_case("http") || scheme.eq_ignore_ascii_case("https")
}

/// Headers up to a blank line, or to the end, and the rest.
fn headers(content: &[u8]) -> Result<(HeaderMap, &[u8]), Fault> {
    let mut lines = [httparse::EMPTY_HEADER; HEADERS_MAX];
    let malformed = |_| rejected("the headers of a part cannot be read");
    if let httparse::Status::Complete((consumed, lines)) =
        httparse::parse_headers(content, &mut lines).map_err(malformed)?
    {
        let body = content.get(consumed..).unwrap_or_default();
        return Ok((collect(lines)?, body));
    }
    // Only headers: the blank line belongs to the boundary, or is missing.
    let closed = [content, b"\r\n\r\n"].concat();
    let mut lines = [httparse::EMPTY_HEADER; HEADERS_MAX];
    match httparse::parse_headers(&closed, &mut lines).map_err(malformed)? {
        httparse::Status::Complete((_, lines)) => Ok((collect(lines)?, &[])),
        httparse::Status::Partial => Err(rejected("the headers of a part do not end")),
    }
}

fn collect(lines: &[httparse::Header<'_>]) -> Result<HeaderMap, Fault> {
    let mut headers = HeaderMap::with_capacity(lines.len());
    for line in lines {
        let name = HeaderName::from_bytes(line.name.as_bytes());
        let value = HeaderValue::from_bytes(line.value);
        let (Ok(name), Ok(value)) = (name, value) else {
            return Err(rejected("a header of a part cannot be read"));
        };
        headers.append(name, value);
    }
    Ok(headers)
}

fn rejected(rule: &str) -> Fault {
    Fault::violation(Reason::InvalidInput, "body", rule)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_parsed_from_each_of_its_forms() {
        for (content, method, host, target, body) in [
            ("POST /t HTTP/1.1\r\nA: b\r\n\r\n{}", "POST", None, "/t", "{}"),
            ("\r\nPOST /t HTTP/1.1\nA: b\n\n{}\n\n", "POST", None, "/t", "{}\n\n"),
            ("MERGE http://h:1/a/t HTTP/1.1\nA: b\n\n{}", "MERGE", Some("h:1"), "/a/t", "{}"),
            ("PUT HTTPS://h/t(a='x y') HTTP/1.1\nA: b\n\n", "PUT", Some("h"), "/t(a='x y')", ""),
            ("DELETE http://h HTTP/1.1\r\nA: b\r\n", "DELETE", Some("h"), "/", ""),
            ("DELETE /t?x=http://y HTTP/1.1\r\nA: b", "DELETE", None, "/t?x=http://y", ""),
            ("GET http://h?x HTTP/1.0\nA: b", "GET", Some("h"), "?x", ""),
        ] {
            let request = request(content.as_bytes()).expect(content);
            assert_eq!((request.method, request.target), (method, target), "{content:?}");
            assert_eq!(request.host, host, "{content:?}");
            assert_eq!(request.headers.get("a").map(HeaderValue::as_bytes), Some(&b"b"[..]));
            assert_eq!(request.body, body.as_bytes(), "{content:?}");
        }
        let bare = request(b"DELETE /t HTTP/1.1").expect("no headers at all");
        assert!(bare.headers.is_empty() && bare.body.is_empty());
    }

    #[test]
    fn rejects_malformed_requests() {
        let many = format!("GET / HTTP/1.1\r\n{}", "A: b\r\n".repeat(65));
        for content in [
            "",
            "\r\n",
            "GET",
            "GET /",
            "GET / HTTP/2",
            " / HTTP/1.1",
            "GET / HTTP/1.1\r\nno header\r\n\r\n",
            "GET / HTTP/1.1\r\nA : b\r\n\r\n",
            "GET / HTTP/1.1\r\nA: b\0\r\n\r\n",
            &many,
        ] {
            let fault = request(content.as_bytes()).expect_err(content);
            assert_eq!(fault.reason, Reason::InvalidInput, "{content:?}");
        }
        assert!(request(b"GET /\xFF HTTP/1.1").is_err());
    }

    #[test]
    fn the_headers_of_a_part_are_not_those_of_its_request() {
        let (headers, content) =
            part(b"Content-Type: application/http\r\nContent-ID: 1\r\n\r\nGET / HTTP/1.1\r\n\r\n")
                .expect("a part");
        assert_eq!(headers.get("content-id").map(HeaderValue::as_bytes), Some(&b"1"[..]));
        assert!(request(content).expect("a request").headers.is_empty());
        let (headers, content) = part(b"\r\nx").expect("a part without headers");
        assert!(headers.is_empty());
        assert_eq!(content, b"x");
    }
}
