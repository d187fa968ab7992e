//! The checksums of contents: CRC-64/NVME for what is stored and for clients, MD5 for clients.

use bytes::Bytes;
use md5::{Digest as _, Md5};

/// The CRC-64/NVME of bytes that come in pieces.
#[derive(Clone)]
pub(crate) struct Crc64(crc64fast_nvme::Digest);

impl Crc64 {
    /// Of no bytes.
    pub(crate) fn new() -> Self {
        Self(crc64fast_nvme::Digest::new())
    }

    /// With further bytes.
    pub(crate) fn update(&mut self, bytes: &[u8]) {
        self.0.write(bytes);
    }

    /// The checksum so far.
    pub(crate) fn value(&self) -> u64 {
        self.0.sum64()
    }

    /// Of these bytes.
    pub(crate) fn of(bytes: &[u8]) -> u64 {
        let mut crc = Self::new();
        crc.update(bytes);
        crc.value()
    }
}

/// What is computed of the data of an upload.
pub(crate) struct UploadDigest {
    crc64: Crc64,
    /// None where no client needs it: it is most of the work of an upload.
    md5: Option<Md5>,
    size: u64,
}

/// What was computed of the data of an upload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Digests {
    /// The CRC-64/NVME.
    pub(crate) crc64: u64,
    /// The MD5, where it was computed.
    pub(crate) md5: Option<[u8; 16]>,
    /// The length, in bytes.
    pub(crate) size: u64,
}

impl UploadDigest {
    /// Of no data.
    pub(crate) fn new(with_md5: bool) -> Self {
        Self { crc64: Crc64::new(), md5: with_md5.then(Md5::new), size: 0 }
    }

    /// With further data.
    pub(crate) fn update(&mut self, data: &Bytes) {
        self.crc64.update(data);
        if let Some(md5) = &mut self.md5 {
            md5.update(data);
        }
        self.size = self.size.saturating_add(data.len() as u64);
    }

    /// The length so far, in bytes.
    pub(crate) fn size(&self) -> u64 {
        self.size
    }

    /// What was computed.
    pub(crate) fn finish(self) -> Digests {
        let md5 = self.md5.map(|md5| md5.finalize().into());
        Digests { crc64: self.crc64.value(), md5, size: self.size }
    }
}

#[cfg(test)]
mod tests {
    use base64::{Engine as _, engine::general_purpose::STANDARD};

    use super::*;

    #[test]
    fn checksums_are_those_of_azure() {
        assert_eq!(Crc64::of(b"123456789"), 0xAE8B_1486_0A79_9888);
        let base64 = |bytes: &[u8]| STANDARD.encode(Crc64::of(bytes).to_le_bytes());
        assert_eq!(base64(b"hello world"), "vo7q9sPVKY0=");
        assert_eq!(base64(&[b'a'; 1024]), "ov8U1LLnyKc=");

        let mut digest = UploadDigest::new(true);
        digest.update(&Bytes::from_static(b"hello"));
        digest.update(&Bytes::from_static(b" world"));
        let digests = digest.finish();
        assert_eq!(digests.crc64, Crc64::of(b"hello world"));
        assert_eq!(digests.size, 11);
        let md5 = digests.md5.map(|md5| STANDARD.encode(md5));
        assert_eq!(md5.as_deref(), Some("XrY7u+Ae7tCTyyK7j1rNww=="));
    }
}
