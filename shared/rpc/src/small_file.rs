//! Files that a process reads whole: settings, certificates, keys.

use std::{
    fs::File,
    io::{self, Read},
    path::Path,
};

/// The most bytes of such a file: the certificates of all public authorities have a fourth of them.
pub const BYTES_MAX: u64 = 1024 * 1024;

/// The bytes of a file.
///
/// # Errors
/// A file that cannot be opened or read, or that has more than [`BYTES_MAX`] bytes, as a device without an end has.
pub fn read(path: &Path) -> io::Result<Vec<u8>> {
    bounded(File::open(path)?)
}

fn bounded(source: impl Read) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    source.take(BYTES_MAX + 1).read_to_end(&mut bytes)?;
    if u64::try_from(bytes.len()).is_ok_and(|length| length > BYTES_MAX) {
        let rule = format!("must have at most {BYTES_MAX} bytes");
        return Err(io::Error::new(io::ErrorKind::InvalidData, rule));
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_without_an_end_is_refused_after_the_bytes_it_may_have() {
        let longest = vec![b'x'; usize::try_from(BYTES_MAX).unwrap()];
        assert_eq!(bounded(&longest[..]).unwrap(), longest);

        let rule = "must have at most 1048576 bytes";
        assert_eq!(bounded(longest.as_slice().chain(&b"x"[..])).unwrap_err().to_string(), rule);
        assert_eq!(read(Path::new("/dev/zero")).unwrap_err().to_string(), rule);
    }

    #[test]
    fn what_cannot_be_read_is_an_error() {
        assert_eq!(read(Path::new("/dev")).unwrap_err().kind(), io::ErrorKind::IsADirectory);
        assert_eq!(read(Path::new("/dev/missing")).unwrap_err().kind(), io::ErrorKind::NotFound);
    }
}
