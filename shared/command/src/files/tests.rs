//! Files that commands read and write: kinds of targets, links, bounds and complete files.

use std::{io::Write as _, os::unix::fs::symlink};

use super::*;

fn folder() -> tempfile::TempDir {
    tempfile::tempdir().unwrap()
}

fn is_usage<T>(result: Result<T, CliError>, expected: &str) -> bool {
    matches!(result.err(), Some(CliError::Usage(text)) if text.contains(expected))
}

#[test]
fn a_target_is_standard_output_a_file_or_a_stream() {
    let folder = folder();
    let file = folder.path().join("file");

    assert_eq!(target(Path::new("-")).unwrap(), OutputTarget::Standard);
    assert_eq!(target(&file).unwrap(), OutputTarget::File(file.clone()));
    fs::write(&file, "x").unwrap();
    assert_eq!(target(&file).unwrap(), OutputTarget::File(file.clone()));
    assert_eq!(target(Path::new("/dev/null")).unwrap(), OutputTarget::Stream);
    assert!(is_usage(target(folder.path()), "is a folder"));
    assert!(is_usage(target(&file.join("below")), "cannot write"));
}

#[test]
fn the_target_of_a_chain_of_links_is_written_and_not_a_link() {
    let folder = folder();
    let at = |name: &str| folder.path().join(name);
    fs::create_dir(at("below")).unwrap();
    symlink("below/second", at("first")).unwrap();
    symlink("file", at("below/second")).unwrap();
    symlink(at("first"), at("absolute")).unwrap();
    let expected = OutputTarget::File(at("below/file"));

    for link in ["first", "below/second", "absolute"] {
        assert_eq!(target(&at(link)).unwrap(), expected, "dangling {link}");
    }
    fs::write(at("below/file"), "x").unwrap();
    for link in ["first", "below/second", "absolute"] {
        assert_eq!(target(&at(link)).unwrap(), expected, "{link}");
    }
}

#[test]
fn rejects_a_loop_of_links() {
    let folder = folder();
    let (one, two) = (folder.path().join("one"), folder.path().join("two"));
    symlink(&two, &one).unwrap();
    symlink(&one, &two).unwrap();

    assert!(is_usage(target(&one), "cannot write"));
    assert_eq!(without_links(&one), one, "an even number of links is followed, then no more");
}

#[test]
fn a_small_file_is_read_up_to_its_bound() {
    let folder = folder();
    let file = folder.path().join("file");
    fs::write(&file, "éab").unwrap();

    assert_eq!(read_small(&file, 4).unwrap(), "éab");
    assert!(is_usage(read_small(&file, 3), "must have at most 3 bytes"));
    fs::write(&file, b"\xff").unwrap();
    assert!(is_usage(read_small(&file, 3), "cannot read"));
    assert!(is_usage(read_small(&folder.path().join("missing"), 3), "missing"));
    fs::write(&file, "").unwrap();
    assert_eq!(read_small(&file, 0).unwrap(), "");
}

#[test]
fn only_a_file_can_be_resumed() {
    let folder = folder();
    let file = folder.path().join("file");
    fs::write(&file, "0123456789").unwrap();

    for pipe in ["-", "/dev/null"] {
        assert!(is_usage(InputFile::find(Path::new(pipe), true), "--resume needs a file"));
        let input = InputFile::find(Path::new(pipe), false).unwrap();
        assert_eq!((input.bytes, input.file()), (None, None), "{pipe}");
    }
    for resume in [false, true] {
        assert!(is_usage(
            InputFile::find(folder.path(), resume),
            "is a folder, not a file: file=`"
        ));
    }
    let input = InputFile::find(&file, true).unwrap();
    assert_eq!((input.bytes, input.file()), (Some(10), Some(file.as_path())));
    for (position, expected) in [(0, "0123456789"), (7, "789"), (10, ""), (11, "")] {
        let mut rest = String::new();
        input.open(position).unwrap().read_to_string(&mut rest).unwrap();
        assert_eq!(rest, expected, "from {position}");
    }
}

#[test]
fn a_suffix_comes_after_the_whole_name() {
    assert_eq!(with_suffix(Path::new("a/b.csv"), ".part"), Path::new("a/b.csv.part"));
    assert_eq!(with_suffix(Path::new("b"), "~"), Path::new("b~"));
}

#[test]
fn a_published_file_replaces_the_one_before() {
    let folder = folder();
    let (part, path) = (folder.path().join("part"), folder.path().join("path"));
    fs::write(&path, "old").unwrap();
    let mut file = File::create(&part).unwrap();
    file.write_all(b"new").unwrap();

    publish(&part, &file, &path).unwrap();

    assert_eq!(fs::read_to_string(&path).unwrap(), "new");
    assert!(!part.exists());
    let again = publish(&part, &file, &path).unwrap_err();
    assert!(matches!(again, CliError::File { .. }), "{again:?}");
    assert_eq!(fs::read_to_string(&path).unwrap(), "new");
}

#[test]
fn a_missing_file_is_removed_already_and_a_folder_is_not_removed() {
    let folder = folder();
    let file = folder.path().join("file");
    fs::write(&file, "x").unwrap();

    remove(&file).unwrap();
    remove(&file).unwrap();

    assert!(!file.exists());
    assert!(matches!(remove(folder.path()).unwrap_err(), CliError::File { .. }));
    assert!(folder.path().exists());
}

#[test]
fn a_closed_reader_of_a_copy_is_an_error_and_not_the_end() {
    let closed = unread(io::ErrorKind::BrokenPipe.into());
    assert_ne!(closed.kind(), io::ErrorKind::BrokenPipe);
    assert!(!CliError::file("cannot write")(closed).is_broken_pipe());

    let full = unread(io::ErrorKind::StorageFull.into());
    assert_eq!(full.kind(), io::ErrorKind::StorageFull);
}

#[test]
fn a_path_is_made_absolute_only_where_one_is_given() {
    let mut none = None;
    make_absolute(&mut none).unwrap();
    assert_eq!(none, None);

    let (mut relative, mut absolute) = (Some(PathBuf::from("a/b")), Some(PathBuf::from("/a/b")));
    make_absolute(&mut relative).unwrap();
    make_absolute(&mut absolute).unwrap();
    assert_eq!(relative, Some(std::env::current_dir().unwrap().join("a/b")));
    assert_eq!(absolute, Some(PathBuf::from("/a/b")));
}

#[test]
fn a_small_file_is_read_without_its_byte_order_mark() {
    let folder = folder();
    let file = folder.path().join("file");
    fs::write(&file, "\u{feff}{\u{feff}}").unwrap();

    assert_eq!(read_small(&file, 99).unwrap(), "{\u{feff}}");
    assert_eq!(read_exact(&file, 99).unwrap(), "\u{feff}{\u{feff}}");
}
