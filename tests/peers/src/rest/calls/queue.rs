//! Calls on queues.

use std::fmt::Write as _;

use super::{Caller, QUEUE};
use crate::{
    load,
    rest::sign::{ACCOUNT, VERSION},
};

/// The visibility timeout.
const VISIBILITY_SECONDS: u32 = 300;

impl Caller {
    pub(super) async fn put(&mut self) {
        let text = load::payload();
        let body = format!("<QueueMessage><MessageText>{text}</MessageText></QueueMessage>");
        let path = format!("/{ACCOUNT}/{QUEUE}/messages");
        self.queue(("POST", &path), &[], &body, 201).await;
    }

    pub(super) async fn cycle(&mut self) {
        self.put().await;
        let visibility = VISIBILITY_SECONDS.to_string();
        let parameters = [("numofmessages", "1"), ("visibilitytimeout", visibility.as_str())];
        let path = format!("/{ACCOUNT}/{QUEUE}/messages");
        let answer = self.queue(("GET", &path), &parameters, "", 200).await;
        let answer = String::from_utf8_lossy(answer).into_owned();
        let id = element(&answer, "MessageId").expect("a message waits");
        let receipt = element(&answer, "PopReceipt").expect("with a receipt");
        let path = format!("/{ACCOUNT}/{QUEUE}/messages/{id}");
        self.queue(("DELETE", &path), &[("popreceipt", receipt)], "", 204).await;
    }

    /// A request to queues. The parameters are in the order of their names.
    pub(in crate::rest) async fn queue(
        &mut self,
        (method, path): (&str, &str),
        parameters: &[(&str, &str)],
        body: &str,
        status: u16,
    ) -> &[u8] {
        let (mut query, mut signed) = (String::new(), String::new());
        for (name, value) in parameters {
            let encoded =
                percent_encoding::utf8_percent_encode(value, percent_encoding::NON_ALPHANUMERIC);
            let separator = if query.is_empty() { '?' } else { '&' };
            let _ = write!(query, "{separator}{name}={encoded}");
            let _ = write!(signed, "\n{name}:{value}");
        }
        let content_type = if body.is_empty() { "" } else { "application/xml" };
        let signature = self.signer.of_queue(method, body.len(), content_type, (path, &signed));
        let date = &self.signer.date;
        let mut request = format!(
            "{method} {path}{query} HTTP/1.1\r\nHost: 127.0.0.1\r\nx-ms-date: {date}\r\n\
             x-ms-version: {VERSION}\r\nAuthorization: SharedKey {ACCOUNT}:{signature}\r\n\
             Content-Length: {}\r\n",
            body.len()
        );
        if !body.is_empty() {
            request.push_str("Content-Type: application/xml\r\n");
        }
        let _ = write!(request, "\r\n{body}");
        self.request = request.into_bytes();
        self.sent(status).await
    }
}

/// The text between the tags of an element.
fn element<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let (_, rest) = text.split_once(&format!("<{name}>"))?;
    Some(rest.split_once(&format!("</{name}>"))?.0)
}
