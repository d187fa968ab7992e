//! Answers in XML.

use serde::de::DeserializeOwned;

/// Reads an answer; the error has nothing of its content.
pub(super) fn parse<T: DeserializeOwned>(xml: &[u8]) -> Result<T, String> {
    let text = str::from_utf8(xml).map_err(|_| "is not UTF-8".to_owned())?;
    let text = text.trim_start_matches('\u{feff}');
    if text.contains("<!DOCTYPE") {
        return Err("has a document type".to_owned());
    }
    quick_xml::de::from_str(text).map_err(|_| "is malformed".to_owned())
}
