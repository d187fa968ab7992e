//! Values of OpenTelemetry as JSON text, in which segments have them: exact in both directions.
//!
//! Whole numbers are JSON numbers without, doubles with a `.` or an exponent. What JSON lacks is an object with one
//! member: `{"$bytes":"base64"}`, `{"$double":"NaN"}`. A key of the user that starts with `$` has one more in front.
//! An absent value is `null`.

mod find;
mod read;
mod write;

#[cfg(test)]
mod tests;

pub(crate) use find::{find_member, scope_name};
pub(crate) use read::{MalformedJson, read_entries, read_scope};
pub(crate) use write::{write_entry, write_object, write_scope};

/// The member of an object that is bytes.
const BYTES_KEY: &str = "$bytes";
/// The member of an object that is a double without a form in JSON.
const DOUBLE_KEY: &str = "$double";
/// What precedes a key of the user that starts with it.
const ESCAPE: char = '$';
/// The members of a scope.
const SCOPE_NAME: &str = "name";
const SCOPE_VERSION: &str = "version";
const SCOPE_ATTRIBUTES: &str = "attributes";
const SCOPE_DROPPED: &str = "dropped_attributes_count";
