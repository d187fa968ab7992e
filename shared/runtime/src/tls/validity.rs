//! When certificates are valid, and for what.

use tokio_rustls::rustls::pki_types::{CertificateDer, pem::PemObject as _};

/// When a certificate is valid, in seconds since 1970, and for what.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Validity {
    /// From then on.
    pub not_before: i64,
    /// Until then.
    pub not_after: i64,
    /// The same, for people.
    pub expires: String,
    /// Whether it is that of a CA.
    pub is_ca: bool,
}

impl Validity {
    /// The validity of a certificate; none where it cannot be parsed.
    #[must_use]
    pub fn of(certificate: &CertificateDer<'_>) -> Option<Self> {
        let (_, parsed) = x509_parser::parse_x509_certificate(certificate).ok()?;
        let (from, until) = (parsed.validity().not_before, parsed.validity().not_after);
        let expires = until.to_rfc2822().ok()?;
        let (not_before, not_after) = (from.timestamp(), until.timestamp());
        Some(Self { not_before, not_after, expires, is_ca: parsed.is_ca() })
    }

    /// The validity of each certificate in PEM, none of one that cannot be parsed. Keys beside them are skipped.
    #[must_use]
    pub fn of_pem(pem: &[u8]) -> Vec<Option<Self>> {
        let certificates = CertificateDer::pem_slice_iter(pem);
        certificates.map(|certificate| Self::of(&certificate.ok()?)).collect()
    }
}
