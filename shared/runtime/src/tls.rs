//! The encryption of a listener: certificates read from files, checked, and replaced while connections remain open.
//!
//! New connections get the newest certificate that could be read; those that are open keep theirs. No error text here
//! contains the content of a file.

mod certificates;
mod validity;

use std::{
    io,
    net::SocketAddr,
    sync::{Arc, OnceLock, PoisonError, RwLock},
    time::Instant,
};

use opentelemetry::{
    KeyValue,
    metrics::{Counter, Meter},
};
use tokio_rustls::{
    TlsAcceptor,
    rustls::{
        self, client::verify_server_name, pki_types::CertificateDer, server::ParsedCertificate,
    },
};
use tracing::{debug, info};
use trestle_rpc::log_rate::LogRate;
use trestle_rpc::semconv;

pub use self::{
    certificates::{Certificates, ClientCertificates, TlsError, TlsFile, TlsFiles},
    validity::Validity,
};

/// The encryption of a listener. Clones share it.
#[derive(Clone)]
pub struct Tls {
    current: Arc<RwLock<Certificates>>,
    failures: Arc<HandshakeFailures>,
}

/// The handshakes that failed.
#[derive(Default)]
struct HandshakeFailures {
    counter: OnceLock<Counter<u64>>,
    lines: LogRate,
}

/// Why a handshake failed, as the metric labels it.
fn cause(error: &io::Error) -> &'static str {
    let of_tls = error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>());
    match (of_tls, error.kind()) {
        (
            Some(rustls::Error::InvalidCertificate(_) | rustls::Error::NoCertificatesPresented),
            _,
        ) => "certificate",
        (Some(_), _) => "protocol",
        (None, io::ErrorKind::TimedOut) => "timeout",
        (None, _) => "closed",
    }
}

/// The same in words, without those of the library where a case is known.
fn in_words(error: &io::Error) -> String {
    use rustls::{AlertDescription as Alert, Error as E};
    match error.get_ref().and_then(|inner| inner.downcast_ref::<E>()) {
        Some(E::NoCertificatesPresented) => "the client has no certificate".to_owned(),
        Some(E::InvalidCertificate(_)) => "the certificate of the client is not valid".to_owned(),
        Some(E::InvalidMessage(_)) => "the client does not use TLS".to_owned(),
        Some(E::AlertReceived(Alert::UnknownCA)) => {
            "the client does not trust the CA of this server's certificate".to_owned()
        }
        Some(E::AlertReceived(Alert::BadCertificate | Alert::CertificateUnknown)) => {
            "the client does not accept this server's certificate".to_owned()
        }
        Some(E::AlertReceived(Alert::CertificateExpired)) => {
            "the client reports that this server's certificate has expired".to_owned()
        }
        Some(E::PeerIncompatible(_)) => {
            "the client has no protocol version or cipher of this server".to_owned()
        }
        Some(_) | None => error.to_string(),
    }
}

impl Tls {
    /// Uses these certificates until they are replaced.
    #[must_use]
    pub fn new(certificates: &Certificates) -> Self {
        let current = Arc::new(RwLock::new(certificates.clone()));
        Self { current, failures: Arc::default() }
    }

    /// Counts the handshakes that fail from now on.
    pub fn count_on(&self, meter: &Meter) {
        self.failures.counter.get_or_init(|| semconv::failed_handshakes(meter));
    }

    /// Reports when the certificate expires, of a listener, whenever metrics are collected.
    pub fn observe(&self, meter: &Meter, listener: &'static str) {
        let (metric, current) = (semconv::CERTIFICATE_EXPIRY, Arc::downgrade(&self.current));
        let gauge = meter.i64_observable_gauge(metric.name).with_unit(metric.unit);
        let gauge = gauge.with_description(metric.help).with_callback(move |observer| {
            let Some(current) = current.upgrade() else { return };
            let read = current.read().unwrap_or_else(PoisonError::into_inner);
            if let Some(expires_at) = read.expires_at() {
                observer.observe(expires_at, &[KeyValue::new(semconv::LISTENER, listener)]);
            }
        });
        let _ = gauge.build();
    }

    /// Records a handshake that failed.
    pub(crate) fn failed(&self, peer: SocketAddr, error: &io::Error) {
        let (cause, error) = (cause(error), in_words(error));
        if let Some(counter) = self.failures.counter.get() {
            counter.add(1, &[KeyValue::new(semconv::ERROR_TYPE, cause)]);
        }
        // Balancers connect and disconnect as a probe.
        if cause != "closed" && self.failures.lines.may_log((), Instant::now()).is_some() {
            info!(%peer, cause, %error, "handshake failed; further failures within 10 s are not logged");
        } else {
            debug!(%peer, cause, %error, "handshake failed");
        }
    }

    /// Uses other certificates for new connections.
    pub fn replace(&self, certificates: &Certificates) {
        let mut current = self.current.write().unwrap_or_else(PoisonError::into_inner);
        *current = certificates.clone();
    }

    /// Performs the handshake of the next connection.
    pub(crate) fn acceptor(&self) -> TlsAcceptor {
        let current = self.current.read().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(&current.config).into()
    }

    /// Whether a certificate has the name of a gateway.
    pub(crate) fn is_gateway(&self, certificate: &CertificateDer<'_>) -> bool {
        let current = self.current.read().unwrap_or_else(PoisonError::into_inner);
        let gateways = Arc::clone(&current.gateways);
        drop(current);
        let Ok(parsed) = ParsedCertificate::try_from(certificate) else { return false };
        gateways.iter().any(|name| verify_server_name(&parsed, name).is_ok())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_handshake_is_named_in_words() {
        let of =
            |error: rustls::Error| in_words(&io::Error::new(io::ErrorKind::InvalidData, error));
        let invalid = rustls::InvalidMessage::InvalidContentType;
        for (error, expected) in [
            (rustls::Error::InvalidMessage(invalid), "the client does not use TLS"),
            (rustls::Error::NoCertificatesPresented, "the client has no certificate"),
            (
                rustls::CertificateError::UnknownIssuer.into(),
                "the certificate of the client is not valid",
            ),
            (
                rustls::Error::AlertReceived(rustls::AlertDescription::UnknownCA),
                "the client does not trust the CA of this server's certificate",
            ),
        ] {
            assert_eq!(of(error), expected);
        }
        assert_eq!(in_words(&io::ErrorKind::TimedOut.into()), "timed out");
    }

    #[test]
    fn labels_a_failed_handshake_with_one_of_four_causes() {
        let of = |error: rustls::Error| io::Error::new(io::ErrorKind::InvalidData, error);
        for (error, expected) in [
            (of(rustls::Error::NoCertificatesPresented), "certificate"),
            (of(rustls::CertificateError::UnknownIssuer.into()), "certificate"),
            (of(rustls::Error::HandshakeNotComplete), "protocol"),
            (io::ErrorKind::UnexpectedEof.into(), "closed"),
            (io::ErrorKind::TimedOut.into(), "timeout"),
        ] {
            assert_eq!(cause(&error), expected, "{error}");
        }
    }
}
