//! The response to a batch: `multipart/mixed` with an HTTP response in each part.

use std::fmt::Write as _;

use http::{HeaderValue, StatusCode};

/// The response of one operation.
#[derive(Debug, Clone)]
pub(super) struct PartAnswer {
    pub(super) status: StatusCode,
    /// The content id of the client in the embedded request.
    pub(super) content_id: Option<HeaderValue>,
    /// Names and values, in the order they are written.
    pub(super) headers: Vec<(&'static str, String)>,
    pub(super) body: Vec<u8>,
}

/// The whole body and its content type. `unique` is unique to this batch.
pub(super) fn change_set(parts: &[PartAnswer], unique: &str) -> (String, Vec<u8>) {
    let (outer, inner) = (format!("batchresponse_{unique}"), format!("changesetresponse_{unique}"));
    let mut out = Vec::with_capacity(512 * (parts.len() + 1));
    push(
        &mut out,
        &format!("--{outer}\r\nContent-Type: multipart/mixed; boundary={inner}\r\n\r\n"),
    );
    for part in parts {
        push_part(&mut out, &inner, part);
    }
    push(&mut out, &format!("--{inner}--\r\n--{outer}--\r\n"));
    (content_type(&outer), out)
}

/// The same for a batch of one query, which has no change set.
pub(super) fn query(part: &PartAnswer, unique: &str) -> (String, Vec<u8>) {
    let outer = format!("batchresponse_{unique}");
    let mut out = Vec::with_capacity(512 + part.body.len());
    push_part(&mut out, &outer, part);
    push(&mut out, &format!("--{outer}--\r\n"));
    (content_type(&outer), out)
}

fn content_type(boundary: &str) -> String {
    format!("multipart/mixed; boundary={boundary}")
}

fn push_part(out: &mut Vec<u8>, boundary: &str, part: &PartAnswer) {
    let mut head = format!(
        "--{boundary}\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\r\n\
         HTTP/1.1 {} {}\r\n",
        part.status.as_u16(),
        part.status.canonical_reason().unwrap_or_default()
    );
    // Clients that number from 0 expect no id.
    let content_id = part.content_id.as_ref().and_then(|id| id.to_str().ok());
    if let Some(id) = content_id.filter(|id| *id != "0") {
        push_header(&mut head, "Content-ID", id);
    }
    push_header(&mut head, "X-Content-Type-Options", "nosniff");
    push_header(&mut head, "Cache-Control", "no-cache");
    for (name, value) in &part.headers {
        push_header(&mut head, name, value);
    }
    head.push_str("\r\n");
    push(out, &head);
    out.extend_from_slice(&part.body);
    push(out, "\r\n");
}

fn push_header(head: &mut String, name: &str, value: &str) {
    let written = write!(head, "{name}: {value}\r\n");
    debug_assert!(written.is_ok(), "memory takes every text");
}

fn push(out: &mut Vec<u8>, text: &str) {
    out.extend_from_slice(text.as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::batch::multipart;

    fn part(status: StatusCode, id: Option<&'static str>, body: &str) -> PartAnswer {
        PartAnswer {
            status,
            content_id: id.map(HeaderValue::from_static),
            headers: vec![("ETag", "e".to_owned())],
            body: body.as_bytes().to_vec(),
        }
    }

    #[test]
    fn the_response_to_a_change_set_has_a_part_for_each_operation() {
        let parts = [
            part(StatusCode::NO_CONTENT, Some("1"), ""),
            part(StatusCode::CREATED, Some("0"), "{}"),
        ];

        let (content_type, body) = change_set(&parts, "u");

        assert_eq!(content_type, "multipart/mixed; boundary=batchresponse_u");
        assert_eq!(
            String::from_utf8(body).expect("UTF-8"),
            "--batchresponse_u\r\n\
             Content-Type: multipart/mixed; boundary=changesetresponse_u\r\n\r\n\
             --changesetresponse_u\r\n\
             Content-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\r\n\
             HTTP/1.1 204 No Content\r\nContent-ID: 1\r\n\
             X-Content-Type-Options: nosniff\r\nCache-Control: no-cache\r\nETag: e\r\n\r\n\r\n\
             --changesetresponse_u\r\n\
             Content-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\r\n\
             HTTP/1.1 201 Created\r\n\
             X-Content-Type-Options: nosniff\r\nCache-Control: no-cache\r\nETag: e\r\n\r\n{}\r\n\
             --changesetresponse_u--\r\n--batchresponse_u--\r\n"
        );
    }

    #[test]
    fn an_empty_change_set_gets_an_empty_response_and_a_query_one_without_a_change_set() {
        let (content_type, body) = change_set(&[], "u");
        let boundary = multipart::boundary(&content_type).expect("a boundary");
        assert_eq!(multipart::parts(&body, boundary).count(), 1);
        assert_eq!(multipart::parts(&body, "changesetresponse_u").count(), 0);

        let (_, body) = query(&part(StatusCode::OK, None, "{}"), "u");
        let parts: Result<Vec<_>, _> = multipart::parts(&body, "batchresponse_u").collect();
        let parts = parts.expect("whole");
        assert_eq!(parts.len(), 1);
        assert!(parts[0].ends_with(b"ETag: e\r\n\r\n{}"));
    }
}
