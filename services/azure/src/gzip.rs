//! Compressed bodies.

use std::io::{self, Read as _};

use bytes::Bytes;
use flate2::read::MultiGzDecoder;
use http::header::HeaderValue;
use tonic::body::Body;
use tower::{Layer as _, ServiceExt as _};
use tower_http::{
    CompressionLevel,
    compression::{CompressionLayer, predicate::SizeAbove},
};
use trestle_model::fault::{Fault, Reason, quoted};
use trestle_rpc::layer::{CallService, Response};

/// Responses from this size on are compressed; smaller ones would gain little.
const ANSWER_BYTES_MIN: u64 = 1024;

/// The encoding of the body of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Encoding {
    /// Not compressed.
    Identity,
    /// Compressed.
    Gzip,
}

impl Encoding {
    /// Reads the header `Content-Encoding`.
    ///
    /// # Errors
    /// An unsupported encoding.
    pub(crate) fn of(header: Option<&HeaderValue>) -> Result<Self, Fault> {
        let Some(value) = header else {
            return Ok(Self::Identity);
        };
        let text = String::from_utf8_lossy(value.as_bytes());
        match text.trim().to_ascii_lowercase().as_str() {
            "" | "identity" => Ok(Self::Identity),
            "gzip" | "x-gzip" => Ok(Self::Gzip),
            _ => {
                let rule = format!("must be gzip or identity: value=`{}`", quoted(&text));
                Err(Fault::violation(Reason::InvalidHeaderValue, "Content-Encoding", rule))
            }
        }
    }

    /// The decoded body; none if it has more than so many bytes.
    ///
    /// # Errors
    /// Bytes with an invalid encoding.
    pub(crate) fn decode(self, body: Bytes, bytes_max: usize) -> Result<Option<Bytes>, Fault> {
        if self == Self::Identity {
            return Ok(Some(body));
        }
        match inflate(&body, bytes_max) {
            Ok(decoded) => Ok((decoded.len() <= bytes_max).then(|| decoded.into())),
            Err(error) => {
                let rule = format!("must be gzip, as declared in Content-Encoding: {error}");
                Err(Fault::violation(Reason::InvalidInput, "body", rule))
            }
        }
    }
}

/// At most one byte more than the bound, however large the input.
fn inflate(body: &[u8], bytes_max: usize) -> io::Result<Vec<u8>> {
    let mut decoded = Vec::with_capacity(body.len().saturating_mul(4).min(bytes_max));
    let bound = u64::try_from(bytes_max).unwrap_or(u64::MAX).saturating_add(1);
    MultiGzDecoder::new(body).take(bound).read_to_end(&mut decoded)?;
    Ok(decoded)
}

/// An HTTP edge that compresses its responses for clients that accept it.
pub(crate) fn compressing(edge: CallService) -> CallService {
    let layer = CompressionLayer::new()
        .gzip(true)
        .quality(CompressionLevel::Fastest)
        .compress_when(SizeAbove::new(ANSWER_BYTES_MIN));
    let edge = layer.layer(edge).map_response(|answer| -> Response { answer.map(Body::new) });
    CallService::new(edge)
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use flate2::{Compression, write::GzEncoder};

    use super::*;

    fn gzip(bytes: &[u8]) -> Bytes {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(bytes).expect("writes to memory");
        encoder.finish().expect("ends").into()
    }

    fn encoding(value: &str) -> Result<Encoding, Reason> {
        let value = HeaderValue::from_str(value).expect("a value");
        Encoding::of(Some(&value)).map_err(|fault| fault.reason)
    }

    #[test]
    fn encodings_are_case_insensitive_and_unknown_ones_are_rejected() {
        assert_eq!(Encoding::of(None), Ok(Encoding::Identity));
        for value in ["", "identity", " Identity"] {
            assert_eq!(encoding(value), Ok(Encoding::Identity), "{value}");
        }
        for value in ["gzip", "GZIP", "x-gzip"] {
            assert_eq!(encoding(value), Ok(Encoding::Gzip), "{value}");
        }
        for value in ["br", "gzip, gzip", "deflate", "aws-chunked"] {
            assert_eq!(encoding(value), Err(Reason::InvalidHeaderValue), "{value}");
        }
    }

    #[test]
    fn a_body_is_decoded_up_to_its_bound() {
        let text = vec![b'a'; 1000];

        let decode = |bytes_max| Encoding::Gzip.decode(gzip(&text), bytes_max);

        assert_eq!(decode(1000), Ok(Some(Bytes::from(text.clone()))));
        assert_eq!(decode(999), Ok(None));
        let plain = Encoding::Identity.decode(Bytes::from("x"), 10);
        assert_eq!(plain, Ok(Some(Bytes::from("x"))));
    }

    #[test]
    fn a_decompression_bomb_is_not_unpacked() {
        let bomb = gzip(&vec![0; 50_000_000]);

        let decoded = inflate(&bomb, 4096).expect("the first bytes are fine");

        assert_eq!(decoded.len(), 4097);
    }

    #[test]
    fn rejects_invalid_gzip() {
        let whole = gzip(b"some text that is long enough");
        for body in [Bytes::from("{}"), Bytes::new(), whole.slice(..whole.len() - 6)] {
            let fault = Encoding::Gzip.decode(body.clone(), 100).expect_err("rejected");
            assert_eq!(fault.reason, Reason::InvalidInput, "{body:?}");
        }
    }
}
