//! Choosing properties of an encoded entity without decoding it.

use bytes::Bytes;
use trestle_model::fault::{Reason, Violations};
use trestle_model::limits;
use trestle_proto::table::v1::PropertyMask;

use super::EntityView;
use crate::corrupt::CorruptRecord;

/// A choice of properties. The keys, the timestamp and the etag always belong to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Projection {
    /// Sorted by bytes, without duplicates.
    names: Vec<String>,
}

impl Projection {
    /// Parses the mask at `field`. None for every property, and when a rule is broken, which
    /// `violations` then lists.
    pub fn parse(
        mask: Option<PropertyMask>,
        field: &str,
        violations: &mut Violations,
    ) -> Option<Self> {
        let mut names = mask.unwrap_or_default().paths;
        let (count, max) = (names.len(), limits::SELECT_NAMES_MAX);
        if count > max {
            let text = format!("too many properties are selected: count=`{count}`, max=`{max}`");
            violations.push(Reason::InvalidInput, format!("{field}.paths"), text);
            return None;
        }
        names.sort_unstable();
        names.dedup();
        (!names.is_empty()).then_some(Self { names })
    }

    /// The encoded entity with only the chosen properties; those that it lacks are left out.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn project(&self, wire: &Bytes) -> Result<Bytes, CorruptRecord> {
        let view = EntityView::new(wire);
        let mut properties = view.properties();
        let mut out = Vec::with_capacity(wire.len().min(1024));
        let mut from = properties.offset(wire)?;
        out.extend_from_slice(wire.get(..from).unwrap_or_default());
        while let Some(property) = properties.next_raw()? {
            let to = properties.offset(wire)?;
            if self.names.binary_search_by(|own| own.as_bytes().cmp(property.name)).is_ok() {
                out.extend_from_slice(wire.get(from..to).unwrap_or_default());
            }
            from = to;
        }
        out.extend_from_slice(wire.get(from..).unwrap_or_default());
        Ok(Bytes::from(out))
    }
}
