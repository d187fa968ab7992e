//! Shared Key signatures.

use std::time::SystemTime;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use ring::hmac;

/// The default account of both servers, and its well-known key.
pub(super) const ACCOUNT: &str = "devstoreaccount1";
const KEY: &str =
    "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==";
/// The protocol version of the requests.
pub(super) const VERSION: &str = "2021-10-04";

/// Signs the requests of a turn, which is short enough for one date.
#[derive(Clone)]
pub(super) struct Signer {
    key: hmac::Key,
    pub(super) date: String,
}

impl Signer {
    pub(super) fn new() -> Self {
        let key = STANDARD.decode(KEY).expect("base64");
        let date = httpdate::fmt_http_date(SystemTime::now());
        Self { key: hmac::Key::new(hmac::HMAC_SHA256, &key), date }
    }

    /// The signature of a request to tables. `path` begins with the account.
    pub(super) fn of_table(&self, method: &str, content_type: &str, path: &str) -> String {
        let date = &self.date;
        self.signed(&format!("{method}\n\n{content_type}\n{date}\n/{ACCOUNT}{path}"))
    }

    /// The signature of a request to queues; `parameters` are those of the query, by name, each after a line feed.
    pub(super) fn of_queue(
        &self,
        method: &str,
        length: usize,
        content_type: &str,
        (path, parameters): (&str, &str),
    ) -> String {
        let (date, length) =
            (&self.date, if length == 0 { String::new() } else { length.to_string() });
        self.signed(&format!(
            "{method}\n\n\n{length}\n\n{content_type}\n\n\n\n\n\n\nx-ms-date:{date}\nx-ms-version:{VERSION}\n\
             /{ACCOUNT}{path}{parameters}"
        ))
    }

    fn signed(&self, text: &str) -> String {
        STANDARD.encode(hmac::sign(&self.key, text.as_bytes()))
    }
}
