//! The ranges of the pages of a blob.

use trestle_proto::blob::v1::PageRange;

use super::write::XmlWriter;

/// The response to a request for the ranges of pages. Azure has the last byte of a range, and not its length.
#[must_use]
pub fn write_page_ranges(ranges: &[PageRange], next_marker: &str) -> String {
    XmlWriter::document("PageList", |writer| {
        for range in ranges.iter().filter(|range| range.length > 0) {
            let name = if range.is_cleared { "ClearRange" } else { "PageRange" };
            writer.element(name, |writer| {
                writer.value("Start", &range.offset);
                let end = range.offset.saturating_add(range.length - 1);
                writer.value("End", &end);
            });
        }
        if !next_marker.is_empty() {
            writer.text("NextMarker", next_marker);
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_have_their_first_and_last_byte() {
        let range = |offset, length, is_cleared| PageRange { offset, length, is_cleared };

        let text = write_page_ranges(&[range(0, 512, false), range(1024, 1024, true)], "m");

        assert!(
            text.ends_with(
                "<PageList><PageRange><Start>0</Start><End>511</End></PageRange>\
                 <ClearRange><Start>1024</Start><End>2047</End></ClearRange>\
                 <NextMarker>m</NextMarker></PageList>"
            ),
            "{text}"
        );
        assert!(write_page_ranges(&[], "").ends_with("<PageList />"));
    }
}
