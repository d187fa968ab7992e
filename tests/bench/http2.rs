//! A light gRPC client: the load generator shares the cores with the server.
//!
//! It implements as much of HTTP/2 as single unary calls need, as load generators do, and ignores the
//! headers of a response. A failed call is recognised by the absence of a message in its response.

use std::{
    collections::{HashMap, VecDeque},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
};

use bytes::{Buf as _, BufMut as _, Bytes, BytesMut};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{
        TcpStream,
        tcp::{OwnedReadHalf, OwnedWriteHalf},
    },
    sync::{Notify, oneshot},
};

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
const FRAME_HEAD_BYTES: usize = 9;
/// Bytes before a message of gRPC.
const MESSAGE_HEAD_BYTES: usize = 5;
/// Largest frame that is sent; every server accepts it.
const FRAME_BYTES_MAX: usize = 16 * 1024;
/// Flow-control windows of a server: of a stream, and of the connection.
const STREAM_WINDOW: u32 = 16 * 1024 * 1024;
const CONNECTION_WINDOW: u32 = 64 * 1024 * 1024;
/// The initial window of both sides.
const FIRST_WINDOW: u32 = 65_535;
/// Size of the HPACK table, the default.
const TABLE_BYTES_MAX: usize = 4096;

// Types and flags of frames.
const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const PING: u8 = 6;
const GOAWAY: u8 = 7;
const WINDOW_UPDATE: u8 = 8;
const END_STREAM: u8 = 1;
const ACK: u8 = 1;
const END_HEADERS: u8 = 4;

/// One connection. Calls share it.
pub(crate) struct Connection {
    shared: Arc<Shared>,
}

struct Shared {
    state: Mutex<State>,
    written: Notify,
    /// Whether the writer was notified and has not run yet.
    is_reported: AtomicBool,
    authority: String,
}

#[derive(Default)]
struct State {
    out: BytesMut,
    last_stream: u32,
    /// The send window.
    window: i64,
    /// Messages that wait for it, in order.
    waiting: VecDeque<(u32, Bytes)>,
    calls: HashMap<u32, Call>,
    table: Table,
    /// Bytes that arrived since the last window update.
    consumed: u32,
    broken: Option<String>,
}

struct Call {
    answer: oneshot::Sender<Result<Bytes, String>>,
    received: BytesMut,
}

impl Connection {
    /// Connects to `127.0.0.1:port`.
    pub(crate) async fn open(authority: &str) -> Self {
        let stream = TcpStream::connect(authority).await.unwrap();
        stream.set_nodelay(true).unwrap();
        let mut state = State { window: i64::from(FIRST_WINDOW), ..State::default() };
        state.out.put_slice(PREFACE);
        state.frame(SETTINGS, 0, 0, 6);
        // The size of the window of a stream.
        state.out.put_u16(4);
        state.out.put_u32(STREAM_WINDOW);
        state.frame(WINDOW_UPDATE, 0, 0, 4);
        state.out.put_u32(CONNECTION_WINDOW - FIRST_WINDOW);
        let shared = Arc::new(Shared {
            state: Mutex::new(state),
            written: Notify::new(),
            is_reported: AtomicBool::new(false),
            authority: authority.to_owned(),
        });
        let (read, write) = stream.into_split();
        tokio::spawn(receive(Arc::clone(&shared), read));
        tokio::spawn(send(Arc::clone(&shared), write));
        shared.report();
        Self { shared }
    }

    /// One call; its answer, or that it failed.
    pub(crate) async fn call(
        &self,
        path: &str,
        authorization: Option<&str>,
        message: Bytes,
    ) -> Result<Bytes, String> {
        let (answer, answered) = oneshot::channel();
        {
            let mut state = self.shared.state.lock().unwrap();
            if let Some(reason) = &state.broken {
                return Err(reason.clone());
            }
            let stream = state.open(&self.shared.authority, path, authorization);
            state.calls.insert(stream, Call { answer, received: BytesMut::new() });
            state.waiting.push_back((stream, message));
            state.send_waiting();
        }
        self.shared.report();
        answered.await.unwrap_or_else(|_| Err("the connection is closed".to_owned()))
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.shared.state.lock().unwrap().broken = Some("closed".to_owned());
        self.shared.written.notify_one();
    }
}

impl Shared {
    /// Wakes the writer. One wake-up covers everything that is queued before it runs.
    fn report(&self) {
        if !self.is_reported.swap(true, Ordering::AcqRel) {
            self.written.notify_one();
        }
    }
}

impl State {
    fn frame(&mut self, kind: u8, flags: u8, stream: u32, length: usize) {
        self.out.put_uint(length as u64, 3);
        self.out.put_u8(kind);
        self.out.put_u8(flags);
        self.out.put_u32(stream);
    }

    /// Sends the headers of a call; its stream.
    fn open(&mut self, authority: &str, path: &str, authorization: Option<&str>) -> u32 {
        self.last_stream = if self.last_stream == 0 { 1 } else { self.last_stream + 2 };
        let mut block = BytesMut::with_capacity(64);
        // From the static HPACK table: the method POST, the scheme http.
        block.put_slice(&[0x83, 0x86]);
        let authorization = authorization.map(|value| ("authorization", value));
        let fields = [
            (":authority", authority),
            (":path", path),
            ("content-type", "application/grpc"),
            ("te", "trailers"),
        ];
        for (name, value) in fields.into_iter().chain(authorization) {
            self.table.write(&mut block, name, value);
        }
        self.frame(HEADERS, END_HEADERS, self.last_stream, block.len());
        self.out.put_slice(&block);
        self.last_stream
    }

    /// Sends the messages that fit in the send window. No message is larger than the window of a stream.
    fn send_waiting(&mut self) {
        while let Some((stream, message)) = self.waiting.pop_front() {
            let length = MESSAGE_HEAD_BYTES + message.len();
            if (length as i64) > self.window {
                return self.waiting.push_front((stream, message));
            }
            self.window -= length as i64;
            let first = message.len().min(FRAME_BYTES_MAX - MESSAGE_HEAD_BYTES);
            let (mut part, mut rest) = message.split_at(first);
            let flags = |rest: &[u8]| if rest.is_empty() { END_STREAM } else { 0 };
            self.frame(DATA, flags(rest), stream, MESSAGE_HEAD_BYTES + part.len());
            self.out.put_u8(0);
            self.out.put_u32(u32::try_from(message.len()).unwrap());
            self.out.put_slice(part);
            while !rest.is_empty() {
                (part, rest) = rest.split_at(rest.len().min(FRAME_BYTES_MAX));
                self.frame(DATA, flags(rest), stream, part.len());
                self.out.put_slice(part);
            }
        }
    }

    /// Processes one frame.
    fn take(&mut self, kind: u8, flags: u8, stream: u32, mut body: Bytes) {
        match kind {
            DATA => {
                self.consume(body.len());
                if let Some(call) = self.calls.get_mut(&stream) {
                    call.received.put_slice(&body);
                }
            }
            SETTINGS if flags & ACK == 0 => self.frame(SETTINGS, ACK, 0, 0),
            PING if flags & ACK == 0 => {
                self.frame(PING, ACK, 0, body.len());
                self.out.put_slice(&body);
            }
            WINDOW_UPDATE if stream == 0 => {
                self.window += i64::from(body.get_u32());
                self.send_waiting();
            }
            RST_STREAM => self.end(stream),
            GOAWAY => self.broken = Some("the server closes the connection".to_owned()),
            _ => {}
        }
        if matches!(kind, DATA | HEADERS) && flags & END_STREAM != 0 {
            self.end(stream);
        }
    }

    /// Yields to the server from time to time.
    fn consume(&mut self, bytes: usize) {
        self.consumed += u32::try_from(bytes).unwrap();
        if self.consumed > CONNECTION_WINDOW / 4 {
            self.frame(WINDOW_UPDATE, 0, 0, 4);
            self.out.put_u32(self.consumed);
            self.consumed = 0;
        }
    }

    /// Answers a call with its message, which begins with a flag and its length.
    fn end(&mut self, stream: u32) {
        let Some(mut call) = self.calls.remove(&stream) else { return };
        let length = call.received.get(1..MESSAGE_HEAD_BYTES).map(|mut bytes| bytes.get_u32());
        let is_whole = length.is_some_and(|length| {
            call.received.len() == MESSAGE_HEAD_BYTES + usize::try_from(length).unwrap()
        });
        let answer = if is_whole {
            call.received.advance(MESSAGE_HEAD_BYTES);
            Ok(call.received.freeze())
        } else {
            Err("the call failed: its answer has no message".to_owned())
        };
        // The caller may have disconnected.
        drop(call.answer.send(answer));
    }
}

/// The headers that were sent before, newest last. None is ever dropped.
#[derive(Default)]
struct Table {
    sent: Vec<(String, String)>,
    bytes: usize,
}

impl Table {
    /// Writes a header: its index in the table, or itself with incremental indexing.
    fn write(&mut self, block: &mut BytesMut, name: &str, value: &str) {
        let position = self.sent.iter().position(|sent| sent.0 == name && sent.1 == value);
        if let Some(position) = position {
            // The newest is at 62.
            let index = 62 + self.sent.len() - 1 - position;
            assert!(index < 127, "an index of one byte");
            return block.put_u8(0x80 | u8::try_from(index).unwrap());
        }
        block.put_u8(0x40);
        for text in [name, value] {
            match u8::try_from(text.len()) {
                Ok(length) if length < 127 => block.put_u8(length),
                _ => {
                    // Seven bits at a time, the lowest first, after what fits in the first byte.
                    let mut rest = text.len() - 127;
                    block.put_u8(127);
                    while rest >= 128 {
                        block.put_u8(u8::try_from(rest % 128 + 128).unwrap());
                        rest /= 128;
                    }
                    block.put_u8(u8::try_from(rest).unwrap());
                }
            }
            block.put_slice(text.as_bytes());
        }
        self.bytes += name.len() + value.len() + 32;
        assert!(self.bytes <= TABLE_BYTES_MAX, "more headers than the table holds");
        self.sent.push((name.to_owned(), value.to_owned()));
    }
}

async fn send(shared: Arc<Shared>, mut write: OwnedWriteHalf) {
    loop {
        shared.written.notified().await;
        // Other callers add to the same write.
        tokio::task::yield_now().await;
        shared.is_reported.store(false, Ordering::Release);
        let out = {
            let mut state = shared.state.lock().unwrap();
            if state.broken.is_some() {
                return;
            }
            state.out.split()
        };
        if write.write_all(&out).await.is_err() {
            return;
        }
    }
}

async fn receive(shared: Arc<Shared>, mut read: OwnedReadHalf) {
    let mut buffer = BytesMut::with_capacity(256 * 1024);
    loop {
        buffer.reserve(64 * 1024);
        let is_open = read.read_buf(&mut buffer).await.is_ok_and(|bytes| bytes > 0);
        let mut state = shared.state.lock().unwrap();
        if !is_open {
            state.broken.get_or_insert("the server closed the connection".to_owned());
            state.calls.clear();
            return;
        }
        while let Some(mut head) = buffer.get(..FRAME_HEAD_BYTES) {
            let length = usize::try_from(head.get_uint(3)).unwrap();
            let (kind, flags, stream) = (head.get_u8(), head.get_u8(), head.get_u32());
            if buffer.len() < FRAME_HEAD_BYTES + length {
                break;
            }
            buffer.advance(FRAME_HEAD_BYTES);
            let body = buffer.split_to(length).freeze();
            state.take(kind, flags, stream, body);
        }
        let has_more = !state.out.is_empty();
        drop(state);
        if has_more {
            shared.report();
        }
    }
}
