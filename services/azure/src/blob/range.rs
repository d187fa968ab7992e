//! Ranges of bytes in headers.

use http::{HeaderName, header};
use trestle_model::fault::Fault;
use trestle_proto::blob::v1::ByteRange;

use super::header::{self as names, X_MS_RANGE};
use crate::head::RequestHead;

/// The range of a read. A malformed one is ignored, as HTTP has it.
pub(super) fn of_read(head: &RequestHead) -> Option<ByteRange> {
    stated(head).and_then(|(_, text)| parse(text))
}

/// The range of a write, which must be well-formed and closed.
///
/// # Errors
/// No range, or one of another form.
pub(super) fn of_write(head: &RequestHead) -> Result<ByteRange, Fault> {
    let (name, text) = stated(head).ok_or_else(|| names::required(&X_MS_RANGE))?;
    let range = parse(text).filter(|range| range.length.is_some());
    range.ok_or_else(|| names::invalid(&name, text, "must be such as bytes=0-511"))
}

/// The range in a header; none where it is absent.
///
/// # Errors
/// Another form than that of a range.
pub(super) fn of_header(head: &RequestHead, name: &HeaderName) -> Result<Option<ByteRange>, Fault> {
    let Some(text) = names::text(head, name) else { return Ok(None) };
    let rule = "must be such as bytes=0-511 or bytes=512-";
    parse(text).map(Some).ok_or_else(|| names::invalid(name, text, rule))
}

/// The range of a request: that of the header of Azure comes before that of HTTP.
fn stated(head: &RequestHead) -> Option<(HeaderName, &str)> {
    let names = [X_MS_RANGE, header::RANGE];
    names.into_iter().find_map(|name| Some((name.clone(), names::text(head, &name)?)))
}

/// Parses `bytes=S-` and `bytes=S-E`, the only forms of Azure.
fn parse(text: &str) -> Option<ByteRange> {
    let (start, end) = text.strip_prefix("bytes=")?.split_once('-')?;
    let number = |text: &str| -> Option<u64> {
        let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        text.parse().ok().filter(|_| is_number)
    };
    let offset = number(start)?;
    let length = match end {
        "" => None,
        end => Some(number(end)?.checked_sub(offset)?.checked_add(1)?),
    };
    Some(ByteRange { offset, length })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_of_a_range_are_read_and_no_other() {
        let range = |offset, length| Some(ByteRange { offset, length });
        for (text, expected) in [
            ("bytes=0-", range(0, None)),
            ("bytes=5-5", range(5, Some(1))),
            ("bytes=0-999", range(0, Some(1000))),
            ("bytes=1-18446744073709551615", range(1, Some(u64::MAX))),
            ("bytes=0-18446744073709551615", None),
            ("bytes=-5", None),
            ("bytes=5-4", None),
            ("bytes=0-1,3-4", None),
            ("bytes=a-b", None),
            ("bytes=+1-2", None),
            ("bytes 0-1", None),
            ("0-1", None),
            ("", None),
        ] {
            assert_eq!(parse(text), expected, "{text}");
        }
    }
}
