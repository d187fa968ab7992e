#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

use proptest::{collection::vec, prelude::*, sample::Index};
use prost::Message as _;
use trestle_model::{etag::format_etag, fault::Violations};
use trestle_proto::table::v1 as proto;

use trestle_filter::EdmValueRef;

use super::*;
use crate::entity::samples;

fn sample() -> (Entity, Ticks) {
    let key = EntityKey { partition_key: "p".to_owned(), row_key: String::new() };
    let properties =
        vec![("a".to_owned(), Value::Int32(-1)), ("b".to_owned(), Value::String("x".to_owned()))];
    (Entity { key, properties }, Ticks::from_unix(1, 100).unwrap())
}

fn stored(entity: &Entity, written_at: Ticks) -> Bytes {
    seal(&encode_body(entity), written_at)
}

/// The same entity as a message.
fn expected_message(entity: &Entity, written_at: Ticks) -> proto::Entity {
    let (seconds, nanos) = written_at.to_unix();
    let property = |(name, value): &(String, Value)| proto::Property {
        name: name.clone(),
        value: Some(value.clone().into()),
    };
    proto::Entity {
        partition_key: entity.key.partition_key.clone(),
        row_key: entity.key.row_key.clone(),
        properties: entity.properties.iter().map(property).collect(),
        timestamp: Some(prost_types::Timestamp { seconds, nanos }),
        etag: format_etag(written_at),
    }
}

fn projection(names: &[&str]) -> Projection {
    let mask = proto::PropertyMask { paths: names.iter().map(|&name| name.to_owned()).collect() };
    Projection::parse(Some(mask), "select", &mut Violations::default()).unwrap()
}

#[test]
fn the_stored_form_matches_golden_bytes() {
    let (entity, written_at) = sample();

    let stored = stored(&entity, written_at);

    let mut expected = vec![1];
    expected.extend_from_slice(&621_355_968_010_000_001_u64.to_be_bytes());
    expected.extend_from_slice(b"\x0A\x01p");
    expected.extend_from_slice(
        b"\x1A\x10\x0A\x01a\x12\x0B\x10\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\x01",
    );
    expected.extend_from_slice(b"\x1A\x08\x0A\x01b\x12\x03\x0A\x01x");
    expected.extend_from_slice(b"\x22\x04\x08\x01\x10\x64");
    expected.extend_from_slice(b"\x2A\x2EW/\"datetime'1970-01-01T00%3A00%3A01.0000001Z'\"");
    assert_eq!(stored, expected);
    assert_eq!(super::written_at(&stored), Ok(written_at));
}

#[test]
fn unknown_formats_and_short_headers_are_corrupt() {
    let (entity, written_at) = sample();
    let good = stored(&entity, written_at);
    let mut newer = good.to_vec();
    newer[0] = 2;
    let mut late = good.to_vec();
    late[1] = 0xFF;

    for bad in [vec![], vec![1], good[..8].to_vec(), newer, late] {
        let bad = Bytes::from(bad);
        assert!(super::written_at(&bad).is_err());
        assert!(wire(&bad).is_err());
        assert!(decode(&bad).is_err());
    }
}

#[test]
fn non_canonical_messages_are_corrupt() {
    let tail = b"\x22\x02\x08\x01\x2A\x01e";
    let with_body = |body: &[u8]| {
        let header = [1, 0, 0, 0, 0, 0, 0, 0, 1];
        Bytes::from([&header[..], body, tail].concat())
    };
    let bodies: [(&str, &[u8]); 10] = [
        ("keys out of order", b"\x12\x01r\x0A\x01p"),
        ("a property without a value", b"\x1A\x03\x0A\x01a"),
        ("a null", b"\x1A\x05\x0A\x01a\x12\x00"),
        ("two values", b"\x1A\x09\x0A\x01a\x12\x04\x10\x01\x10\x01"),
        (
            "properties out of order",
            b"\x1A\x07\x0A\x01b\x12\x02\x10\x01\x1A\x07\x0A\x01a\x12\x02\x10\x01",
        ),
        ("a name twice", b"\x1A\x07\x0A\x01a\x12\x02\x10\x01\x1A\x07\x0A\x01a\x12\x02\x10\x01"),
        ("an unknown field", b"\x32\x00"),
        ("a boolean of 2", b"\x1A\x07\x0A\x01a\x12\x02\x28\x02"),
        ("a name that is not UTF-8", b"\x1A\x07\x0A\x01\xFF\x12\x02\x10\x01"),
        ("a length past the end", b"\x0A\x7Fp"),
    ];

    assert!(decode(&with_body(b"\x0A\x01p\x1A\x07\x0A\x01a\x12\x02\x10\x01")).is_ok());
    for (what, body) in bodies {
        assert!(decode(&with_body(body)).is_err(), "{what}");
    }
}

#[test]
fn a_projection_keeps_the_chosen_properties_and_the_system_fields() {
    let (entity, written_at) = sample();
    let wire = wire(&stored(&entity, written_at)).unwrap();

    let projected = projection(&["b", "missing", "b"]).project(&wire).unwrap();

    let mut expected = expected_message(&entity, written_at);
    expected.properties.remove(0);
    assert_eq!(proto::Entity::decode(projected).unwrap(), expected);
}

#[test]
fn a_mask_has_at_most_255_names_and_an_empty_one_selects_everything() {
    let parse = |count: usize| {
        let paths = (0..count).map(|index| format!("p{index}")).collect();
        let mut violations = Violations::default();
        let mask = Some(proto::PropertyMask { paths });
        let projection = Projection::parse(mask, "select", &mut violations);
        (projection.is_some(), violations.check(()).err().map(|f| f.violations[0].field.clone()))
    };

    assert_eq!(parse(0), (false, None));
    assert_eq!(parse(255), (true, None));
    assert_eq!(parse(256), (false, Some("select.paths".to_owned())));
    assert_eq!(Projection::parse(None, "select", &mut Violations::default()), None);
}

#[test]
fn single_properties_are_read_in_place() {
    let (entity, written_at) = sample();
    let wire = wire(&stored(&entity, written_at)).unwrap();

    let view = EntityView::new(&wire);

    assert_eq!(view.key(), Ok(("p", "")));
    assert_eq!(view.timestamp(), Ok(written_at));
    assert_eq!(view.property("a"), Ok(Some(EdmValueRef::Int32(-1))));
    assert_eq!(view.property("b"), Ok(Some(EdmValueRef::String("x"))));
    assert_eq!(view.property("c"), Ok(None));
}

proptest! {
    #[test]
    fn the_encoded_message_equals_that_of_prost(
        entity in samples::entity(),
        written_at in samples::ticks(),
    ) {
        let wire = wire(&stored(&entity, written_at)).unwrap();

        let expected = expected_message(&entity, written_at);
        prop_assert_eq!(&wire[..], expected.encode_to_vec());
    }

    #[test]
    fn entities_round_trip(entity in samples::entity(), written_at in samples::ticks()) {
        let stored = stored(&entity, written_at);

        prop_assert_eq!(decode(&stored).unwrap(), entity);
        prop_assert_eq!(super::written_at(&stored).unwrap(), written_at);
        let wire = wire(&stored).unwrap();
        prop_assert_eq!(EntityView::new(&wire).timestamp().unwrap(), written_at);
    }

    #[test]
    fn projections_equal_those_of_the_decoded_message(
        entity in samples::entity(),
        names in vec(samples::name(), 1..4),
    ) {
        let wire = wire(&stored(&entity, Ticks::MAX)).unwrap();
        let names: Vec<_> = names.iter().map(String::as_str).collect();

        let projected = projection(&names).project(&wire).unwrap();

        let mut expected = expected_message(&entity, Ticks::MAX);
        expected.properties.retain(|property| names.contains(&property.name.as_str()));
        prop_assert_eq!(&projected[..], expected.encode_to_vec());
    }

    #[test]
    fn arbitrary_bytes_never_panic(bytes in vec(any::<u8>(), 0..64)) {
        let stored = Bytes::from([&[1, 0, 0, 0, 0, 0, 0, 0, 1][..], &bytes].concat());
        let wire = wire(&stored).unwrap();

        let _ = decode(&stored);
        let _ = projection(&["x"]).project(&wire);
        let walked = EntityView::new(&wire).properties().count();
        prop_assert!(walked <= bytes.len() + 1);
    }

    #[test]
    fn damaged_entities_never_panic(
        entity in samples::entity(),
        position in any::<Index>(),
        byte in any::<u8>(),
    ) {
        let mut damaged = stored(&entity, Ticks::MAX).to_vec();
        let position = position.index(damaged.len());
        damaged[position] = byte;
        let damaged = Bytes::from(damaged);

        // What still decodes must round-trip. Compared as text, because it may contain NaN.
        if let Ok(decoded) = decode(&damaged) {
            let again = decode(&stored(&decoded, Ticks::MAX)).unwrap();
            prop_assert_eq!(format!("{again:?}"), format!("{decoded:?}"));
        }
    }
}
