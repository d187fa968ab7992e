//! Diagnosis of an address whose connection broke without an error.
//!
//! A client without TLS at an encrypted server, or without a required certificate, gets a TLS alert before the
//! connection ends, but which error the layers above derive from it depends on timing. So the address is probed,
//! without sending a call.

use std::{sync::Arc, time::Duration};

use http::Uri;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};
use tokio_rustls::{
    TlsConnector,
    rustls::{AlertDescription, Error, pki_types::ServerName},
};

use crate::{args::ClientArgs, endpoint};

/// The timeout of the probe.
const WITHIN: Duration = Duration::from_secs(2);
/// The start of HTTP/2: its preface, and an empty settings frame.
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";
/// The first byte of an alert of TLS.
const ALERT: u8 = 0x15;

/// The problem of the address, if the probe detects it.
pub(crate) async fn look(client: &ClientArgs) -> Option<&'static str> {
    tokio::time::timeout(WITHIN, look_closely(client)).await.ok().flatten()
}

async fn look_closely(client: &ClientArgs) -> Option<&'static str> {
    let is_encrypted = endpoint::is_encrypted(&client.endpoint).ok()?;
    let uri: Uri = client.endpoint.parse().ok()?;
    let host = uri.host()?.trim_matches(['[', ']']).to_owned();
    let port = uri.port_u16().unwrap_or(if is_encrypted { 443 } else { 80 });
    let mut stream = TcpStream::connect((host.as_str(), port)).await.ok()?;
    if !is_encrypted {
        stream.write_all(PREFACE).await.ok()?;
        let is_alert = stream.read_u8().await.ok()? == ALERT;
        return is_alert.then_some("is this address encrypted? use https://");
    }
    let name = client.tls.server_name.clone().unwrap_or(host);
    let connector = TlsConnector::from(Arc::new(client.tls.probe()?));
    // A server that checks certificates after the handshake sends next; nothing is sent, so the alert arrives.
    let failed = match connector.connect(ServerName::try_from(name).ok()?, stream).await {
        Ok(mut stream) => stream.read_u8().await.err()?,
        Err(failed) => failed,
    };
    match failed.get_ref()?.downcast_ref()? {
        Error::AlertReceived(AlertDescription::CertificateRequired) => Some(
            "the TLS handshake failed, nothing was written: the server requires a certificate, give \
             --cert-file and --key-file",
        ),
        Error::AlertReceived(_) => Some(
            "the TLS handshake failed, nothing was written: the server rejects the certificate",
        ),
        _ => None,
    }
}
