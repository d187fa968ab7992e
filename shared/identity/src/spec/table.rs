//! The signatures of tables: a token contains the name of the table and a range of keys.

use trestle_model::{fault::Violations, name::TableName};

use super::{ResourceType, ServiceSpec, bound, whole};
use crate::{
    caller::KeyRange,
    field_values::FieldValues,
    sas::{Malformed, OLDEST_VERSION, Scope},
    shared_key::table,
};

/// Tables.
pub const TABLE: ServiceSpec = ServiceSpec {
    name: "table",
    letter: 't',
    is_served: true,
    permissions: &[('r', "read"), ('a', "add"), ('u', "update"), ('d', "delete")],
    orders_permissions: true,
    name_field: Some("tn"),
    name_header: None,
    is_name,
    ignores_case: true,
    has_paths: false,
    container: "table",
    objects: "entities",
    resource_types: &[ResourceType {
        code: "",
        since: OLDEST_VERSION,
        name_in: whole,
        covers_below: false,
    }],
    fields: &[bound("spk"), bound("srk"), bound("epk"), bound("erk")],
    delegation: None,
    normalize,
    describe,
    signed_texts: table::texts,
    // Of the query it signs one parameter, and of the headers none by its name.
    ambiguity: |_| None,
};

impl Scope {
    /// The entities of a table in a range of keys.
    #[must_use]
    pub fn of_table(name: impl Into<String>, range: &KeyRange) -> Self {
        Self::of_resource(&TABLE, name, range.to_fields())
    }
}

fn is_name(text: &str) -> bool {
    TableName::parse(text.to_owned(), "tn", &mut Violations::default()).is_some()
}

/// The rules of a key range. A signature cannot distinguish an empty field from an absent one: if
/// the two have different meanings, the empty one is rejected, or the holder could remove it for a
/// wider range.
fn normalize(fields: &mut FieldValues) -> Result<(), Malformed> {
    if fields.get("srk") == Some("") {
        fields.remove("srk");
    }
    // The empty key is the lowest one: as a start it bounds nothing, so it is read as absent,
    // which is how it is signed. Only with a row key it means the first partition.
    if fields.get("spk") == Some("") && fields.get("srk").is_none() {
        fields.remove("spk");
    }
    let has = |name: &str| fields.get(name).is_some();
    let is_empty = |name: &str| fields.get(name) == Some("");
    let fails = |field, rule: &str| Err(Malformed::new(field, rule));
    if has("srk") && !has("spk") {
        fails("srk", "needs spk")
    } else if has("erk") && !has("epk") {
        fails("erk", "needs epk")
    } else if is_empty("erk") {
        fails("erk", "must not be empty: its signature would be that of a token without it")
    } else if is_empty("epk") && !has("erk") {
        fails("epk", "must not be empty: its signature would be that of a token without it")
    } else {
        Ok(())
    }
}

fn describe(fields: &FieldValues) -> String {
    let end = |partition: &str, row: &str, word: &str| {
        let partition = fields.get(partition)?;
        let row = fields.get(row).map(|row| format!(" / `{row}`")).unwrap_or_default();
        Some(format!(" {word} `{partition}`{row}"))
    };
    let ends = [end("spk", "srk", "from"), end("epk", "erk", "up to")];
    ends.into_iter().flatten().collect()
}
