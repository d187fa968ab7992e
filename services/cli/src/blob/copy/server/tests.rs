//! The blobs that copies on the server make.

use super::*;

fn address(text: &str) -> BlobAddress {
    text.parse().expect("an address")
}

#[test]
fn a_url_gives_its_last_segment_to_a_folder() {
    let url = "https://example.com/2026/cat.png?size=1#top";
    for (to, expected) in [
        ("photos", "photos/cat.png"),
        ("photos/2026/", "photos/2026/cat.png"),
        ("photos/dog.png", "photos/dog.png"),
    ] {
        let copy = from_url(url.to_owned(), &address(to)).expect("a copy");
        assert_eq!(copy.to, address(expected), "{to}");
    }
    let without_name = from_url("https://example.com/".to_owned(), &address("photos"));
    assert!(matches!(without_name, Err(CliError::Usage(_))), "{without_name:?}");
}
