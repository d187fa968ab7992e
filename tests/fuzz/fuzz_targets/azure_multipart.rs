//! Batches of the Azure edge: a body falls into parts that are in it, in their order, and each
//! part is a request or is rejected.
#![no_main]

use libfuzzer_sys::fuzz_target;
use trestle_azure::table::batch::{embedded, multipart};

fuzz_target!(|body: &[u8]| {
    // The first line is a content type, as far as it is one.
    let end = body.iter().position(|byte| *byte == b'\n').unwrap_or(body.len());
    let (line, rest) = body.split_at(end);
    let line = String::from_utf8_lossy(line);
    let boundary = multipart::boundary(&line).unwrap_or("b1");
    assert!(!boundary.is_empty());
    take_apart(rest, boundary, 2);
});

fn take_apart(body: &[u8], boundary: &str, depth: usize) {
    let mut from = body.as_ptr() as usize;
    let mut parts = multipart::parts(body, boundary);
    while let Some(part) = parts.next() {
        let Ok(part) = part else {
            assert!(parts.next().is_none(), "nothing follows where a body breaks off");
            break;
        };
        let start = part.as_ptr() as usize;
        assert!(from <= start, "parts are in their order");
        from = start + part.len();
        assert!(from <= body.as_ptr() as usize + body.len(), "parts are in the body");
        let Ok((headers, content)) = embedded::part(part) else {
            continue;
        };
        let kind = headers.get("content-type").and_then(|kind| kind.to_str().ok());
        match kind.and_then(multipart::boundary).filter(|_| depth > 0) {
            Some(boundary) => take_apart(content, boundary, depth - 1),
            None => drop(embedded::request(content)),
        }
    }
}
