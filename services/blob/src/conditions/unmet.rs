//! A condition that is false, in words.

use std::fmt;

use trestle_model::{etag::format_time, fault::quoted, time::Ticks};

use super::{ConditionField, Conditions, PER_SECOND};
use crate::etag::{ETag, ETagPattern};

/// A condition that is false, with what it requires and what there is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct UnmetCondition {
    /// Which one.
    pub(crate) field: ConditionField,
    /// What the client states.
    stated: String,
    current: CurrentValue,
}

/// What a condition was compared with.
#[derive(Debug, Clone, PartialEq, Eq)]
enum CurrentValue {
    /// The caller is not shown it.
    Withheld,
    /// There is no blob.
    Absent,
    /// An etag, or a time.
    Value(String),
}

impl UnmetCondition {
    /// The condition in a field, which is false of a version; none: the blob is absent.
    pub(super) fn new(
        conditions: &Conditions,
        field: ConditionField,
        version: Option<ETag>,
    ) -> Self {
        let current = match (version, field) {
            // Tags have a call of their own.
            _ if !conditions.shows_current || field == ConditionField::Tags => {
                CurrentValue::Withheld
            }
            (None, _) => CurrentValue::Absent,
            (Some(etag), ConditionField::Match | ConditionField::NoneMatch) => {
                CurrentValue::Value(etag.quoted())
            }
            (Some(etag), _) => CurrentValue::Value(seconds(etag.0)),
        };
        Self { field, stated: stated(conditions, field), current }
    }

    /// The condition as part of a message field, such as `conditions`.
    pub(crate) fn within<'a>(&'a self, message: &'a str) -> impl fmt::Display {
        fmt::from_fn(move |f| {
            let (field, stated) = (self.field.name(), quoted(&self.stated));
            write!(f, "field=`{message}.{field}`, value=`{stated}`")?;
            match &self.current {
                CurrentValue::Withheld => Ok(()),
                CurrentValue::Absent => f.write_str("; there is no blob"),
                CurrentValue::Value(current) => write!(f, ", current=`{current}`"),
            }
        })
    }
}

fn stated(conditions: &Conditions, field: ConditionField) -> String {
    let etags = |patterns: &[ETagPattern]| {
        let texts: Vec<String> = patterns.iter().map(ToString::to_string).collect();
        texts.join(", ")
    };
    let time = |time: Option<Ticks>| time.map(seconds).unwrap_or_default();
    match field {
        ConditionField::Match => etags(&conditions.if_match),
        ConditionField::NoneMatch => etags(&conditions.if_none_match),
        ConditionField::ModifiedSince => time(conditions.if_modified_since),
        ConditionField::UnmodifiedSince => time(conditions.if_unmodified_since),
        ConditionField::Tags => {
            conditions.if_tags.as_ref().map(|tags| tags.text.clone()).unwrap_or_default()
        }
    }
}

/// A time as it is compared.
fn seconds(time: Ticks) -> String {
    let whole = Ticks::new(time.get() - time.get() % PER_SECOND);
    format_time(whole.unwrap_or(time))
}
