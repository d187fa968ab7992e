//! Sizes with a unit, such as `128MiB`, as numbers of bytes.

use bytesize::ByteSize;
use config::{Value, ValueKind};

/// Whether a key is a number of bytes, or of bytes a second.
pub(super) fn is_size(key: &str) -> bool {
    let name = key.rsplit('.').next().unwrap_or(key);
    name.split('_').any(|word| word == "bytes" || word == "rate")
}

/// Replaces texts of sizes with a unit by the number of bytes, where the default is a number or there is none.
pub(super) fn read_sizes(key: &str, default: Option<&Value>, value: &mut Value) {
    use ValueKind as Kind;
    match (&mut value.kind, default.map(|default| &default.kind)) {
        (Kind::Table(values), defaults @ (Some(Kind::Table(_)) | None)) => {
            for (name, value) in values {
                let default = match defaults {
                    Some(Kind::Table(defaults)) => defaults.get(name),
                    _ => None,
                };
                read_sizes(name, default, value);
            }
        }
        (Kind::String(text), Some(Kind::I64(_) | Kind::U64(_)) | None) if is_size(key) => {
            if let Some(bytes) = bytes_of(text) {
                value.kind = Kind::U64(bytes);
            }
        }
        _ => {}
    }
}

/// The bytes of a size with a unit. A number alone is left to the type of the setting.
fn bytes_of(text: &str) -> Option<u64> {
    let has_unit = text.trim().ends_with(|last: char| last.is_ascii_alphabetic());
    // A fraction of a byte is not a size, whatever the parser makes of it.
    let is_size = text.trim().starts_with(|first: char| first.is_ascii_digit());
    let size = text.trim().parse::<ByteSize>().ok().filter(|_| has_unit && is_size)?;
    // The parser saturates; what is beyond 64 bits is not the size that is written.
    Some(size.as_u64()).filter(|bytes| *bytes < u64::MAX)
}

/// A number of bytes as a size of the greatest unit that it is a multiple of, as [`bytes_of`] reads it.
pub(super) fn with_unit(bytes: u64) -> String {
    let units = [("TiB", 40), ("GiB", 30), ("MiB", 20), ("KiB", 10)];
    let unit = units.into_iter().find(|(_, shift)| bytes > 0 && bytes.is_multiple_of(1 << shift));
    unit.map_or_else(|| bytes.to_string(), |(unit, shift)| format!("{}{unit}", bytes >> shift))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_size_that_is_shown_is_read_as_the_same_number() {
        for (bytes, text) in [(32 << 20, "32MiB"), (5 << 40, "5TiB"), (1 << 10, "1KiB")] {
            assert_eq!(with_unit(bytes), text);
            assert_eq!(bytes_of(text), Some(bytes));
        }
        assert_eq!((with_unit(0), with_unit(1000)), ("0".to_owned(), "1000".to_owned()));
    }

    #[test]
    fn sizes_are_read_where_the_default_is_a_number_or_absent_and_nowhere_else() {
        let table = |fields: &[(&str, Value)]| {
            let fields = fields.iter().map(|(name, value)| ((*name).to_owned(), value.clone()));
            Value::from(ValueKind::Table(fields.collect()))
        };
        let size = || Value::from("2KiB");
        let defaults = table(&[
            ("cache_bytes", Value::from(5_u64)),
            ("bytes_of", Value::from("a text")),
            ("calls_max", Value::from(5_u64)),
        ]);
        let account = table(&[("stored_bytes_max", size()), ("tables_max", size())]);
        let mut set = table(&[
            ("cache_bytes", size()),
            ("bytes_of", size()),
            ("calls_max", size()),
            ("burst_bytes", size()),
            ("accounts", table(&[("acme", account)])),
        ]);

        read_sizes("limits", Some(&defaults), &mut set);

        let number = || Value::from(2048_u64);
        let account = table(&[("stored_bytes_max", number()), ("tables_max", size())]);
        let expected = table(&[
            ("cache_bytes", number()),
            ("bytes_of", size()),
            ("calls_max", size()),
            ("burst_bytes", number()),
            ("accounts", table(&[("acme", account)])),
        ]);
        assert_eq!(set, expected);
    }

    #[test]
    fn a_size_has_a_unit_of_two_or_of_ten() {
        for (text, bytes) in [
            ("128MiB", Some(128 << 20)),
            ("1 GiB", Some(1 << 30)),
            ("1.5KiB", Some(1536)),
            ("2MB", Some(2_000_000)),
            ("64kib", Some(65_536)),
            ("128", None),
            ("-1MiB", None),
            ("MiB", None),
            ("3 apples", None),
            ("99999999999999999999GiB", None),
            ("16777216TiB", None),
            ("16777215TiB", Some(u64::MAX - (1 << 40) + 1)),
        ] {
            assert_eq!(bytes_of(text), bytes, "{text}");
        }
    }
}
