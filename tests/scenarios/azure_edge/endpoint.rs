//! The edge of one Azure service in a server of its own, called byte by byte.

use bytes::Bytes;
use http::{HeaderMap, HeaderName, Version};
use tempfile::TempDir;
use tokio::{
    io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader},
    net::TcpStream,
    time::timeout,
};
use trestle_tests::{HANG, RestRequest, RestResponse, Server, exchange};

/// The development account, which signs the requests.
pub(super) const ACCOUNT: &str = "devstoreaccount1";

/// An Azure service, as far as these tests need it.
#[derive(Debug)]
pub(super) struct Edge {
    pub(super) name: &'static str,
    /// Creates a container: a table, a queue.
    pub(super) make: Call,
    /// Adds one item.
    pub(super) put: Call,
    /// Reads the items.
    pub(super) read: &'static str,
    /// The response without items.
    pub(super) empty: &'static str,
    /// Reads a response that needs no service.
    pub(super) list: &'static str,
    /// A request for a missing resource, and its error.
    pub(super) absent: (&'static str, &'static str),
    pub(super) body_bytes_max: usize,
}

/// A request with a body: method, target behind the account, type and body.
#[derive(Debug, Clone, Copy)]
pub(super) struct Call {
    pub(super) method: &'static str,
    pub(super) target: &'static str,
    pub(super) content_type: &'static str,
    pub(super) body: &'static str,
}

/// Name and value.
pub(super) type Header<'a> = (&'static str, &'a str);

const JSON: &str = "application/json";
const XML: &str = "application/xml";

/// Tables.
pub(super) const TABLES: Edge = Edge {
    name: "table",
    make: Call {
        method: "POST",
        target: "/Tables",
        content_type: JSON,
        body: r#"{"TableName":"things"}"#,
    },
    put: Call {
        method: "POST",
        target: "/things",
        content_type: JSON,
        body: r#"{"PartitionKey":"p","RowKey":"r"}"#,
    },
    read: "/things()",
    empty: r#"{"value":[]}"#,
    list: "/Tables",
    absent: ("/nothings()", "TableNotFound"),
    body_bytes_max: 4 * 1024 * 1024,
};
/// Queues.
pub(super) const QUEUES: Edge = Edge {
    name: "queue",
    make: Call { method: "PUT", target: "/things", content_type: "", body: "" },
    put: Call {
        method: "POST",
        target: "/things/messages",
        content_type: XML,
        body: "<QueueMessage><MessageText>text</MessageText></QueueMessage>",
    },
    read: "/things/messages?peekonly=true",
    empty: "<?xml version=\"1.0\" encoding=\"utf-8\"?><QueueMessagesList />",
    list: "/?comp=list",
    absent: ("/nothings?comp=metadata", "QueueNotFound"),
    body_bytes_max: 131_584,
};
/// Every service.
pub(super) const EDGES: [&Edge; 2] = [&TABLES, &QUEUES];

/// A server, and the edge of one service.
pub(super) struct ServedEdge {
    pub(super) edge: &'static Edge,
    server: Server,
    address: String,
    _data: TempDir,
}

impl ServedEdge {
    /// Starts a server with a store of its own, with settings as variables.
    pub(super) async fn open(edge: &'static Edge, settings: &[(&str, &str)]) -> Self {
        let data = tempfile::tempdir().unwrap();
        let path = data.path().to_str().unwrap().to_owned();
        let server = Server::start(&["--data-dir", &path], settings);
        let address = server.address(&format!("azure_{}", edge.name));
        let endpoint = Self { edge, server, address, _data: data };
        let made = endpoint.call(edge.make, edge.make.body.as_bytes(), &[]).await;
        assert_eq!(made.status, 201, "{made:?}");
        endpoint
    }

    /// The address of the service.
    pub(super) fn address(&self) -> &str {
        &self.address
    }

    /// A new connection.
    pub(super) async fn connect(&self) -> Wire {
        Wire(BufReader::new(TcpStream::connect(&self.address).await.unwrap()))
    }

    /// Sends bytes on a connection of its own, and no more; returns the response, if any.
    pub(super) async fn last(&self, bytes: &[u8]) -> Option<RestResponse> {
        let mut wire = self.connect().await;
        wire.send(bytes).await;
        wire.ends().await;
        wire.answer().await
    }

    /// Sends a request with a body over a connection of its own.
    pub(super) async fn call(&self, call: Call, body: &[u8], more: &[Header<'_>]) -> RestResponse {
        let length = body.len().to_string();
        let mut headers = vec![("content-length", length.as_str())];
        if !call.content_type.is_empty() {
            headers.push(("content-type", call.content_type));
        }
        headers.extend_from_slice(more);
        let head = self.head(call.method, call.target, &headers);
        self.connect().await.call(&[head.as_bytes(), body].concat()).await
    }

    /// The same for the request that adds an item.
    pub(super) async fn put(&self, body: &[u8], more: &[Header<'_>]) -> RestResponse {
        self.call(self.edge.put, body, more).await
    }

    /// Sends a request without a body over a connection of its own.
    pub(super) async fn get(&self, target: &str, more: &[Header<'_>]) -> RestResponse {
        self.connect().await.call(self.head("GET", target, more).as_bytes()).await
    }

    /// The same over this version of HTTP.
    pub(super) async fn get_over(&self, version: Version, target: &str) -> RestResponse {
        exchange(&self.address, self.request("GET", target).over(version)).await
    }

    /// A request, signed in the form of the service.
    fn request(&self, method: &str, target: &str) -> RestRequest {
        let request =
            if self.edge.name == TABLES.name { RestRequest::table } else { RestRequest::queue };
        request(method, target)
    }

    /// The server responds, and has no items.
    pub(super) async fn is_untouched(&self) {
        let response = self.get(self.edge.read, &[]).await;
        assert_eq!((response.status, response.text()), (200, self.edge.empty));
        assert!(self.server.pid() > 0);
    }

    /// The metrics of the server.
    pub(super) async fn metrics(&self) -> String {
        self.server.page("/metrics").await
    }

    /// The head of a signed request, with additional headers.
    pub(super) fn head(&self, method: &str, target: &str, headers: &[Header<'_>]) -> String {
        self.head_to(method, &format!("/{ACCOUNT}{target}"), headers)
    }

    /// The same with the whole target. A header without a value is omitted, and one that is
    /// named twice is sent twice.
    pub(super) fn head_to(&self, method: &str, target: &str, headers: &[Header<'_>]) -> String {
        let mut request = self.request(method, "").at(target);
        let mut named = Vec::new();
        for (name, value) in headers {
            request = match *value {
                "" => request.without(name),
                value if named.contains(name) => request.and(name, value),
                value => request.with(name, value),
            };
            named.push(*name);
        }
        if named.contains(&"authorization") {
            request = request.scheme(None);
        }
        let (parts, _) = request.to_http(&self.address).into_parts();
        let mut head = format!("{method} {target} HTTP/1.1\r\n");
        for (name, value) in &parts.headers {
            // A chunked request has no length unless a test sets it.
            let is_set = name != "content-length" || named.contains(&name.as_str());
            if is_set || !named.contains(&"transfer-encoding") {
                head.push_str(&format!("{name}: {}\r\n", value.to_str().unwrap()));
            }
        }
        head.push_str("\r\n");
        head
    }
}

/// A connection.
pub(super) struct Wire(BufReader<TcpStream>);

impl Wire {
    /// Sends bytes; the server may have closed the connection by then.
    pub(super) async fn send(&mut self, bytes: &[u8]) {
        let _ = timeout(HANG, self.0.write_all(bytes)).await.expect("the server reads");
    }

    /// Shuts down the sending direction.
    pub(super) async fn ends(&mut self) {
        // The server may have closed the connection by then.
        let _ = self.0.shutdown().await;
    }

    /// Sends a request and reads its answer.
    pub(super) async fn call(&mut self, bytes: &[u8]) -> RestResponse {
        self.send(bytes).await;
        self.answer().await.expect("an answer")
    }

    /// The next response; none if the connection is closed.
    pub(super) async fn answer(&mut self) -> Option<RestResponse> {
        let lines = self.read_head().await?;
        let status = lines[0].split(' ').nth(1).unwrap().parse().unwrap();
        let header = |line: &String| {
            let (name, value) = line.trim_end().split_once(": ")?;
            Some((HeaderName::try_from(name).unwrap(), value.parse().unwrap()))
        };
        let headers: HeaderMap = lines.iter().skip(1).filter_map(header).collect();
        let response = RestResponse { status, headers, body: Bytes::new() };
        let body = if response.header("transfer-encoding") == "chunked" {
            self.chunks().await
        } else {
            self.exactly(response.header("content-length").parse().unwrap_or(0)).await
        };
        Some(RestResponse { body: body.into(), ..response })
    }

    /// The lines of the head of a response without a body, as they were sent.
    pub(super) async fn head_lines(&mut self) -> Vec<String> {
        self.read_head().await.expect("an answer")
    }

    async fn read_head(&mut self) -> Option<Vec<String>> {
        let mut lines = Vec::new();
        while lines.last().is_none_or(|line: &String| line != "\r\n") {
            lines.push(self.line().await?);
        }
        Some(lines)
    }

    async fn chunks(&mut self) -> Vec<u8> {
        let mut body = Vec::new();
        loop {
            let line = self.line().await.expect("a chunk");
            let size = usize::from_str_radix(line.trim(), 16).unwrap();
            body.extend(self.exactly(size).await);
            self.line().await.expect("the end of a chunk");
            if size == 0 {
                return body;
            }
        }
    }

    /// The next line; none if the connection is closed before its end.
    async fn line(&mut self) -> Option<String> {
        let mut line = String::new();
        let read = timeout(HANG, self.0.read_line(&mut line)).await.expect("the server answers");
        read.is_ok_and(|_| line.ends_with("\r\n")).then_some(line)
    }

    async fn exactly(&mut self, length: usize) -> Vec<u8> {
        let mut bytes = vec![0; length];
        let read = timeout(HANG, self.0.read_exact(&mut bytes)).await;
        read.expect("the server answers").expect("the whole answer");
        bytes
    }
}
