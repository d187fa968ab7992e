//! Names of properties: the shape of a C# identifier, by Unicode category.

use trestle_filter::{is_name_part, is_name_start};
use trestle_model::fault::{Reason, quoted};
use trestle_model::limits;

use crate::value::utf16_len;

/// Names of what every entity has; no property may take them.
const RESERVED: [&str; 3] = ["PartitionKey", "RowKey", "Timestamp"];

/// Checks the name of a custom property.
pub(super) fn check(name: &str) -> Result<(), (Reason, String)> {
    let (units, max) = (utf16_len(name), limits::PROPERTY_NAME_UTF16_UNITS_MAX);
    if units > max {
        let text = format!("property name is too long: utf16_units=`{units}`, max=`{max}`");
        return Err((Reason::PropertyNameTooLong, text));
    }
    let invalid =
        |rule: &str| Err((Reason::PropertyNameInvalid, format!("{rule}: name=`{}`", quoted(name))));
    if RESERVED.contains(&name) {
        return invalid("property name is reserved");
    }
    let mut chars = name.chars();
    if !chars.next().is_some_and(is_name_start) || !chars.all(is_name_part) {
        return invalid("property name is not a letter or `_`, then letters, digits, marks or `_`");
    }
    Ok(())
}
