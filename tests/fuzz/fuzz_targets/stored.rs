//! Stored entities from arbitrary bytes: read or refused, never a panic; and what reading accepts
//! is what writing makes, so that no two spellings of an entity exist.
#![no_main]

use arbitrary::Arbitrary;
use bytes::Bytes;
use libfuzzer_sys::fuzz_target;
use trestle_fuzz::{Condition, Name};
use trestle_proto::table::v1::PropertyMask;
use trestle_service::fault::Violations;
use trestle_table::{
    query::Filter,
    stored::{self, EntityView, Projection},
};

#[derive(Debug, Arbitrary)]
struct Input {
    condition: Condition,
    mask: Vec<Name>,
    bytes: Vec<u8>,
}

fuzz_target!(|input: Input| {
    let bytes = Bytes::from(input.bytes);
    let decoded = stored::decode(&bytes);
    let Ok(wire) = stored::wire(&bytes) else {
        assert!(decoded.is_err());
        return;
    };
    let matched = Filter::new(input.condition.expr()).matches(&wire);
    let paths = input.mask.iter().map(Name::text).collect();
    let mut violations = Violations::default();
    let projection = Projection::parse(Some(PropertyMask { paths }), "select", &mut violations);
    let projected = projection.map(|projection| projection.project(&wire));
    let view = EntityView::new(&wire);
    for name in &input.mask {
        let value = view.property(&name.text());
        assert!(value.is_err() || decoded.is_err() || matched.is_ok());
    }
    if let Ok(entity) = decoded {
        assert!(matched.is_ok() && projected.is_none_or(|projected| projected.is_ok()));
        let written_at = stored::written_at(&bytes).expect("it was decoded");
        assert_eq!(
            stored::seal(&stored::encode_body(&entity), written_at),
            bytes
        );
    }
});
