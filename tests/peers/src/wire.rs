//! A connection of HTTP/1.1: requests as bytes, and only the needed part of responses.

use std::net::SocketAddr;

use socket2::{Domain, Socket, Type};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};

/// Most headers of an answer.
const HEADERS_MAX: usize = 64;
/// A segment of Ethernet, and what a reader takes in that does not read.
const SEGMENT_BYTES: u32 = 1460;
const READER_BYTES: usize = 16 * 1024;

/// A persistent connection.
pub(crate) struct Connection {
    stream: TcpStream,
    read: Vec<u8>,
    body: Vec<u8>,
}

/// How the body of an answer ends.
#[derive(Clone, Copy)]
enum Length {
    Bytes(usize),
    Chunked,
}

impl Connection {
    pub(crate) async fn open(port: u16) -> Self {
        let stream = TcpStream::connect(("127.0.0.1", port)).await.expect("a connection");
        stream.set_nodelay(true).expect("no delay");
        Self { stream, read: Vec::with_capacity(64 * 1024), body: Vec::new() }
    }

    /// One as over a network to a reader with little room: segments as Ethernet has them, for which the system keeps
    /// much less of an answer than for those of the loopback.
    pub(crate) async fn open_narrow(port: u16) -> Self {
        let socket = Socket::new(Domain::IPV4, Type::STREAM, None).expect("a socket");
        socket.set_tcp_mss(SEGMENT_BYTES).expect("a size of segments");
        socket.set_recv_buffer_size(READER_BYTES).expect("a small buffer");
        let address = SocketAddr::from(([127, 0, 0, 1], port));
        socket.connect(&address.into()).expect("a connection");
        socket.set_nonblocking(true).expect("a socket that does not block");
        let stream = TcpStream::from_std(socket.into()).expect("a connection");
        Self { stream, read: Vec::new(), body: Vec::new() }
    }

    /// Sends a request; the status of the answer and its body.
    pub(crate) async fn call(&mut self, request: &[u8]) -> (u16, &[u8]) {
        self.send(request).await;
        let (status, length) = self.head().await;
        self.body.clear();
        match length {
            Length::Bytes(bytes) => self.take(bytes).await,
            Length::Chunked => self.chunks().await,
        }
        (status, &self.body)
    }

    /// Waits for an answer; its status and the length of its body, which is dropped.
    pub(crate) async fn skip(&mut self) -> (u16, usize) {
        let (status, length) = self.head().await;
        match length {
            Length::Bytes(bytes) => {
                let mut rest = bytes;
                while rest > self.read.len() {
                    rest -= self.read.len();
                    self.read.clear();
                    self.more().await;
                }
                self.read.drain(..rest);
                (status, bytes)
            }
            Length::Chunked => {
                self.body.clear();
                self.chunks().await;
                (status, self.body.len())
            }
        }
    }

    pub(crate) async fn send(&mut self, request: &[u8]) {
        self.stream.write_all(request).await.expect("a request is sent");
    }

    /// Waits until the answer begins, looks at its status, and takes nothing of it.
    pub(crate) async fn begins(&self) {
        let mut start = [0; 15];
        while self.stream.peek(&mut start).await.expect("an answer begins") < start.len() {}
        assert_eq!(&start, b"HTTP/1.1 200 OK");
    }

    async fn more(&mut self) {
        let bytes = self.stream.read_buf(&mut self.read).await.expect("an answer comes");
        assert!(bytes > 0, "the server closed a connection in the middle of an answer");
    }

    async fn head(&mut self) -> (u16, Length) {
        loop {
            let mut headers = [httparse::EMPTY_HEADER; HEADERS_MAX];
            let mut head = httparse::Response::new(&mut headers);
            let parsed = head.parse(&self.read).expect("an answer of HTTP");
            if let httparse::Status::Complete(bytes) = parsed {
                let status = head.code.expect("a status");
                let value = |name: &str| {
                    let found =
                        head.headers.iter().find(|header| header.name.eq_ignore_ascii_case(name));
                    found.and_then(|header| std::str::from_utf8(header.value).ok())
                };
                let length = match value("content-length") {
                    Some(text) => Length::Bytes(text.parse().expect("a number")),
                    None if value("transfer-encoding").is_some() => Length::Chunked,
                    None => Length::Bytes(0),
                };
                self.read.drain(..bytes);
                return (status, length);
            }
            self.more().await;
        }
    }

    /// Moves so many bytes to the body.
    async fn take(&mut self, mut bytes: usize) {
        loop {
            let buffered = bytes.min(self.read.len());
            self.body.extend_from_slice(&self.read[..buffered]);
            self.read.drain(..buffered);
            bytes -= buffered;
            if bytes == 0 {
                return;
            }
            self.more().await;
        }
    }

    async fn chunks(&mut self) {
        loop {
            match httparse::parse_chunk_size(&self.read).expect("a chunk") {
                httparse::Status::Partial => self.more().await,
                httparse::Status::Complete((line, bytes)) => {
                    self.read.drain(..line);
                    let bytes = usize::try_from(bytes).expect("a size");
                    self.take(bytes).await;
                    while self.read.len() < 2 {
                        self.more().await;
                    }
                    // The line break after the data, or the end of empty trailers.
                    self.read.drain(..2);
                    if bytes == 0 {
                        return;
                    }
                }
            }
        }
    }
}
