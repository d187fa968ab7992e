//! Diagnosis of an address whose connection failed without an error of the server.
//!
//! A client without TLS at an encrypted server, or without a required certificate, gets a TLS alert before the
//! connection ends, but which error the layers above derive from it depends on timing. So the address is probed,
//! without sending a call.

use std::{io, sync::Arc, time::Duration};

use http::Uri;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};
use tokio_rustls::{
    TlsConnector,
    rustls::{AlertDescription, CertificateError, Error, pki_types::ServerName},
};

use crate::{endpoint, flags::ClientArgs};

/// The timeout of the probe.
const WITHIN: Duration = Duration::from_secs(2);
/// The start of HTTP/2: its preface, and an empty settings frame.
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";
/// The first byte of an alert of TLS.
const ALERT: u8 = 0x15;
/// A request that the admin listener and the listeners of REST answer differently.
const PAGE: &[u8] = b"GET /livez HTTP/1.1\r\nhost: trestle\r\nconnection: close\r\n\r\n";
/// Most bytes of its answer that are read.
const ANSWER_BYTES_MAX: u64 = 4096;

/// The problem of the address with its remedy, if the probe detects it.
///
/// `is_foreign`: what answered is not gRPC.
pub(crate) async fn look(client: &ClientArgs, is_foreign: bool) -> Option<String> {
    tokio::time::timeout(WITHIN, look_closely(client, is_foreign)).await.ok().flatten()
}

async fn look_closely(client: &ClientArgs, is_foreign: bool) -> Option<String> {
    let endpoint = client.endpoint.as_str();
    let is_encrypted = endpoint::is_encrypted(endpoint).ok()?;
    let uri: Uri = endpoint.parse().ok()?;
    let host = uri.host()?.trim_matches(['[', ']']).to_owned();
    let port = uri.port_u16().unwrap_or(if is_encrypted { 443 } else { 80 });
    let mut stream = TcpStream::connect((host.as_str(), port)).await.ok()?;
    if !is_encrypted {
        stream.write_all(PREFACE).await.ok()?;
        match stream.read_u8().await.ok() {
            Some(ALERT) => return Some(format!("{endpoint} uses TLS: use https://")),
            // The answer of HTTP/1.
            Some(b'H') => {}
            _ if is_foreign => {}
            _ => return None,
        }
        let stream = TcpStream::connect((host.as_str(), port)).await.ok()?;
        return page(stream).await.map(|found| {
            format!("{endpoint} is not the address of gRPC: {found}; give the address of gRPC with --endpoint")
        });
    }
    let name = client.tls.server_name.clone().unwrap_or(host);
    let connector = TlsConnector::from(Arc::new(client.tls.probe()?));
    // A server that checks certificates after the handshake sends next; nothing is sent, so the alert arrives.
    let failed = match connector.connect(ServerName::try_from(name.clone()).ok()?, stream).await {
        Ok(mut stream) => stream.read_u8().await.err()?,
        Err(failed) => failed,
    };
    tls_problem(endpoint, &name, &failed)
}

/// The problem of a TLS handshake.
fn tls_problem(endpoint: &str, name: &str, failed: &io::Error) -> Option<String> {
    let problem = match failed.get_ref()?.downcast_ref()? {
        Error::InvalidMessage(_) => return Some(format!("{endpoint} does not use TLS: use http://")),
        Error::AlertReceived(AlertDescription::CertificateRequired) => {
            "the server requires a certificate: give --cert-file and --key-file".to_owned()
        }
        Error::AlertReceived(_) => {
            "the server rejects the handshake: check --cert-file and --key-file".to_owned()
        }
        Error::InvalidCertificate(error) => match error {
            CertificateError::UnknownIssuer => {
                "the certificate of the server is of a CA that is not trusted: give its certificate \
                 with --ca-file"
                    .to_owned()
            }
            CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
                "the certificate of the server has expired".to_owned()
            }
            CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
                "the certificate of the server is not valid yet: check the clocks".to_owned()
            }
            CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
                format!(
                    "the certificate of the server is not for `{name}`: give its name with \
                     --server-name"
                )
            }
            _ => "the certificate of the server cannot be trusted".to_owned(),
        },
        _ => return None,
    };
    Some(format!("the TLS handshake with {endpoint} failed, nothing was written: {problem}"))
}

/// What answers HTTP/1.
async fn page(mut stream: TcpStream) -> Option<&'static str> {
    stream.write_all(PAGE).await.ok()?;
    let mut answer = Vec::new();
    stream.take(ANSWER_BYTES_MAX).read_to_end(&mut answer).await.ok()?;
    let answer = String::from_utf8_lossy(&answer).to_ascii_lowercase();
    match () {
        () if !answer.starts_with("http/1.") => None,
        () if answer.contains("x-ms-") => Some("clients of Azure Storage are served there"),
        () if answer.starts_with("http/1.1 200") => Some("metrics and probes are served there"),
        () => Some("another HTTP server answers there"),
    }
}

#[cfg(test)]
mod tests;
