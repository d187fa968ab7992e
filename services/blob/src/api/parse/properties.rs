//! HTTP properties, and what an upload states of its data.

#[cfg(test)]
mod tests;

use bytes::Bytes;
use trestle_model::fault::{Fault, Reason, quoted};
use trestle_model::limits::HTTP_PROPERTY_BYTES_MAX;
use trestle_proto::blob::v1 as proto;

use super::RequestParser;
use crate::{checksum::Digests, record::ContentProperties};

/// The media type of a blob whose client states none.
const DEFAULT_TYPE: &str = "application/octet-stream";

impl RequestParser {
    /// HTTP properties.
    pub(in crate::api) fn properties(
        &mut self,
        properties: Option<proto::HttpProperties>,
    ) -> ContentProperties {
        let properties = properties.unwrap_or_default();
        let md5 = self.md5(&properties.content_md5, "properties.content_md5");
        let proto::HttpProperties { content_type, content_encoding, content_language, .. } =
            properties;
        let is_absent = content_type.is_empty();
        let parsed = ContentProperties {
            content_type: if is_absent { DEFAULT_TYPE.to_owned() } else { content_type },
            encoding: content_encoding,
            language: content_language,
            disposition: properties.content_disposition,
            cache_control: properties.cache_control,
            md5,
        };
        self.check_properties(&parsed, "properties");
        parsed
    }

    /// Checks the texts of HTTP properties in a field.
    pub(in crate::api) fn check_properties(&mut self, properties: &ContentProperties, field: &str) {
        let ContentProperties { content_type, encoding, language, .. } = properties;
        for (name, value) in [
            ("content_type", content_type),
            ("content_encoding", encoding),
            ("content_language", language),
            ("content_disposition", &properties.disposition),
            ("cache_control", &properties.cache_control),
        ] {
            let is_printable = value.bytes().all(|byte| (b' '..=b'~').contains(&byte));
            if value.len() > HTTP_PROPERTY_BYTES_MAX || !is_printable {
                let max = HTTP_PROPERTY_BYTES_MAX;
                let rule = format!("must be at most {max} bytes of printable ASCII");
                let rule = format!("{rule}: value=`{}`", quoted(value));
                self.push(Reason::InvalidHeaderValue, &format!("{field}.{name}"), rule);
            }
        }
    }

    /// An MD5; none if it is empty or rejected.
    pub(in crate::api) fn md5(&mut self, md5: &Bytes, field: &str) -> Option<[u8; 16]> {
        if md5.is_empty() {
            return None;
        }
        let parsed = md5.as_ref().try_into().ok();
        if parsed.is_none() {
            let rule = format!("must have 16 bytes: bytes=`{}`", md5.len());
            self.push(Reason::InvalidMd5, field, rule);
        }
        parsed
    }
}

/// Whether the data of an upload is what the client states.
///
/// # Errors
/// The first difference.
pub(in crate::api) fn check_digests(
    digests: &Digests,
    stated: &proto::UploadFinish,
    (of_finish, of_properties): (Option<[u8; 16]>, Option<[u8; 16]>),
) -> Result<(), Fault> {
    let differs = |reason, field: &str, what: &str| {
        let rule = format!("differs from that of the data: data=`{what}`");
        Err(Fault::violation(reason, field, rule))
    };
    if stated.size.is_some_and(|size| size != digests.size) {
        return differs(Reason::InvalidInput, "finish.size", &digests.size.to_string());
    }
    if stated.crc64.is_some_and(|crc64| crc64 != digests.crc64) {
        return differs(Reason::Crc64Mismatch, "finish.crc64", &format!("{:#x}", digests.crc64));
    }
    for (md5, field) in [(of_finish, "finish.md5"), (of_properties, "spec.properties.content_md5")]
    {
        if md5.is_some() && md5 != digests.md5 {
            let hex = |md5: [u8; 16]| md5.map(|byte| format!("{byte:02x}")).concat();
            return differs(Reason::Md5Mismatch, field, &digests.md5.map(hex).unwrap_or_default());
        }
    }
    Ok(())
}
