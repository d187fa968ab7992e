//! The names of types on the command line, of properties and of attributes alike.

use trestle_model::edm::EdmType;

/// Each type with its names; the first is shown.
const NAMES: [(EdmType, &[&str]); 8] = [
    (EdmType::String, &["string"]),
    (EdmType::Int32, &["int32"]),
    (EdmType::Int64, &["int64"]),
    (EdmType::Double, &["double"]),
    (EdmType::Boolean, &["boolean", "bool"]),
    (EdmType::DateTime, &["datetime"]),
    (EdmType::Guid, &["guid"]),
    (EdmType::Binary, &["binary"]),
];

/// The type of a name in any case, with or without `Edm.`, out of those that `is_accepted`; else the rule.
///
/// # Errors
/// The rule, with the accepted names.
pub fn parse(name: &str, is_accepted: impl Fn(EdmType) -> bool) -> Result<EdmType, String> {
    let short = name.get(..4).filter(|edm| edm.eq_ignore_ascii_case("Edm."));
    let short = short.and_then(|_| name.get(4..)).unwrap_or(name);
    let mut accepted = NAMES.iter().filter(|(edm, _)| is_accepted(*edm));
    let has_name = |names: &[&str]| names.iter().any(|known| known.eq_ignore_ascii_case(short));
    let found = accepted.clone().find(|(_, names)| has_name(names));
    found.map(|(edm, _)| *edm).ok_or_else(|| {
        let shown: Vec<_> =
            accepted.by_ref().filter_map(|(_, names)| names.first()).copied().collect();
        format!("unknown type `{name}`: must be one of {}", shown.join(", "))
    })
}

/// The name of a type that is shown.
pub fn name_of(edm: EdmType) -> &'static str {
    let found = NAMES.iter().find(|(known, _)| *known == edm);
    found.and_then(|(_, names)| names.first()).copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_of_a_type_is_accepted_in_any_case_with_and_without_its_prefix() {
        for (edm, names) in NAMES {
            assert_eq!(parse(name_of(edm), |_| true), Ok(edm));
            for name in names {
                for text in [name.to_uppercase(), format!("Edm.{name}"), (*name).to_owned()] {
                    assert_eq!(parse(&text, |_| true), Ok(edm), "{text}");
                }
            }
        }
    }

    #[test]
    fn an_unknown_or_unaccepted_type_is_rejected_with_those_that_are_accepted() {
        let is_number = |edm| matches!(edm, EdmType::Int32 | EdmType::Double);
        for name in ["string", "text", "", "Edm.", "é"] {
            let rule = format!("unknown type `{name}`: must be one of int32, double");
            assert_eq!(parse(name, is_number), Err(rule));
        }
    }
}
