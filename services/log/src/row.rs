//! What a filter reads of a record, wherever the record is: unsealed, or in a segment.

use std::{borrow::Cow, ops::Range};

/// The value of an attribute. Lists, maps and empty values are absent to a filter.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum ValueRef<'a> {
    /// Text.
    Str(Cow<'a, str>),
    /// A whole number.
    Int(i64),
    /// A floating point number.
    Double(f64),
    /// True or false.
    Bool(bool),
    /// Bytes.
    Bytes(Cow<'a, [u8]>),
}

/// The properties of one record.
pub(crate) trait RowFields {
    /// The effective time, in nanoseconds since 1970.
    fn time(&self) -> u64;
    /// The position in the stream.
    fn sequence(&self) -> u64;
    /// The severity; 0 is absent.
    fn severity(&self) -> i32;
    /// The severity as the source names it; empty is absent.
    fn severity_text(&self) -> &str;
    /// The body, if it is text.
    fn body(&self) -> Option<&str>;
    /// The class of the event; empty is absent.
    fn event_name(&self) -> &str;
    /// The value of a data point; the duration of a span.
    fn value(&self) -> Option<f64>;
    /// What the value of a data point is since: `delta` or `cumulative`; empty is absent.
    fn temporality(&self) -> &str;
    /// Whether a sum only increases.
    fn is_monotonic(&self) -> Option<bool>;
    /// The unit of a data point; empty is absent.
    fn unit(&self) -> &str;
    /// The trace: 16 bytes, or none.
    fn trace_id(&self) -> &[u8];
    /// The span: 8 bytes, or none.
    fn span_id(&self) -> &[u8];
    /// The attribute of this key.
    fn attribute(&self, key: &str) -> Option<ValueRef<'_>>;
    /// The attribute of the resource of this key.
    fn resource(&self, key: &str) -> Option<ValueRef<'_>>;
    /// The name of the scope; empty is absent.
    fn scope_name(&self) -> Cow<'_, str>;
}

/// A property that a predicate reads.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Property {
    Time,
    Sequence,
    Severity,
    SeverityText,
    Body,
    EventName,
    Value,
    Temporality,
    IsMonotonic,
    Unit,
    TraceId,
    SpanId,
    /// The attribute of this key.
    Attribute(String),
    /// The attribute of the resource of this key.
    Resource(String),
    Scope,
}

impl Property {
    /// What a record has of it; none where it is absent. Identifiers are lower-case hexadecimal text.
    pub(crate) fn value_in<'r>(&self, row: &'r dyn RowFields) -> Option<ValueRef<'r>> {
        let text = |text: &'r str| Some(Cow::Borrowed(text)).filter(|text| !text.is_empty());
        match self {
            Self::Time => None,
            Self::Sequence => i64::try_from(row.sequence()).ok().map(ValueRef::Int),
            Self::Severity => {
                Some(row.severity()).filter(|it| *it != 0).map(|it| ValueRef::Int(it.into()))
            }
            Self::SeverityText => text(row.severity_text()).map(ValueRef::Str),
            Self::Body => row.body().map(|body| ValueRef::Str(body.into())),
            Self::EventName => text(row.event_name()).map(ValueRef::Str),
            Self::Value => row.value().map(ValueRef::Double),
            Self::Temporality => text(row.temporality()).map(ValueRef::Str),
            Self::IsMonotonic => row.is_monotonic().map(ValueRef::Bool),
            Self::Unit => text(row.unit()).map(ValueRef::Str),
            Self::TraceId => hexadecimal(row.trace_id()),
            Self::SpanId => hexadecimal(row.span_id()),
            Self::Attribute(key) => row.attribute(key),
            Self::Resource(key) => row.resource(key),
            Self::Scope => {
                Some(row.scope_name()).filter(|name| !name.is_empty()).map(ValueRef::Str)
            }
        }
    }
}

fn hexadecimal(id: &[u8]) -> Option<ValueRef<'static>> {
    let text: String = id.iter().map(|byte| format!("{byte:02x}")).collect();
    Some(text).filter(|text| !text.is_empty()).map(|text| ValueRef::Str(text.into()))
}

/// A condition without which no record matches. Segments that cannot satisfy it are skipped.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum RequiredEquality {
    /// The trace is this one.
    TraceId([u8; 16]),
    /// The attribute of this key has this value, of this very type.
    Attribute(String, ValueRef<'static>),
}

/// Which records a read returns.
pub(crate) trait RowPredicate: Send + Sync {
    /// What [`Self::matches`] reads; others of [`RowFields`] are absent.
    fn properties(&self) -> Vec<Property>;

    /// Conditions that every matching record meets, all of them.
    fn required(&self) -> Vec<RequiredEquality> {
        Vec::new()
    }

    /// The nanoseconds since 1970 in which every match is; empty if none can match.
    fn times(&self) -> Range<u64> {
        0..u64::MAX
    }

    /// Whether the record matches.
    fn matches(&self, row: &dyn RowFields) -> bool;
}

/// What takes in rows one by one, in any order.
pub(crate) trait RowSink: Send + 'static {
    /// What [`Self::take`] reads of a row; others of [`RowFields`] are absent.
    fn properties(&self) -> Vec<Property>;

    /// Takes in a row.
    fn take(&mut self, row: &dyn RowFields);
}
