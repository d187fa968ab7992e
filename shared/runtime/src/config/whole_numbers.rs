//! Integer settings whose values are not integers.

use config::{Value, ValueKind};

use super::{redacted::shown, sizes::is_size};

/// Collects values of integer settings that are not integers: the crate would round or truncate them. A setting without
/// a default is an integer too, since all others have one.
pub(super) fn reject_fractions(
    key: &str,
    default: Option<&Value>,
    value: &Value,
    problems: &mut Vec<String>,
) {
    use ValueKind as Kind;
    if let Kind::Table(table) = &value.kind {
        for (name, value) in table {
            let default = default.and_then(|default| match &default.kind {
                Kind::Table(table) => table.get(name),
                _ => None,
            });
            let key = if key.is_empty() { name.clone() } else { format!("{key}.{name}") };
            reject_fractions(&key, default, value, problems);
        }
        return;
    }
    let is_whole =
        |kind: &Kind| matches!(kind, Kind::I64(_) | Kind::U64(_) | Kind::I128(_) | Kind::U128(_));
    let fits = match (&value.kind, default.map(|default| &default.kind)) {
        (Kind::Float(_), None) => false,
        (Kind::I64(number), Some(kind)) if *number < 0 => !is_whole(kind),
        (Kind::String(text), Some(kind)) if is_whole(kind) => text.trim().parse::<u64>().is_ok(),
        (Kind::Float(_) | Kind::Boolean(_), Some(kind)) => !is_whole(kind),
        _ => true,
    };
    if !fits {
        let size = if is_size(key) { ", or a size such as 128MiB" } else { "" };
        let rule = format!("must be a whole number, 0 to {}{size}", u64::MAX);
        problems.push(format!("{key}: {rule}{}", shown(&value.to_string())));
    }
}
