//! Lines of files: their ends, their bound, and their positions.

use proptest::prelude::*;

use super::*;

fn lines(text: &[u8], bytes_max: u64) -> Lines {
    Lines::new(Box::new(io::Cursor::new(text.to_vec())), FilePosition::default(), bytes_max)
}

/// The lines from a reader on, each with the position after it.
fn rest(mut read: Lines) -> Vec<(Vec<u8>, FilePosition)> {
    std::iter::from_fn(|| {
        let line = read.read_line().unwrap().map(<[u8]>::to_vec)?;
        Some((line, read.at))
    })
    .collect()
}

#[test]
fn lines_end_at_line_breaks_and_at_the_bound() {
    let mut read = lines(b"a\r\nb\n\nc", 3);
    for (line, byte) in [("a", 3), ("b", 5), ("", 6), ("c", 7)] {
        assert_eq!(read.read_line().unwrap(), Some(line.as_bytes()));
        assert_eq!(read.at.byte, byte);
    }
    assert_eq!(read.read_line().unwrap(), None);
    assert_eq!(read.at.line, 4);
    assert_eq!(lines(b"ab\n", 3).read_line().unwrap(), Some(&b"ab"[..]));
    assert!(lines(b"abc\n", 3).read_line().unwrap_err().to_string().contains("longer than 3"));
}

#[test]
fn one_carriage_return_is_part_of_the_line_break() {
    let found = rest(lines(b"a\r\r\nb\rc\r", 9));

    let found: Vec<_> = found.iter().map(|(line, _)| line.as_slice()).collect();
    assert_eq!(found, [&b"a\r"[..], b"b\rc"]);
}

#[test]
fn a_line_that_is_too_long_is_skipped_with_its_number() {
    let mut read = lines(b"a\nlonger\nb\nlong\r\nlast and long", 3);
    let mut found = Vec::new();
    while let Some(line) = read.read_line_or_skip().unwrap() {
        let line = line.map(|line| String::from_utf8_lossy(line).into_owned());
        let line = line.unwrap_or_else(|error| error.to_string());
        found.push((line, read.at.line, read.at.byte));
    }
    let too_long = || "row is longer than 3 bytes".to_owned();
    let expected = [
        ("a".to_owned(), 1, 2),
        (too_long(), 2, 9),
        ("b".to_owned(), 3, 11),
        (too_long(), 4, 17),
        (too_long(), 5, 30),
    ];
    assert_eq!(found, expected);
}

proptest! {
    #[test]
    fn every_byte_is_in_one_line_and_reading_resumes_at_each(
        text in proptest::collection::vec(
            prop_oneof![Just(b'\n'), Just(b'\r'), Just(b'a'), any::<u8>()],
            0..60,
        ),
    ) {
        let whole = rest(lines(&text, 60));

        let expected = text.split_inclusive(|byte| *byte == b'\n');
        let expected = expected.map(|line| {
            let line = line.strip_suffix(b"\n").unwrap_or(line);
            line.strip_suffix(b"\r").unwrap_or(line).to_vec()
        });
        let found: Vec<_> = whole.iter().map(|(line, _)| line.clone()).collect();
        prop_assert_eq!(found, expected.collect::<Vec<_>>());
        for (number, (_, at)) in whole.iter().enumerate() {
            prop_assert_eq!(at.line, u64::try_from(number + 1).unwrap());
            let from = text[usize::try_from(at.byte).unwrap()..].to_vec();
            let resumed = Lines::new(Box::new(io::Cursor::new(from)), *at, 60);
            prop_assert_eq!(rest(resumed), whole[number + 1..].to_vec());
        }
        let end = whole.last().map_or(0, |(_, at)| at.byte);
        prop_assert_eq!(end, u64::try_from(text.len()).unwrap());
    }

    #[test]
    fn a_line_is_read_up_to_its_bound(length in 1..40_usize, bytes_max in 1..40_u64) {
        let text = [vec![b'x'; length - 1], vec![b'\n']].concat();

        let is_read = lines(&text, bytes_max).read_line().is_ok();

        prop_assert_eq!(is_read, u64::try_from(length).unwrap() <= bytes_max);
    }
}

#[test]
fn a_byte_order_mark_is_skipped_at_the_beginning_only() {
    let found = rest(lines(b"\xef\xbb\xbfa\n\xef\xbb\xbfb", 9));

    let ends: Vec<_> = found.iter().map(|(line, at)| (line.as_slice(), at.byte)).collect();
    assert_eq!(ends, [(&b"a"[..], 5), (b"\xef\xbb\xbfb", 9)]);
}
