//! Random access to a file through one buffer of a fixed size.

use std::io::{self, Read, Seek, SeekFrom};

use xxhash_rust::xxh3::Xxh3;

/// Bytes that are read at a time.
const PIECE: usize = 64 * 1024;

/// The first bytes of a file, up to an end that may lie before the end of the file.
pub(super) struct FileWindow<R> {
    source: R,
    end: u64,
    /// Where the buffer begins in the file.
    start: u64,
    buffer: Vec<u8>,
}

impl<R: Read + Seek> FileWindow<R> {
    pub(super) fn new(source: R, end: u64) -> Self {
        Self { source, end, start: 0, buffer: Vec::new() }
    }

    pub(super) fn end(&self) -> u64 {
        self.end
    }

    /// So many bytes from a position, at most 64 KiB; nothing if they pass the end.
    pub(super) fn get(&mut self, at: u64, length: u64) -> io::Result<Option<&[u8]>> {
        if at.checked_add(length).is_none_or(|last| last > self.end) {
            return Ok(None);
        }
        let length = usize::try_from(length).unwrap_or(usize::MAX);
        if self.buffered(at).len() < length {
            self.fill(at)?;
        }
        Ok(self.buffered(at).get(..length))
    }

    /// At least one byte from a position, and as many as are in the window; none at the end.
    pub(super) fn some(&mut self, at: u64) -> io::Result<&[u8]> {
        if self.buffered(at).is_empty() && at < self.end {
            self.fill(at)?;
        }
        Ok(self.buffered(at))
    }

    /// Adds the bytes from one position to another, which must not pass the end.
    pub(super) fn hash(&mut self, from: u64, to: u64, hash: &mut Xxh3) -> io::Result<()> {
        self.pieces(from, to, |piece| hash.update(piece))
    }

    /// The bytes from one position to another, which must not pass the end.
    pub(super) fn read(&mut self, from: u64, to: u64) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        self.pieces(from, to, |piece| bytes.extend_from_slice(piece))?;
        Ok(bytes)
    }

    fn pieces(&mut self, from: u64, to: u64, mut each: impl FnMut(&[u8])) -> io::Result<()> {
        let mut at = from;
        while at < to {
            let bytes = self.some(at)?;
            let requested = usize::try_from(to - at).unwrap_or(usize::MAX).min(bytes.len());
            let Some(piece) = bytes.get(..requested).filter(|piece| !piece.is_empty()) else {
                return Err(io::ErrorKind::UnexpectedEof.into());
            };
            each(piece);
            at += requested as u64;
        }
        Ok(())
    }

    fn buffered(&self, at: u64) -> &[u8] {
        let from = at.checked_sub(self.start).and_then(|from| usize::try_from(from).ok());
        from.and_then(|from| self.buffer.get(from..)).unwrap_or_default()
    }

    fn fill(&mut self, at: u64) -> io::Result<()> {
        let requested = (self.end - at).min(PIECE as u64);
        self.buffer.clear();
        self.start = at;
        self.source.seek(SeekFrom::Start(at))?;
        self.source.by_ref().take(requested).read_to_end(&mut self.buffer)?;
        Ok(())
    }
}
