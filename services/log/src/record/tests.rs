//! Views of encoded records, against a decoder that is not ours.

use proptest::prelude::*;
use prost::Message as _;
use trestle_proto::{
    log::v1::Record,
    wire::{put_bytes, put_varint},
};

use super::*;
use crate::samples;

proptest! {
    #[test]
    fn a_record_is_viewed_as_it_is_decoded(record in samples::record()) {
        let encoded = record.encode_to_vec();

        let view = RecordView::parse(&encoded).unwrap();

        prop_assert_eq!(view.time, record.time_unix_nano);
        prop_assert_eq!(view.observed_time, record.observed_time_unix_nano);
        prop_assert_eq!(view.severity, record.severity_number);
        prop_assert_eq!(view.severity_text, record.severity_text);
        prop_assert_eq!(view.event_name, record.event_name);
        prop_assert_eq!((view.flags, view.dropped_attributes_count),
            (record.flags, record.dropped_attributes_count));
        prop_assert_eq!((view.trace_id, view.span_id), (&*record.trace_id, &*record.span_id));
        prop_assert_eq!(view.value.map(f64::to_bits), record.value.map(f64::to_bits));
        prop_assert_eq!(view.body.is_some(), record.body.is_some());
        prop_assert_eq!(view.attributes().count(), record.attributes.len());
    }
}

#[test]
fn an_unknown_field_is_skipped_by_both_decoders() {
    let mut message = Record { time_unix_nano: 7, ..Record::default() }.encode_to_vec();
    put_bytes(&mut message, 1_000, b"of a later version");
    put_varint(&mut message, 999, u64::MAX);

    assert_eq!(RecordView::parse(&message).unwrap().time, 7);
    assert_eq!(Record::decode(message.as_slice()).unwrap().time_unix_nano, 7);
}
