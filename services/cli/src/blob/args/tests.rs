//! Values of blob commands, and the resource that a signature is for.

use clap::Parser;

use super::*;

#[derive(Debug, Parser)]
struct BlobTestCli {
    #[command(subcommand)]
    command: BlobCommand,
}

fn path(line: &str) -> Option<String> {
    let words = std::iter::once("blob").chain(line.split(' '));
    BlobTestCli::try_parse_from(words).unwrap().command.path()
}

#[test]
fn days_are_positive_or_off() {
    for (text, expected) in [("off", 0), ("1", 1), ("365", 365)] {
        assert_eq!(days_or_off(text), Ok(expected), "{text}");
    }
    for text in ["", "0", "-1", "366", "65536", "1.5", "OFF", "1d", " 1"] {
        let rule = "must be a whole number, 1 to 365, or `off`";
        assert_eq!(days_or_off(text), Err(rule.to_owned()), "{text}");
    }
    assert_eq!((on_or_off("on"), on_or_off("off")), (Ok(true), Ok(false)));
    assert!(on_or_off("true").is_err() && on_or_off("").is_err());
}

#[test]
fn a_tag_ends_its_key_at_the_first_equals_sign() {
    let pair = |key: &str, value: &str| Ok((key.to_owned(), value.to_owned()));

    assert_eq!(tag("a=b=c"), pair("a", "b=c"));
    assert_eq!(tag("a="), pair("a", ""));
    assert!(tag("a").is_err());
}

#[test]
fn a_signature_is_for_the_container_or_the_blob_of_the_command() {
    for (line, expected) in [
        ("container list", None),
        ("container stat box", Some("box")),
        ("cat box/a/b", Some("box/a/b")),
        ("cat blob://box/100%é", Some("box/100%25%C3%A9")),
        ("find x=1", None),
        ("cp file blob://box/name", Some("box/name")),
        ("cp blob://box/name file", Some("box/name")),
        ("cp blob://from/a blob://to/b", Some("to/b")),
    ] {
        assert_eq!(path(line).as_deref(), expected, "{line}");
    }
}
