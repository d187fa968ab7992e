//! Stored entities from arbitrary bytes, and from real ones with damage: read or rejected, never a
//! panic; every way of reading agrees, and what was read can be written and read again.
#![no_main]

use arbitrary::Arbitrary;
use bytes::Bytes;
use libfuzzer_sys::fuzz_target;
use trestle_fuzz::{Condition, Entity, Name};
use trestle_model::{fault::Violations, time::Ticks};
use trestle_proto::table::v1::PropertyMask;
use trestle_table::{
    entity,
    query::Filter,
    stored::{self, EntityView, Projection},
};

#[derive(Debug, Arbitrary)]
struct Input {
    condition: Condition,
    mask: Vec<Name>,
    bytes: Vec<u8>,
    entity: Entity,
    ticks: u64,
    /// What happens to the stored entity: at a position, some bytes are replaced by others.
    damage: Vec<(u16, u8, Vec<u8>)>,
}

fuzz_target!(|input: Input| {
    check(&input, Bytes::copy_from_slice(&input.bytes));
    let mut violations = Violations::default();
    let parsed = entity::Entity::parse(input.entity.proto(), "entity", &mut violations);
    if let Some(entity) = parsed {
        let written_at = Ticks::new(input.ticks).unwrap_or(Ticks::MAX);
        let mut stored = stored::seal(&stored::encode_body(&entity), written_at).to_vec();
        for (position, len, bytes) in &input.damage {
            let from = usize::from(*position) % (stored.len() + 1);
            let to = (from + usize::from(*len)).min(stored.len());
            stored.splice(from..to, bytes.iter().copied());
        }
        check(&input, stored.into());
    }
});

fn check(input: &Input, bytes: Bytes) {
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
        assert!(value.is_ok() || decoded.is_err());
    }
    if let Ok(entity) = decoded {
        assert!(matched.is_ok() && projected.is_none_or(|projected| projected.is_ok()));
        let written_at = stored::written_at(&bytes).expect("it was decoded");
        let again = stored::seal(&stored::encode_body(&entity), written_at);
        // By text, since NaN does not equal itself.
        let read = stored::decode(&again).expect("just written");
        assert_eq!(format!("{read:?}"), format!("{entity:?}"));
    }
}
