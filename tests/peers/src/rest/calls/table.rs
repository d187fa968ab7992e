//! Calls on tables.

use std::fmt::Write as _;

use super::{
    Caller, PARTITIONS, ROWS,
    keys::{entity, path, row},
};
use crate::rest::sign::{ACCOUNT, VERSION};

const BOUNDARY: &str = "batch_9f2d1c";

impl Caller {
    pub(super) async fn change(&mut self, method: &str, condition: &str) {
        let key = row(self.numbers.other());
        self.table((method, &path(ROWS, &key)), condition, &entity(&key), 204).await;
    }

    pub(super) async fn page(&mut self, top: &str) {
        let partition = self.numbers.other() % PARTITIONS;
        let path = format!("/{ACCOUNT}/{ROWS}()?$filter=PartitionKey%20eq%20'p{partition}'{top}");
        self.table(("GET", &path), "", "", 200).await;
    }

    /// Inserts entities as one change set.
    pub(in crate::rest) async fn batch(
        &mut self,
        table: &str,
        keys: impl Iterator<Item = (String, String)>,
    ) {
        let mut body =
            format!("--{BOUNDARY}\r\nContent-Type: multipart/mixed; boundary=changeset_1\r\n\r\n");
        for key in keys {
            let _ = write!(
                body,
                "--changeset_1\r\nContent-Type: application/http\r\n\
                 Content-Transfer-Encoding: binary\r\n\r\n\
                 POST http://127.0.0.1/{ACCOUNT}/{table} HTTP/1.1\r\n\
                 Content-Type: application/json\r\nAccept: application/json;odata=minimalmetadata\r\n\
                 DataServiceVersion: 3.0\r\nPrefer: return-no-content\r\n\r\n{}\r\n",
                entity(&key)
            );
        }
        let _ = write!(body, "--changeset_1--\r\n--{BOUNDARY}--\r\n");
        let content_type = format!("multipart/mixed; boundary={BOUNDARY}");
        let path = format!("/{ACCOUNT}/$batch");
        self.write_table(("POST", &path), &content_type, "", &body);
        let answer = self.sent(202).await;
        let rejected = answer.windows(10).any(|line| line == b"HTTP/1.1 4");
        assert!(!rejected, "a batch is accepted: {}", String::from_utf8_lossy(answer));
    }

    /// A request to tables, in JSON.
    pub(in crate::rest) async fn table(
        &mut self,
        target: (&str, &str),
        headers: &str,
        body: &str,
        status: u16,
    ) {
        let content_type = if body.is_empty() { "" } else { "application/json" };
        self.write_table(target, content_type, headers, body);
        self.sent(status).await;
    }

    fn write_table(
        &mut self,
        (method, target): (&str, &str),
        content_type: &str,
        headers: &str,
        body: &str,
    ) {
        let path = target.split('?').next().unwrap_or_default();
        let signature = self.signer.of_table(method, content_type, path);
        let date = &self.signer.date;
        let mut request = format!(
            "{method} {target} HTTP/1.1\r\nHost: 127.0.0.1\r\nx-ms-date: {date}\r\n\
             x-ms-version: {VERSION}\r\nAuthorization: SharedKey {ACCOUNT}:{signature}\r\n\
             Accept: application/json;odata=minimalmetadata\r\nDataServiceVersion: 3.0\r\n{headers}"
        );
        if !body.is_empty() {
            let _ = write!(request, "Content-Type: {content_type}\r\n");
        }
        if method != "GET" {
            let _ = write!(request, "Content-Length: {}\r\n", body.len());
        }
        let _ = write!(request, "\r\n{body}");
        self.request = request.into_bytes();
    }

    /// Sends a query and does not read the answer.
    pub(in crate::rest) async fn request_only(&mut self, target: &str) {
        self.write_table(("GET", target), "", "", "");
        self.connection.send(&self.request).await;
        self.connection.begins().await;
    }
}
