//! Entities of requests: parsing keeps what is legal, and storing and reading loses nothing.
#![no_main]

use bytes::Bytes;
use libfuzzer_sys::arbitrary::{Arbitrary, Unstructured};
use libfuzzer_sys::fuzz_target;
use prost::Message as _;
use trestle_model::{fault::Violations, time::Ticks};
use trestle_proto::table::v1 as proto;
use trestle_table::{entity::Entity, stored};

fuzz_target!(|bytes: &[u8]| {
    // Once as bytes off the wire, once as typed input.
    if let Ok(entity) = proto::Entity::decode(Bytes::copy_from_slice(bytes)) {
        check(entity);
    }
    if let Ok(entity) = trestle_fuzz::Entity::arbitrary(&mut Unstructured::new(bytes)) {
        check(entity.proto());
    }
});

fn check(request: proto::Entity) {
    let mut violations = Violations::default();
    let parsed = Entity::parse(request, "entity", &mut violations);
    assert_eq!(parsed.is_some(), violations.is_empty(), "rejected means that a rule is named");
    let Some(entity) = parsed else {
        assert!(!violations.check(()).expect_err("there are some").to_string().is_empty());
        return;
    };
    let written_at = Ticks::new(entity.size() as u64).expect("in range");

    let sealed = stored::seal(&stored::encode_body(&entity), written_at);

    // By text, since NaN does not equal itself.
    let read = stored::decode(&sealed).expect("just written");
    assert_eq!(format!("{read:?}"), format!("{entity:?}"));
    assert_eq!(stored::written_at(&sealed), Ok(written_at));
    let wire = stored::wire(&sealed).expect("just written");
    let answer = proto::Entity::decode(wire.clone()).expect("a client can read it");
    assert_eq!(answer.encode_to_vec(), wire, "canonical protobuf");
    let mut violations = Violations::default();
    let again = Entity::parse(answer, "entity", &mut violations).expect("it may be written back");
    assert_eq!(format!("{again:?}"), format!("{entity:?}"));
}
