//! The beginning of a connection: the handshake, where there is encryption, and the first bytes,
//! which say what the client speaks.
//!
//! Until it has the whole opening of HTTP/2, hyper neither probes a connection nor ends it when
//! asked to: without reading it here, under a time limit, a silent client would keep its place for
//! ever and hold up the end of the process.

use std::{
    io,
    pin::Pin,
    task::{Context, Poll},
};

use bytes::{Bytes, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, ReadBuf};
use tokio_rustls::server::TlsStream;
use trestle_service::peer::PeerTls;

use crate::tls::Tls;

/// What every client of HTTP/2 writes first.
const PREFACE: &[u8; 24] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// What a client speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Protocol {
    /// One call after the other: what browsers fall back to.
    Http1,
    /// Calls side by side.
    Http2,
}

/// Encrypts a connection, and says what the handshake told.
///
/// # Errors
/// A client that speaks something else, or shows no certificate that it should.
pub(super) async fn encrypt<S>(tls: &Tls, stream: S) -> io::Result<(TlsStream<S>, PeerTls)>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let stream = tls.acceptor().accept(stream).await?;
    // The handshake fails where a client shows a certificate that is not vouched for.
    let is_certified = stream.get_ref().1.peer_certificates().is_some();
    Ok((stream, PeerTls { is_certified }))
}

/// Waits for the first bytes, and says what they begin. They can be read again.
///
/// # Errors
/// A client that goes away before.
pub(super) async fn listen<S>(mut stream: S) -> io::Result<(Rewound<S>, Protocol)>
where
    S: AsyncRead + Unpin,
{
    let mut start = BytesMut::with_capacity(PREFACE.len());
    while start.len() < PREFACE.len() && PREFACE.starts_with(&start) {
        let missing = PREFACE.len().saturating_sub(start.len());
        if (&mut stream).take(missing as u64).read_buf(&mut start).await? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
    }
    let protocol = if start == PREFACE[..] { Protocol::Http2 } else { Protocol::Http1 };
    Ok((Rewound { start: start.freeze(), inner: stream }, protocol))
}

/// A stream whose first bytes are read again.
pub(super) struct Rewound<S> {
    start: Bytes,
    inner: S,
}

impl<S: AsyncRead + Unpin> AsyncRead for Rewound<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.start.is_empty() {
            return Pin::new(&mut self.inner).poll_read(cx, into);
        }
        let room = self.start.len().min(into.remaining());
        into.put_slice(&self.start.split_to(room));
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Rewound<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.inner).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.inner).poll_write_vectored(cx, bytes)
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncWriteExt as _;

    use super::*;

    /// What is told of a client that writes these parts, and what can be read afterwards.
    async fn heard(parts: &[&[u8]]) -> io::Result<(Protocol, Vec<u8>)> {
        let (mut client, server) = tokio::io::duplex(1024);
        let listening = tokio::spawn(listen(server));
        for part in parts {
            client.write_all(part).await?;
            tokio::task::yield_now().await;
        }
        drop(client);
        let (mut stream, protocol) = listening.await.expect("no panic")?;
        let mut read = Vec::new();
        stream.read_to_end(&mut read).await?;
        Ok((protocol, read))
    }

    #[tokio::test]
    async fn the_first_bytes_tell_the_protocol_and_are_not_lost() {
        let (opening, frames) = (&PREFACE[..], &b"\0\0\0\x04\0\0\0\0\0"[..]);
        let (half, rest) = PREFACE.split_at(11);
        let request = b"PRIVATE / HTTP/1.1\r\n\r\n and a long body";

        for (parts, protocol) in [
            (vec![opening, frames], Protocol::Http2),
            (vec![half, rest, frames], Protocol::Http2),
            (vec![&b"G"[..], &b"ET / HTTP/1.1\r\n\r\n"[..]], Protocol::Http1),
            (vec![&request[..]], Protocol::Http1),
            (vec![&b"\x16\x03\x01"[..]], Protocol::Http1),
        ] {
            let heard = heard(&parts).await.expect("enough to tell");
            assert_eq!(heard, (protocol, parts.concat()));
        }
    }

    #[tokio::test]
    async fn a_client_that_leaves_before_it_can_be_told_is_an_error() {
        for parts in [vec![], vec![&PREFACE[..23]]] {
            let error = heard(&parts).await.expect_err("nothing to tell");
            assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof);
        }
    }
}
