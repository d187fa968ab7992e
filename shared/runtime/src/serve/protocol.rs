//! Protocol detection: the TLS handshake, with encryption, and the first bytes, which
//! distinguish HTTP/2 from HTTP/1.
//!
//! Until it has the whole preface of HTTP/2, hyper neither probes a connection nor closes it on shutdown. So the
//! preface is read under a time limit: a silent client would otherwise hold its connection without a limit and
//! delay the shutdown.

use std::{
    io,
    pin::Pin,
    task::{Context, Poll},
};

use bytes::{Bytes, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, ReadBuf};
use tokio_rustls::server::TlsStream;
use trestle_rpc::peer::PeerTls;

use crate::tls::Tls;

/// The preface that every client of HTTP/2 sends.
const PREFACE: &[u8; 24] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// The version of HTTP that a client uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum HttpVersion {
    /// One request after the other: the fallback of browsers.
    Http1,
    /// Concurrent requests.
    Http2,
}

/// Performs the TLS handshake.
///
/// # Errors
/// A client that does not use TLS, or has no valid certificate where one is required.
pub(super) async fn handshake<S>(tls: &Tls, stream: S) -> io::Result<(TlsStream<S>, PeerTls)>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let stream = tls.acceptor().accept(stream).await?;
    // The handshake fails with a certificate that no CA certificate of the settings signed.
    let own = stream.get_ref().1.peer_certificates().and_then(<[_]>::first);
    let (is_certified, is_gateway) = (own.is_some(), own.is_some_and(|own| tls.is_gateway(own)));
    Ok((stream, PeerTls { is_certified, is_gateway }))
}

/// Detects the version by the first bytes, which are read again afterwards.
///
/// # Errors
/// A client that disconnects before.
pub(super) async fn detect<S>(mut stream: S) -> io::Result<(RewoundStream<S>, HttpVersion)>
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
    let version = if start == PREFACE[..] { HttpVersion::Http2 } else { HttpVersion::Http1 };
    Ok((RewoundStream { start: start.freeze(), inner: stream }, version))
}

/// A stream whose first bytes are read again.
pub(super) struct RewoundStream<S> {
    start: Bytes,
    inner: S,
}

impl<S: AsyncRead + Unpin> AsyncRead for RewoundStream<S> {
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

impl<S: AsyncWrite + Unpin> AsyncWrite for RewoundStream<S> {
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

    /// The detected version of a client that writes these parts, and the bytes that can be read afterwards.
    async fn detected(parts: &[&[u8]]) -> io::Result<(HttpVersion, Vec<u8>)> {
        let (mut client, server) = tokio::io::duplex(1024);
        let detecting = tokio::spawn(detect(server));
        for part in parts {
            client.write_all(part).await?;
            tokio::task::yield_now().await;
        }
        drop(client);
        let (mut stream, version) = detecting.await.expect("no panic")?;
        let mut read = Vec::new();
        stream.read_to_end(&mut read).await?;
        Ok((version, read))
    }

    #[tokio::test]
    async fn detects_the_version_by_the_first_bytes_and_keeps_them() {
        let (preface, frames) = (&PREFACE[..], &b"\0\0\0\x04\0\0\0\0\0"[..]);
        let (half, rest) = PREFACE.split_at(11);
        let request = b"PRIVATE / HTTP/1.1\r\n\r\n and a long body";

        for (parts, version) in [
            (vec![preface, frames], HttpVersion::Http2),
            (vec![half, rest, frames], HttpVersion::Http2),
            (vec![&b"G"[..], &b"ET / HTTP/1.1\r\n\r\n"[..]], HttpVersion::Http1),
            (vec![&request[..]], HttpVersion::Http1),
            (vec![&b"\x16\x03\x01"[..]], HttpVersion::Http1),
        ] {
            let detected = detected(&parts).await.expect("enough bytes");
            assert_eq!(detected, (version, parts.concat()));
        }
    }

    #[tokio::test]
    async fn fails_when_a_client_disconnects_before_detection() {
        for parts in [vec![], vec![&PREFACE[..23]]] {
            let error = detected(&parts).await.expect_err("too few bytes");
            assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof);
        }
    }
}
