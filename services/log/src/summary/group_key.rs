//! The keys of groups: the beginning of an interval and the values of properties, as bytes that are equal where they
//! are. A value has a byte of its type, and a text its length before it.

use std::borrow::Cow;

use crate::row::ValueRef;

const ABSENT: u8 = 0;
const TEXT: u8 = 1;
const WHOLE: u8 = 2;
const DOUBLE: u8 = 3;
const TRUTH: u8 = 4;
const BYTES: u8 = 5;

/// Begins a key with the beginning of its interval.
pub(super) fn begin(key: &mut Vec<u8>, start: u64) {
    key.clear();
    key.extend(start.to_be_bytes());
}

/// Adds a value, or that there is none.
pub(super) fn push(key: &mut Vec<u8>, value: Option<ValueRef<'_>>) {
    let mut put = |kind: u8, bytes: &[u8]| {
        key.push(kind);
        key.extend(bytes);
    };
    match value {
        None => put(ABSENT, &[]),
        Some(ValueRef::Int(number)) => put(WHOLE, &number.to_be_bytes()),
        Some(ValueRef::Double(number)) => put(DOUBLE, &number.to_bits().to_be_bytes()),
        Some(ValueRef::Bool(truth)) => put(TRUTH, &[u8::from(truth)]),
        Some(ValueRef::Str(text)) => {
            put(TEXT, &(text.len() as u64).to_be_bytes());
            key.extend(text.as_bytes());
        }
        Some(ValueRef::Bytes(bytes)) => {
            put(BYTES, &(bytes.len() as u64).to_be_bytes());
            key.extend(bytes.as_ref());
        }
    }
}

/// The beginning of the interval and the values of a key. Bytes that are no key have fewer.
pub(super) fn parse(key: &[u8]) -> (u64, Vec<Option<ValueRef<'_>>>) {
    let (start, mut rest) = key.split_first_chunk().unwrap_or((&[0; 8], &[]));
    let mut values = Vec::new();
    while let Some((value, behind)) = split_value(rest) {
        values.push(value);
        rest = behind;
    }
    (u64::from_be_bytes(*start), values)
}

fn split_value(key: &[u8]) -> Option<(Option<ValueRef<'_>>, &[u8])> {
    let (kind, rest) = key.split_first()?;
    let number =
        || rest.split_first_chunk().map(|(bytes, rest)| (u64::from_be_bytes(*bytes), rest));
    Some(match *kind {
        WHOLE => number().map(|(bits, rest)| (Some(ValueRef::Int(bits.cast_signed())), rest))?,
        DOUBLE => {
            number().map(|(bits, rest)| (Some(ValueRef::Double(f64::from_bits(bits))), rest))?
        }
        TRUTH => {
            rest.split_first().map(|(truth, rest)| (Some(ValueRef::Bool(*truth != 0)), rest))?
        }
        TEXT | BYTES => {
            let (length, rest) = number()?;
            let (bytes, rest) = rest.split_at_checked(usize::try_from(length).ok()?)?;
            let value = match *kind {
                TEXT => ValueRef::Str(Cow::Borrowed(str::from_utf8(bytes).ok()?)),
                _ => ValueRef::Bytes(Cow::Borrowed(bytes)),
            };
            (Some(value), rest)
        }
        _ => (None, rest),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_has_the_interval_and_the_values_that_it_was_made_of() {
        let values = [
            None,
            Some(ValueRef::Str("GET".into())),
            Some(ValueRef::Int(-7)),
            Some(ValueRef::Double(0.5)),
            Some(ValueRef::Bool(true)),
            Some(ValueRef::Bytes(vec![0, 255].into())),
            Some(ValueRef::Str("".into())),
        ];
        let mut key = vec![1, 2, 3];
        begin(&mut key, 1_800_000_000);
        values.iter().for_each(|value| push(&mut key, value.clone()));
        assert_eq!(parse(&key), (1_800_000_000, values.to_vec()));
    }

    #[test]
    fn values_of_other_lengths_are_other_keys() {
        let key_of = |texts: [&str; 2]| {
            let mut key = Vec::new();
            begin(&mut key, 0);
            texts.iter().for_each(|text| push(&mut key, Some(ValueRef::Str((*text).into()))));
            key
        };
        assert_ne!(key_of(["ab", "c"]), key_of(["a", "bc"]));
    }
}
