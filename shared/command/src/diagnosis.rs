//! Diagnosis of an address whose connection failed without an error of the server.
//!
//! A client without TLS at an encrypted server, or without a required certificate, gets a TLS alert before the
//! connection ends, but which error the layers above derive from it depends on timing. So the address is probed,
//! without sending a call.

use std::{io, sync::Arc, time::Duration};

use http::Uri;
use tokio::{
    io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _},
    net::TcpStream,
};
use tokio_rustls::{
    TlsConnector,
    rustls::{AlertDescription, CertificateError, Error, pki_types::ServerName},
};

use crate::{
    endpoint,
    trust::{HTTP2, TlsArgs},
};

/// The timeout of the probe.
const WITHIN: Duration = Duration::from_secs(5);
/// The timeout of a page in it: a server of another protocol may wait for more.
const PAGE_WITHIN: Duration = Duration::from_secs(2);
/// The start of HTTP/2: its preface, and an empty settings frame.
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";
/// Bytes of the header of an HTTP/2 frame.
const FRAME_HEADER_BYTES: usize = 9;
/// Its type: settings, with which each side of HTTP/2 begins.
const SETTINGS: u8 = 4;
/// The first byte of an alert of TLS.
const ALERT: u8 = 0x15;
/// A request that the admin listener and the listeners of REST answer differently.
const PAGE: &[u8] = b"GET /livez HTTP/1.1\r\nhost: trestle\r\nconnection: close\r\n\r\n";
/// How the library for certificates names that of a CA where one of a server is expected.
const CA_AS_SERVER: &str = "CaUsedAsEndEntity";
/// What answers HTTP, and neither gRPC nor a listener of Trestle.
const ANOTHER_SERVER: &str = "another HTTP server answers there";
/// What answers TLS without the protocol of gRPC.
const WITHOUT_HTTP2: &str = "another server answers there, with TLS and without HTTP/2";
/// What the listener of gRPC answers to it, in lower case.
const OF_GRPC: &str = "this address serves grpc";
/// Most bytes of its answer that are read.
const ANSWER_BYTES_MAX: u64 = 4096;

/// The header by which the admin listener is distinguished from other HTTP servers, in lower case.
const OF_ADMIN: &str = "server: trestle";

/// What answers the start of HTTP/2.
#[derive(Debug, PartialEq, Eq)]
enum PlainAnswer {
    /// A server that uses TLS.
    Tls,
    /// A server of HTTP/2.
    Http2,
    /// An HTTP server without HTTP/2.
    Http1,
    /// Another protocol.
    Other,
    /// Nothing: the connection ended.
    Closed,
}

impl PlainAnswer {
    fn of(answer: &[u8]) -> Self {
        match answer {
            [] => Self::Closed,
            [ALERT, ..] => Self::Tls,
            [_, _, _, SETTINGS, _, 0, 0, 0, 0] => Self::Http2,
            // A page without a head is an answer too, of a server that does not read the version of HTTP/2.
            [b'H', b'T', b'T', b'P', b'/', ..] | [b'<', b'!', ..] => Self::Http1,
            _ => Self::Other,
        }
    }
}

/// The problem of the address with its remedy, if the probe detects it.
///
/// `is_foreign`: what answered is not gRPC.
pub(crate) async fn look(endpoint: &str, tls: &TlsArgs, is_foreign: bool) -> Option<String> {
    tokio::time::timeout(WITHIN, look_closely(endpoint, tls, is_foreign)).await.ok().flatten()
}

async fn look_closely(endpoint: &str, tls: &TlsArgs, is_foreign: bool) -> Option<String> {
    let is_encrypted = endpoint::is_encrypted(endpoint).ok()?;
    let uri: Uri = endpoint.parse().ok()?;
    let authority = uri.authority()?.as_str();
    let host = uri.host()?.trim_matches(['[', ']']).to_owned();
    let port = uri.port_u16().unwrap_or(if is_encrypted { 443 } else { 80 });
    let address = (host.as_str(), port);
    if !is_encrypted {
        return match plain_answer(address).await? {
            PlainAnswer::Tls => {
                Some(format!("the server at {authority} uses TLS: use https://{authority}"))
            }
            PlainAnswer::Http2 if !is_foreign => None,
            answer => another_listener(endpoint, address, &answer).await,
        };
    }
    let name = tls.server_name.clone().unwrap_or_else(|| host.clone());
    let mut config = tls.probe()?;
    if is_foreign {
        // A page is requested from what answered.
        config.alpn_protocols.clear();
    }
    let connector = TlsConnector::from(Arc::new(config));
    let stream = TcpStream::connect(address).await.ok()?;
    // A server that checks certificates after the handshake sends next; nothing is sent, so the alert arrives.
    let failed = match connector.connect(ServerName::try_from(name.clone()).ok()?, stream).await {
        Ok(stream) if is_foreign => return Some(not_grpc(endpoint, page(stream).await?)),
        Ok(stream) if stream.get_ref().1.alpn_protocol() != Some(HTTP2) => {
            return Some(not_grpc(endpoint, WITHOUT_HTTP2));
        }
        Ok(mut stream) => stream.read_u8().await.err()?,
        Err(failed) => failed,
    };
    if !is_plain(&failed) {
        return tls_problem(endpoint, &name, &failed);
    }
    // The listener may be another one than that of gRPC too.
    let answer = plain_answer(address).await?;
    let other = another_listener(endpoint, address, &answer).await;
    Some(other.unwrap_or_else(|| plain_problem(authority)))
}

/// The problem of an address that answers plain text, unless that is HTTP/2 only.
async fn another_listener(
    endpoint: &str,
    address: (&str, u16),
    answer: &PlainAnswer,
) -> Option<String> {
    if *answer == PlainAnswer::Other {
        return Some(not_grpc(endpoint, "a server of another protocol answers there"));
    }
    let stream = TcpStream::connect(address).await.ok()?;
    let found = match tokio::time::timeout(PAGE_WITHIN, page(stream)).await.ok().flatten() {
        None if *answer == PlainAnswer::Http1 => ANOTHER_SERVER,
        found => found?,
    };
    Some(not_grpc(endpoint, found))
}

/// The problem of an address where an HTTP server answers that is not one of gRPC.
pub(crate) fn another_server(endpoint: &str) -> String {
    not_grpc(endpoint, ANOTHER_SERVER)
}

/// The problem of an encrypted connection to a server without TLS.
pub(crate) fn plain_problem(authority: &str) -> String {
    format!("the server at {authority} uses plain text, not TLS: use http://{authority}")
}

/// What answers the start of HTTP/2 without TLS; none where nothing listens.
async fn plain_answer(address: (&str, u16)) -> Option<PlainAnswer> {
    let mut stream = TcpStream::connect(address).await.ok()?;
    stream.write_all(PREFACE).await.ok()?;
    let mut answer = Vec::new();
    // A connection that breaks has sent what it has sent.
    let _ = stream.take(FRAME_HEADER_BYTES as u64).read_to_end(&mut answer).await;
    Some(PlainAnswer::of(&answer))
}

/// The problem of an address where another listener answers.
fn not_grpc(endpoint: &str, found: &str) -> String {
    format!(
        "{endpoint} is not the address of gRPC: {found}; give the address of gRPC with --endpoint"
    )
}

/// Whether what answered a TLS handshake does not use TLS.
fn is_plain(failed: &io::Error) -> bool {
    let error = failed.get_ref().and_then(|error| error.downcast_ref::<Error>());
    matches!(error, Some(Error::InvalidMessage(_)))
}

/// The problem of a TLS handshake.
fn tls_problem(endpoint: &str, name: &str, failed: &io::Error) -> Option<String> {
    let problem = match failed.get_ref()?.downcast_ref()? {
        Error::AlertReceived(AlertDescription::NoApplicationProtocol) => {
            return Some(not_grpc(endpoint, WITHOUT_HTTP2));
        }
        Error::AlertReceived(AlertDescription::CertificateRequired) => {
            "the server requires a certificate: give --cert-file and --key-file".to_owned()
        }
        Error::AlertReceived(_) => {
            "the server rejects the handshake: check --cert-file and --key-file".to_owned()
        }
        Error::InvalidCertificate(error) => certificate_problem(name, error),
        _ => return None,
    };
    Some(format!("the TLS handshake with {endpoint} failed, nothing was written: {problem}"))
}

/// The problem of the certificate of a server.
fn certificate_problem(name: &str, error: &CertificateError) -> String {
    match error {
        CertificateError::UnknownIssuer => {
            "the certificate of the server is of a CA that is not trusted: give its certificate \
             with --ca-file"
                .to_owned()
        }
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
            "the certificate of the server has expired: renew it".to_owned()
        }
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            "the certificate of the server is not valid yet: check the clocks".to_owned()
        }
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
            format!(
                "the certificate of the server is not for `{name}`: give its name with --server-name"
            )
        }
        CertificateError::Other(other) if other.to_string().contains(CA_AS_SERVER) => {
            "the certificate of the server is that of a CA: issue one for the server, with \
             basicConstraints=CA:FALSE"
                .to_owned()
        }
        _ => "the certificate of the server cannot be trusted: give that of its CA with --ca-file, or \
              check it with `openssl verify`"
            .to_owned(),
    }
}

/// What answers HTTP/1.
async fn page(mut stream: impl AsyncRead + AsyncWrite + Unpin) -> Option<&'static str> {
    stream.write_all(PAGE).await.ok()?;
    let mut answer = Vec::new();
    let read = stream.take(ANSWER_BYTES_MAX).read_to_end(&mut answer).await;
    // A server may end a connection with TLS without the alert for it.
    read.ok().or((!answer.is_empty()).then_some(0))?;
    let answer = String::from_utf8_lossy(&answer).to_ascii_lowercase();
    match () {
        () if !answer.starts_with("http/1.") || answer.contains(OF_GRPC) => None,
        () if answer.contains("x-ms-") => Some("clients of Azure Storage are served there"),
        () if answer.contains(OF_ADMIN) => Some("metrics and probes are served there"),
        () => Some(ANOTHER_SERVER),
    }
}

#[cfg(test)]
mod tests;
