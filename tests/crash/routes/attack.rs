//! Calls that hold what memory they can.

use std::{
    collections::VecDeque,
    convert::Infallible,
    io::Write as _,
    pin::Pin,
    sync::{
        Arc, LazyLock,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context, Poll},
};

use bytes::Bytes;
use flate2::{Compression, write::GzEncoder};
use http::{HeaderName, Request, Response, Version, header};
use hyper::{
    body::{Body, Frame, Incoming},
    client::conn::{http1, http2},
};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::{net::TcpStream, task::JoinSet};
use trestle_tests::Server;

use super::{super::overload::resident_mib, route::Route};

/// Calls of a route at a time: as many whole messages would be far over the bound.
const CALLS: usize = 48;
/// Largest message that libraries accept by default, with its tag and its length.
const MESSAGE_BYTES: usize = 4 * 1024 * 1024 - 64;
/// Compressed messages of one call.
const COMPRESSED_MESSAGES: usize = 4;
/// What a client writes at a time.
const PIECE_BYTES: usize = 64 * 1024;
/// After so many pages of the admin listener in which no call made progress, none will.
const TURNS: usize = 4;

/// How a call holds memory. None of them receives its response beyond a byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Attack {
    /// All but the last byte of a large message.
    Incomplete,
    /// Large messages of few bytes, and no end.
    Compressed,
    /// A small message that is complete.
    Unread,
}

pub(super) const ATTACKS: [Attack; 3] = [Attack::Incomplete, Attack::Compressed, Attack::Unread];

/// A message whose first field is a long text.
static MESSAGE: LazyLock<Bytes> = LazyLock::new(|| {
    let mut message = vec![0x0A];
    let mut length = MESSAGE_BYTES - 5;
    while length > 0x7F {
        message.push(u8::try_from(length & 0x7F).unwrap() | 0x80);
        length >>= 7;
    }
    message.push(u8::try_from(length).unwrap());
    message.resize(MESSAGE_BYTES, b'a');
    message.into()
});
static ZSTD: LazyLock<Bytes> = LazyLock::new(|| zstd::bulk::compress(&MESSAGE, 1).unwrap().into());
static GZIP: LazyLock<Bytes> = LazyLock::new(|| {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(&MESSAGE).unwrap();
    encoder.finish().unwrap().into()
});

/// Parts that are sent, and how many bytes the connection has accepted of them.
struct Parts {
    parts: VecDeque<Bytes>,
    ends: bool,
    accepted: Arc<AtomicUsize>,
}

impl Body for Parts {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        match self.parts.pop_front() {
            Some(part) => {
                self.accepted.fetch_add(part.len(), Ordering::Relaxed);
                Poll::Ready(Some(Ok(Frame::data(part))))
            }
            None if self.ends => Poll::Ready(None),
            None => Poll::Pending,
        }
    }
}

fn framed(flag: u8, length: usize) -> Bytes {
    let [a, b, c, d] = u32::try_from(length).unwrap().to_be_bytes();
    Bytes::copy_from_slice(&[flag, a, b, c, d])
}

/// A call of a route in this way.
fn call(route: &Route, attack: Attack, accepted: &Arc<AtomicUsize>) -> Request<Parts> {
    let length = (header::CONTENT_LENGTH, MESSAGE_BYTES.to_string());
    let pieces = || {
        let begin = MESSAGE.slice(..MESSAGE_BYTES - 1);
        (0..begin.len())
            .step_by(PIECE_BYTES)
            .map(move |at| begin.slice(at..begin.len().min(at + PIECE_BYTES)))
    };
    let (headers, parts): (Vec<(HeaderName, String)>, VecDeque<Bytes>) = match attack {
        Attack::Incomplete if route.is_framed => {
            (vec![], std::iter::once(framed(0, MESSAGE_BYTES)).chain(pieces()).collect())
        }
        Attack::Incomplete => (vec![length], pieces().collect()),
        Attack::Compressed if route.is_framed => {
            let encoding = (HeaderName::from_static("grpc-encoding"), "zstd".to_owned());
            let messages =
                (0..COMPRESSED_MESSAGES).flat_map(|_| [framed(1, ZSTD.len()), ZSTD.clone()]);
            (vec![encoding], messages.collect())
        }
        Attack::Compressed => {
            let length = (header::CONTENT_LENGTH, GZIP.len().to_string());
            let encoding = (header::CONTENT_ENCODING, "gzip".to_owned());
            (vec![length, encoding], [GZIP.clone()].into())
        }
        Attack::Unread if route.is_framed => (vec![], [framed(0, 0)].into()),
        Attack::Unread => (vec![(header::CONTENT_LENGTH, "0".to_owned())], [].into()),
    };
    let ends = attack == Attack::Unread || !route.is_framed && attack == Attack::Compressed;
    route.request(&headers, Parts { parts, ends, accepted: Arc::clone(accepted) })
}

/// A connection of either version.
pub(super) enum Sender<B> {
    Http1(http1::SendRequest<B>),
    Http2(http2::SendRequest<B>),
}

impl<B> Sender<B>
where
    B: Body<Data = Bytes> + Send + Unpin + 'static,
    B::Error: Into<tower::BoxError>,
{
    /// A connection on which each response has a window of so many bytes.
    pub(super) async fn connect(route: &Route, window: u32) -> Self {
        let stream = TokioIo::new(TcpStream::connect(&route.address).await.unwrap());
        if route.version != Version::HTTP_2 {
            let (sender, connection) = http1::handshake(stream).await.unwrap();
            tokio::spawn(connection);
            return Self::Http1(sender);
        }
        let mut builder = http2::Builder::new(TokioExecutor::new());
        builder.initial_stream_window_size(window);
        let (sender, connection) = builder.handshake(stream).await.unwrap();
        tokio::spawn(connection);
        Self::Http2(sender)
    }

    /// The head of the response to a request.
    ///
    /// # Errors
    /// A connection or a call that the server ends.
    pub(super) async fn send(&mut self, request: Request<B>) -> hyper::Result<Response<Incoming>> {
        match self {
            Self::Http1(sender) => sender.send_request(request).await,
            Self::Http2(sender) => sender.send_request(request).await,
        }
    }
}

/// Calls a route in this way until no call makes progress. Returns the memory that the process has then.
pub(super) async fn hold(server: &Server, route: &Route, attack: Attack) -> f64 {
    let (accepted, answered) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let mut calls = JoinSet::new();
    let shared = match route.version {
        Version::HTTP_2 => Some(Sender::connect(route, 1).await),
        _ => None,
    };
    for _ in 0..CALLS {
        let request = call(route, attack, &accepted);
        let (answered, route) = (Arc::clone(&answered), route.clone());
        let sender = match &shared {
            Some(Sender::Http2(sender)) => Some(Sender::Http2(sender.clone())),
            _ => None,
        };
        calls.spawn(async move {
            let mut sender = match sender {
                Some(sender) => sender,
                None => Sender::connect(&route, 1).await,
            };
            let answer = sender.send(request).await;
            answered.fetch_add(1, Ordering::Relaxed);
            // The response is held, and not received.
            let _held = (answer, sender);
            std::future::pending::<()>().await;
        });
    }
    let progress = || (accepted.load(Ordering::Relaxed), answered.load(Ordering::Relaxed));
    let (mut last, mut turns, mut most) = (progress(), 0, 0.0_f64);
    while turns < TURNS {
        // The server has a turn.
        server.page("/livez").await;
        most = most.max(resident_mib(server));
        turns = if progress() == last { turns + 1 } else { 0 };
        last = progress();
    }
    calls.shutdown().await;
    most
}
