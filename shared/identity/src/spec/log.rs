//! The signatures of log streams: a token contains the name of the stream. A protocol of our own, so that exporters,
//! which set one header, can use it.

use super::{ResourceType, ServiceSpec, whole, without_empty};
use crate::{field_values::FieldValues, sas::Scope, shared_key::all_headers};

/// The first version of a token of a stream. Much older ones sign a resource without its service, so that a token of a
/// queue would be one of the stream with its name.
const SINCE: &str = "2015-04-05";
/// Most characters of the name of a stream.
const NAME_CHARS_MAX: usize = 128;

/// Streams of log records.
pub const LOG: ServiceSpec = ServiceSpec {
    name: "log",
    // A letter that Azure does not use: a token that was given away for blobs does not open streams.
    letter: 'l',
    is_served: true,
    permissions: &[('r', "read"), ('a', "append"), ('c', "create")],
    orders_permissions: false,
    name_field: Some("ln"),
    name_header: None,
    is_name,
    ignores_case: false,
    has_paths: false,
    container: "log stream",
    objects: "records",
    resource_types: &[ResourceType { code: "", since: SINCE, name_in: whole, covers_below: false }],
    fields: &[],
    delegation: None,
    normalize: without_empty,
    describe: |_| String::new(),
    signed_texts: all_headers::texts,
    ambiguity: all_headers::ambiguity,
};

impl Scope {
    /// A stream of log records.
    #[must_use]
    pub fn of_log(name: impl Into<String>) -> Self {
        Self::of_resource(&LOG, name, FieldValues::default())
    }
}

/// The rule of the service: lower-case ASCII letters, digits, `.`, `_` and `-`, with a letter or digit first.
fn is_name(text: &str) -> bool {
    let is_plain = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit();
    text.len() <= NAME_CHARS_MAX
        && text.bytes().next().is_some_and(is_plain)
        && text.bytes().all(|b| is_plain(b) || matches!(b, b'.' | b'_' | b'-'))
}
