//! Opens the files of a workspace, whose author is not trusted: regular files only, without following a link out of it.
//! A pipe in place of one would block the import, and a link would copy a file of the user into an account.

use std::{
    fs::File,
    io::{Error, ErrorKind},
    path::Path,
};

use rustix::{
    fs::{CWD, Mode, OFlags, openat},
    io::Errno,
};

/// Without waiting for the writer of a pipe.
const FLAGS: OFlags =
    OFlags::RDONLY.union(OFlags::NOFOLLOW).union(OFlags::NONBLOCK).union(OFlags::CLOEXEC);

/// Opens a file for reading.
///
/// # Errors
/// A link, whatever it leads to; anything but a regular file; a file that cannot be opened.
pub(super) fn open(path: &Path) -> Result<File, Error> {
    regular(openat(CWD, path, FLAGS, Mode::empty()))
}

/// Opens a file in a directory that is no link itself.
///
/// # Errors
/// As [`open`].
pub(super) fn open_in(directory: &Path, name: &str) -> Result<File, Error> {
    let directory = openat(CWD, directory, FLAGS | OFlags::DIRECTORY, Mode::empty());
    // The error of a link with this flag.
    let directory = directory.map_err(|error| match error {
        Errno::NOTDIR => no_regular_file("its folder is a link, or no folder"),
        other => named(other),
    })?;
    regular(openat(directory, name, FLAGS, Mode::empty()))
}

fn regular(opened: Result<rustix::fd::OwnedFd, Errno>) -> Result<File, Error> {
    let file = File::from(opened.map_err(named)?);
    match file.metadata()?.is_file() {
        true => Ok(file),
        false => Err(no_regular_file("it is a folder, a pipe or a device")),
    }
}

fn named(error: Errno) -> Error {
    match error {
        Errno::LOOP => no_regular_file("it is a link"),
        // A socket, or a device without a driver.
        Errno::NXIO => no_regular_file("it is a socket or a device"),
        other => other.into(),
    }
}

fn no_regular_file(what: &str) -> Error {
    Error::new(ErrorKind::InvalidInput, format!("must be a regular file: {what}"))
}

#[cfg(test)]
mod tests {
    use std::{
        fs,
        os::unix::{fs::symlink, net::UnixListener},
    };

    use rustix::fs::{FileType, mknodat};

    use super::*;

    #[test]
    fn only_regular_files_of_the_folder_are_opened() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        fs::write(path("plain"), "content").unwrap();
        fs::create_dir(path("folder")).unwrap();
        symlink(path("plain"), path("link")).unwrap();
        symlink("/dev/zero", path("endless")).unwrap();
        symlink(path("nowhere"), path("dangling")).unwrap();
        let mode = Mode::RUSR | Mode::WUSR;
        mknodat(CWD, path("pipe"), FileType::Fifo, mode, 0).unwrap();
        let _socket = UnixListener::bind(path("socket")).unwrap();

        for name in ["link", "endless", "dangling", "pipe", "socket", "folder"] {
            for opened in [open(&path(name)), open_in(folder.path(), name)] {
                let error = opened.expect_err(name);
                let text = error.to_string();
                assert!(text.starts_with("must be a regular file: "), "{name}: {text}");
            }
        }
        assert!(open(&path("plain")).is_ok() && open_in(folder.path(), "plain").is_ok());
        let absent = open_in(folder.path(), "absent").expect_err("absent");
        assert_eq!(absent.kind(), ErrorKind::NotFound);
    }

    #[test]
    fn a_folder_that_is_a_link_is_not_entered() {
        let folder = tempfile::tempdir().unwrap();
        let (real, link) = (folder.path().join("real"), folder.path().join("link"));
        fs::create_dir(&real).unwrap();
        fs::write(real.join("a"), "content").unwrap();
        symlink(&real, &link).unwrap();

        assert!(open_in(&real, "a").is_ok());
        let error = open_in(&link, "a").expect_err("a link").to_string();
        assert!(error.starts_with("must be a regular file: "), "{error}");
    }
}
