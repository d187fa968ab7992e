//! The parts that every page of a listing has: `EnumerationResults`.

use std::collections::HashMap;

use super::write::XmlWriter;

/// What a response repeats of its request; only what the request has.
#[derive(Debug, Clone, Copy, Default)]
pub struct Echo<'a> {
    /// The address of the account, as the client addressed it.
    pub endpoint: &'a str,
    /// The container, of a listing of blobs.
    pub container: Option<&'a str>,
    /// The prefix.
    pub prefix: Option<&'a str>,
    /// The continuation token.
    pub marker: Option<&'a str>,
    /// The page size.
    pub max_results: Option<u32>,
    /// The delimiter.
    pub delimiter: Option<&'a str>,
}

/// A page with these items.
pub(super) fn write_page(
    echo: &Echo<'_>,
    next_marker: &str,
    items: impl FnOnce(&mut XmlWriter),
) -> String {
    let attributes = [("ServiceEndpoint", Some(echo.endpoint)), ("ContainerName", echo.container)];
    XmlWriter::document_of("EnumerationResults", &attributes, |writer| {
        for (name, echoed) in [("Prefix", echo.prefix), ("Marker", echo.marker)] {
            if let Some(echoed) = echoed {
                writer.text(name, echoed);
            }
        }
        if let Some(max_results) = echo.max_results {
            writer.value("MaxResults", &max_results);
        }
        if let Some(delimiter) = echo.delimiter {
            writer.text("Delimiter", delimiter);
        }
        items(writer);
        writer.text("NextMarker", next_marker);
    })
}

/// Metadata by name, so that equal items give equal responses.
pub(super) fn write_metadata(writer: &mut XmlWriter, metadata: &HashMap<String, String>) {
    let mut metadata: Vec<_> = metadata.iter().collect();
    metadata.sort_unstable();
    writer.element("Metadata", |writer| {
        for (name, value) in metadata {
            writer.text(name, value);
        }
    });
}
