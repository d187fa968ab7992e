//! The keys of groups: the beginning of an interval and the values of properties, as bytes that are in their order. A
//! value has a byte of its type before it.

use std::borrow::Cow;

use trestle_kv::order;

use crate::row::ValueRef;

const ABSENT: u8 = 0;
const TEXT: u8 = 1;
const WHOLE: u8 = 2;
const DOUBLE: u8 = 3;
const TRUTH: u8 = 4;
const BYTES: u8 = 5;

/// The bit of the sign.
const SIGN: u64 = 1 << 63;

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
        Some(ValueRef::Int(number)) => put(WHOLE, &(number.cast_unsigned() ^ SIGN).to_be_bytes()),
        Some(ValueRef::Double(number)) => put(DOUBLE, &ordered(number.to_bits()).to_be_bytes()),
        Some(ValueRef::Bool(truth)) => put(TRUTH, &[u8::from(truth)]),
        Some(ValueRef::Str(text)) => {
            put(TEXT, &[]);
            order::push_text(key, &text);
        }
        Some(ValueRef::Bytes(bytes)) => {
            put(BYTES, &(bytes.len() as u64).to_be_bytes());
            key.extend(bytes.as_ref());
        }
    }
}

/// The bits of a double, as a number that is in the order of doubles.
fn ordered(bits: u64) -> u64 {
    if bits & SIGN == 0 { bits ^ SIGN } else { !bits }
}

/// The bits of the double of such a number.
fn bits_of(ordered: u64) -> u64 {
    if ordered & SIGN == 0 { !ordered } else { ordered ^ SIGN }
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
        WHOLE => {
            let (bits, rest) = number()?;
            (Some(ValueRef::Int((bits ^ SIGN).cast_signed())), rest)
        }
        DOUBLE => {
            let (bits, rest) = number()?;
            (Some(ValueRef::Double(f64::from_bits(bits_of(bits)))), rest)
        }
        TRUTH => {
            let (truth, rest) = rest.split_first()?;
            (Some(ValueRef::Bool(*truth != 0)), rest)
        }
        TEXT => {
            let mut rest = rest;
            let text = order::take_text(&mut rest)?;
            (Some(ValueRef::Str(Cow::Owned(text))), rest)
        }
        BYTES => {
            let (length, rest) = number()?;
            let (bytes, rest) = rest.split_at_checked(usize::try_from(length).ok()?)?;
            (Some(ValueRef::Bytes(Cow::Borrowed(bytes))), rest)
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
    fn keys_are_in_the_order_of_their_values() {
        let key_of = |value: ValueRef<'static>| {
            let mut key = Vec::new();
            push(&mut key, Some(value));
            key
        };
        let texts = ["", "/cart", "/pay", "/payment"].map(|it| key_of(ValueRef::Str(it.into())));
        let whole = [i64::MIN, -1, 0, 7, i64::MAX].map(|it| key_of(ValueRef::Int(it)));
        let doubles =
            [f64::NEG_INFINITY, -2.0, -0.5, 0.0, 1e-9, 3.0].map(|it| key_of(ValueRef::Double(it)));
        assert!(texts.is_sorted() && whole.is_sorted() && doubles.is_sorted());
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
