use std::io::Write as _;

use super::*;

fn sections() -> Vec<ArchiveSection> {
    let section = |name: &str, bytes: &[u8]| ArchiveSection {
        name: name.as_bytes().to_vec(),
        bytes: bytes.to_vec(),
    };
    vec![section("first", b"one"), section("empty", b""), section("last", &[7; 1000])]
}

fn has_whole_end_of(archive: &[u8]) -> bool {
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(archive).unwrap();
    has_whole_end(&file).unwrap()
}

#[test]
fn an_archive_is_read_as_it_was_written() {
    let archive = write(&sections());

    assert_eq!(read(&archive), Some(sections()));
    assert!(has_whole_end_of(&archive));
}

#[test]
fn an_archive_that_is_cut_anywhere_is_not_whole() {
    let archive = write(&sections());

    for end in (0..archive.len()).step_by(7).chain([archive.len() - 1]) {
        assert_eq!(read(&archive[..end]), None, "{end}");
        assert!(!has_whole_end_of(&archive[..end]), "{end}");
    }
}

#[test]
fn a_changed_end_is_detected_and_changed_content_is_not_its_business() {
    let archive = write(&sections());
    let toc = archive.len() - 100;

    for at in toc..archive.len() {
        let mut changed = archive.clone();
        changed[at] ^= 1;
        assert_eq!(read(&changed), None, "{at}");
        assert!(!has_whole_end_of(&changed), "{at}");
    }
    let mut changed = archive;
    changed[1] ^= 1;
    assert!(has_whole_end_of(&changed));
}
