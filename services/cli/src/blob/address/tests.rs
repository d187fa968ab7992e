use super::*;

fn address(container: &str, name: &str) -> BlobAddress {
    BlobAddress { container: container.to_owned(), name: name.to_owned() }
}

#[test]
fn an_address_has_a_container_and_perhaps_a_name() {
    for (text, container, name) in [
        ("photos", "photos", ""),
        ("photos/", "photos", ""),
        ("photos/2026/cat.png", "photos", "2026/cat.png"),
        ("blob://photos/a b", "photos", "a b"),
        ("photos//a", "photos", "/a"),
    ] {
        assert_eq!(text.parse(), Ok(address(container, name)), "{text}");
    }
    for rejected in ["", "/", "/cat.png", "blob://", "blob:///cat.png"] {
        assert!(rejected.parse::<BlobAddress>().is_err(), "{rejected}");
    }
}

#[test]
fn only_the_scheme_makes_a_side_of_a_copy_remote() {
    let remote = CopySide::Remote(address("photos", "cat.png"));
    assert_eq!("blob://photos/cat.png".parse(), Ok(remote));
    for local in ["photos/cat.png", "./blob:", "/blob://photos"] {
        assert_eq!(local.parse(), Ok(CopySide::Local(local.into())), "{local}");
    }
    assert!("blob://".parse::<CopySide>().is_err());
}

#[test]
fn a_container_is_no_blob() {
    assert!(matches!(address("photos", "").of_blob(), Err(CliError::Usage(_))));
    assert!(address("photos", "a").of_blob().is_ok());
}

#[test]
fn a_folder_is_a_prefix_that_ends_with_a_slash() {
    for (name, prefix) in [("", ""), ("a", "a/"), ("a/", "a/"), ("a/b", "a/b/")] {
        assert_eq!(address("c", name).folder().name, prefix, "{name}");
    }
}

#[test]
fn the_header_has_visible_ascii_only() {
    assert_eq!(address("c", "a b%é").header(), "c/a%20b%25%C3%A9");
}

#[test]
fn a_blob_is_never_written_outside_of_the_folder() {
    assert_eq!(relative_path("a/b c/..d").unwrap(), PathBuf::from("a/b c/..d"));
    for outside in ["", "/etc/passwd", "..", "../a", "a/../../b", "a//b", "a/", "./a", "a\0b"] {
        assert!(matches!(relative_path(outside), Err(CliError::Usage(_))), "{outside}");
    }
}
