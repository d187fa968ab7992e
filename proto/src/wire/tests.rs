//! Messages read field by field, against a decoder that is not ours.

use proptest::{collection::vec, prelude::*};
use prost::Message as _;

use super::*;
use crate::{
    log::v1::Record,
    opentelemetry::proto::common::v1::{AnyValue, ArrayValue, any_value::Value},
};

fn read(message: &[u8]) -> Result<Vec<(u32, FieldValue<'_>)>, MalformedMessage> {
    MessageReader::new(message).fields().collect()
}

/// A field that owns its bytes.
#[derive(Debug, Clone)]
enum SampleField {
    Varint(u64),
    Fixed64(u64),
    Bytes(Vec<u8>),
    Fixed32(u32),
}

impl SampleField {
    fn value(&self) -> FieldValue<'_> {
        match self {
            Self::Varint(value) => FieldValue::Varint(*value),
            Self::Fixed64(value) => FieldValue::Fixed64(*value),
            Self::Bytes(value) => FieldValue::Bytes(value),
            Self::Fixed32(value) => FieldValue::Fixed32(*value),
        }
    }
}

fn field() -> impl Strategy<Value = (u32, SampleField)> {
    let value = prop_oneof![
        any::<u64>().prop_map(SampleField::Varint),
        (0..300_u64).prop_map(SampleField::Varint),
        any::<u64>().prop_map(SampleField::Fixed64),
        vec(any::<u8>(), 0..200).prop_map(SampleField::Bytes),
        any::<u32>().prop_map(SampleField::Fixed32),
    ];
    (prop_oneof![1..20_u32, 1..(1_u32 << 29)], value)
}

proptest! {
    #[test]
    fn what_is_written_is_read_back(written in vec(field(), 0..8)) {
        let mut message = Vec::new();
        for (number, value) in &written {
            put_field(&mut message, *number, value.value());
        }
        let expected: Vec<_> =
            written.iter().map(|(number, value)| (*number, value.value())).collect();
        prop_assert_eq!(read(&message), Ok(expected));
        // Cut off anywhere it has a part of the fields, or is malformed.
        for end in 0..message.len() {
            if let Ok(part) = read(&message[..end]) {
                prop_assert!(part.len() < written.len());
            }
        }
    }

    #[test]
    fn any_bytes_are_read_to_their_end_or_malformed(bytes in vec(any::<u8>(), 0..64)) {
        let mut count = 0;
        for (number, _) in MessageReader::new(&bytes).fields().map_while(Result::ok) {
            prop_assert!((1..1 << 29).contains(&number));
            count += 1;
        }
        prop_assert!(count <= bytes.len() / 2);
    }

    #[test]
    fn nested_messages_have_their_length(lengths in vec(0..400_usize, 1..5)) {
        // Each is around the one before: lengths of one byte and of more.
        let mut expected = AnyValue { value: None };
        let mut message = Vec::new();
        for length in lengths {
            let text = "x".repeat(length);
            let inner = std::mem::take(&mut message);
            put_message(&mut message, 5, |out| {
                put_message(out, 1, |out| {
                    put_bytes(out, 1, text.as_bytes());
                    Ok::<_, MalformedMessage>(())
                })?;
                put_message(out, 1, |out| {
                    out.extend_from_slice(&inner);
                    Ok::<_, MalformedMessage>(())
                })
            })
            .unwrap();
            let text = AnyValue { value: Some(Value::StringValue(text)) };
            let values = vec![text, expected];
            expected = AnyValue {
                value: Some(Value::ArrayValue(ArrayValue { values })),
            };
        }
        prop_assert_eq!(AnyValue::decode(message.as_slice()).unwrap(), expected);
    }
}

#[test]
fn a_value_has_one_type() {
    let values = [
        FieldValue::Varint(1),
        FieldValue::Fixed64(1),
        FieldValue::Bytes(b"\xff"),
        FieldValue::Fixed32(1),
    ];
    for (at, value) in values.into_iter().enumerate() {
        let is = [
            value.varint().is_ok(),
            value.fixed64().is_ok(),
            value.bytes().is_ok(),
            value.fixed32().is_ok(),
        ];
        assert_eq!(is, [0, 1, 2, 3].map(|type_of| type_of == at), "{value:?}");
        assert!(value.text().is_err(), "{value:?}");
    }
}

#[test]
fn a_message_whose_length_is_written_last_is_read_by_both_decoders() {
    for length in [0, 1, 127, 128, 300, 16_384, 2_097_152] {
        let (mut message, text) = (Vec::new(), "x".repeat(length));
        let begin = begin_message(&mut message, 5);
        if length > 0 {
            put_bytes(&mut message, 1, text.as_bytes());
        }
        end_message(&mut message, begin);
        put_varint(&mut message, 7, 9);

        let record = Record::decode(message.as_slice()).unwrap();
        let value = (length > 0).then_some(Value::StringValue(text));
        assert_eq!(record.body, Some(AnyValue { value }), "{length}");
        assert_eq!(record.dropped_attributes_count, 9, "{length}");
        let body = message[begin..message.len() - 2].to_vec();
        let expected = [(5, FieldValue::Bytes(&body)), (7, FieldValue::Varint(9))];
        assert_eq!(read(&message), Ok(expected.to_vec()), "{length}");
    }
}

#[test]
fn a_failed_write_of_a_nested_message_is_an_error() {
    let failed = put_message(&mut Vec::new(), 1, |_| Err(MalformedMessage("no")));
    assert_eq!(failed, Err(MalformedMessage("no")));
}

#[test]
fn reads_fields_of_every_wire_type() {
    let message = [
        0x08, 0x96, 0x01, // 1: varint 150
        0x11, 1, 0, 0, 0, 0, 0, 0, 0, // 2: fixed64
        0x1A, 2, b'h', b'i', // 3: bytes
        0x25, 7, 0, 0, 0, // 4: fixed32
    ];

    assert_eq!(
        read(&message),
        Ok(vec![
            (1, FieldValue::Varint(150)),
            (2, FieldValue::Fixed64(1)),
            (3, FieldValue::Bytes(b"hi")),
            (4, FieldValue::Fixed32(7)),
        ])
    );
}

#[test]
fn rejects_malformed_messages() {
    let malformed: &[&[u8]] = &[
        &[0x08],                                                       // no value
        &[0x1A, 3, b'h', b'i'],                                        // length past the end
        &[0x00, 0],                                                    // field 0
        &[0x0B],                                                       // a group
        &[0x11, 1, 2],                                                 // seven bytes too few
        &[8, 255, 255, 255, 255, 255, 255, 255, 255, 255, 2],          // more than 64 bits
        &[0x1A, 255, 255, 255, 255, 255, 255, 255, 255, 255, 1, b'x'], // 2^64 - 1 bytes
        &[0x80, 0x80, 0x80, 0x80, 0x80, 1, 1],                         // number of 35 bits
    ];
    for message in malformed {
        assert!(read(message).is_err(), "{message:?}");
    }
    assert_eq!(
        read(&[8, 255, 255, 255, 255, 255, 255, 255, 255, 255, 1]),
        Ok(vec![(1, FieldValue::Varint(u64::MAX))])
    );
}

#[test]
fn no_field_follows_what_is_malformed() {
    for malformed in [0x00, 0x0B] {
        let message = [8, 1, malformed, 8, 2];
        let mut fields = MessageReader::new(&message).fields();
        assert_eq!(fields.next(), Some(Ok((1, FieldValue::Varint(1)))));
        assert!(matches!(fields.next(), Some(Err(_))), "{malformed}");
        assert_eq!(fields.next(), None, "{malformed}");
    }
}

#[test]
fn groups_are_passed_over_where_they_are_asked_for() {
    // A varint in a group.
    let message = [0x0B, 8, 1, 0x0C];
    let mut reader = MessageReader::new(&message);
    let read: Vec<_> = std::iter::from_fn(|| reader.next_with_groups().transpose()).collect();
    assert_eq!(read, [Ok((1, None)), Ok((1, Some(FieldValue::Varint(1)))), Ok((1, None))]);
    assert!(MessageReader::new(&message).next_field().is_err());
}

#[test]
fn a_canonical_message_is_read_by_what_is_next() {
    let mut reader = MessageReader::new(b"\x0A\x02hi\x96\x01\x07\x01\0\0\0\0\0\0\0\x80");

    assert!(!reader.take_tag(0x12));
    assert!(reader.take_tag(0x0A));
    assert_eq!(reader.bytes(), Ok(&b"hi"[..]));
    assert_eq!(reader.varint(), Ok(150));
    assert_eq!(reader.byte(), Ok(7));
    assert_eq!(reader.fixed64(), Ok(1));
    assert_eq!((reader.len(), reader.is_empty()), (1, false));
    assert!(reader.fixed64().is_err() && reader.varint().is_err());
    assert!(reader.is_empty() && !reader.take_tag(0));
    assert!(reader.byte().is_err() && reader.bytes().is_err());
}
