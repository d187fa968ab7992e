//! The encodings of messages.

use std::io::{self, Read};

use flate2::{
    Compression,
    read::{MultiGzDecoder, ZlibDecoder},
    write::{GzEncoder, ZlibEncoder},
};

use trestle_model::limits::MESSAGE_BYTES_MAX;

/// Level of zstd: the fastest of the regular ones.
const ZSTD_LEVEL: i32 = 1;
/// Largest window of zstd, as a power of two: as large as a message. A stream may require 128 MiB.
const ZSTD_WINDOW_LOG_MAX: u32 = MESSAGE_BYTES_MAX.trailing_zeros();
/// Memory is reserved in steps of at least this size, in bytes.
const STEP_BYTES: usize = 16 * 1024;

/// How messages are compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MessageEncoding {
    Gzip,
    Deflate,
    Zstd,
}

/// Why a message is not decompressed.
#[derive(Debug)]
pub(super) enum DecompressError {
    /// It has more than so many bytes.
    TooLarge,
    /// Its bytes do not fit into the budget.
    OverBudget,
    /// Its bytes are malformed.
    Malformed(io::Error),
}

impl MessageEncoding {
    const ALL: [Self; 3] = [Self::Gzip, Self::Deflate, Self::Zstd];

    /// By its name in headers.
    pub(super) fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|encoding| encoding.name() == name)
    }

    /// Its name in headers.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Gzip => "gzip",
            Self::Deflate => "deflate",
            Self::Zstd => "zstd",
        }
    }

    /// The content of a message of up to `bytes_max`. `hold` reserves so many bytes in all, before they
    /// are allocated.
    ///
    /// # Errors
    /// Every kind of [`DecompressError`].
    pub(super) fn decompress(
        self,
        message: &[u8],
        bytes_max: usize,
        hold: impl FnMut(usize) -> bool,
    ) -> Result<Vec<u8>, DecompressError> {
        match self {
            Self::Gzip => read(MultiGzDecoder::new(message), bytes_max, hold),
            Self::Deflate => read(ZlibDecoder::new(message), bytes_max, hold),
            Self::Zstd => {
                let decoder = zstd::stream::read::Decoder::with_buffer(message);
                let mut decoder = decoder.map_err(DecompressError::Malformed)?;
                let bounded = decoder.window_log_max(ZSTD_WINDOW_LOG_MAX);
                bounded.map_err(DecompressError::Malformed)?;
                read(decoder, bytes_max, hold)
            }
        }
    }

    /// A compressed message.
    ///
    /// # Errors
    /// None that is known: it writes to memory.
    pub(super) fn compress(self, message: &[u8]) -> io::Result<Vec<u8>> {
        let compressed = Vec::with_capacity(message.len() / 2);
        match self {
            Self::Gzip => {
                let mut encoder = GzEncoder::new(compressed, Compression::fast());
                io::copy(&mut &*message, &mut encoder)?;
                encoder.finish()
            }
            Self::Deflate => {
                let mut encoder = ZlibEncoder::new(compressed, Compression::fast());
                io::copy(&mut &*message, &mut encoder)?;
                encoder.finish()
            }
            Self::Zstd => zstd::bulk::compress(message, ZSTD_LEVEL),
        }
    }
}

/// Reads to the end, or one byte past the bound.
fn read(
    mut content: impl Read,
    bytes_max: usize,
    mut hold: impl FnMut(usize) -> bool,
) -> Result<Vec<u8>, DecompressError> {
    let mut bytes = Vec::new();
    loop {
        let step = bytes.len().max(STEP_BYTES).min((bytes_max + 1).saturating_sub(bytes.len()));
        if step == 0 {
            return Err(DecompressError::TooLarge);
        }
        if !hold(bytes.len() + step) {
            return Err(DecompressError::OverBudget);
        }
        bytes.reserve_exact(step);
        let part = content.by_ref().take(step.try_into().unwrap_or(u64::MAX));
        let read = { part }.read_to_end(&mut bytes).map_err(DecompressError::Malformed)?;
        if read < step {
            return Ok(bytes);
        }
    }
}
