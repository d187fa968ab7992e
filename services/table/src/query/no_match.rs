//! Why no entity matched a filter: no entity in its key range, properties that no entity has, literals of another type
//! than the stored values.
//!
//! These are facts about the entities that were read, each of which can be the reason; conditions under a `not` are
//! left out, since there a missing property matches.

use std::collections::BTreeSet;

use trestle_filter::{Comparison, EdmValueRef, Expr, Literal, Plain, holds, rank};
use trestle_model::{edm::EdmType, etag::format_time, fault::quoted, time::Ticks};

use super::{
    Filter, QueryPlan, QueryScope,
    eval::{TIMESTAMP, system_slot},
    nearest_name::nearest,
};
use crate::{
    corrupt::CorruptRecord,
    stored::{EntityView, text},
};

/// Most comparisons of a filter that are examined.
const COMPARISONS_MAX: usize = 16;
/// Most names of properties that are stored.
const NAMES_MAX: usize = 256;
/// Longest text that is repeated as another literal.
const REPEATED_CHARS_MAX: usize = 60;

/// What was found of a filter in the entities that it did not match.
#[derive(Debug)]
pub(crate) struct MatchTrial {
    comparisons: Vec<TriedComparison>,
    /// The properties of the entities.
    names: BTreeSet<String>,
    entities: u64,
}

/// What was found of one comparison.
#[derive(Debug)]
struct TriedComparison {
    comparison: Comparison,
    /// The types of the values; empty where no entity has the property.
    types: BTreeSet<&'static str>,
    /// The last value as another literal of its type, with the same text.
    literal: Option<Literal>,
    /// Whether a value had the type of the literal, or the comparison was true.
    is_sound: bool,
}

impl MatchTrial {
    /// Nothing found yet.
    pub(crate) fn new(filter: &Filter) -> Self {
        let mut comparisons = Vec::new();
        collect(filter.expr(), &mut comparisons);
        Self { comparisons, names: BTreeSet::new(), entities: 0 }
    }

    /// Records an entity that does not match, without the header of the stored form.
    ///
    /// # Errors
    /// When it cannot be read.
    pub(crate) fn observe(&mut self, wire: &[u8]) -> Result<(), CorruptRecord> {
        self.entities += 1;
        let mut properties = EntityView::new(wire).properties();
        while let Some(property) = properties.next_raw()? {
            let name = text(property.name)?;
            if self.names.len() < NAMES_MAX && !self.names.contains(name) {
                self.names.insert(name.to_owned());
            }
            for tried in self.comparisons.iter_mut().filter(|it| it.comparison.property == name) {
                tried.observe(property.value()?);
            }
        }
        Ok(())
    }

    /// What can be the reason, in English. `has_more` is whether the entities are only the first of the query.
    pub(crate) fn reasons(&self, plan: &QueryPlan, has_more: bool) -> Vec<String> {
        let types = self.comparisons.iter().filter_map(TriedComparison::type_reason);
        let mut reasons: Vec<String> = types.collect();
        if self.entities > 0 {
            reasons.extend(self.absent(has_more));
        } else if let Some(unread) = plan.unread_reason() {
            // A key that is compared with another type rules out everything by itself.
            if reasons.is_empty() {
                reasons.push(unread.to_owned());
            }
        } else {
            reasons.push(no_key(plan.scope).to_owned());
        }
        reasons
    }

    /// The properties that no entity has, each once.
    fn absent(&self, has_more: bool) -> Vec<String> {
        let tried = self.comparisons.iter().filter(|it| it.types.is_empty());
        let names: BTreeSet<&str> = tried.map(|it| it.comparison.property.as_str()).collect();
        let scanned = match (self.entities, has_more) {
            (1, _) => "the entity scanned has no property".to_owned(),
            (count, false) => format!("none of the {count} entities scanned has a property"),
            (count, true) => format!("none of the first {count} entities scanned has a property"),
        };
        let reason = |name: &str| {
            let near = nearest(name, self.names.iter().map(String::as_str));
            let near = near.map(|near| format!("; the nearest name is `{}`", quoted(near)));
            format!("{scanned} `{}`{}", quoted(name), near.unwrap_or_default())
        };
        names.into_iter().map(reason).collect()
    }
}

/// The comparisons that have to be true, or one of them.
fn collect(expr: &Expr, found: &mut Vec<TriedComparison>) {
    match expr {
        Expr::Compare(comparison) if found.len() < COMPARISONS_MAX => {
            found.push(TriedComparison::new(comparison.clone()));
        }
        Expr::And(parts) | Expr::Or(parts) => parts.iter().for_each(|part| collect(part, found)),
        Expr::Constant(_) | Expr::Not(_) | Expr::Compare(_) => {}
    }
}

fn no_key(scope: QueryScope) -> &'static str {
    match scope {
        QueryScope::Point => "no entity has this key; keys are compared with their case",
        QueryScope::Table => "the table has no entity",
        _ => "no entity has a key in the range of the filter; keys are compared with their case",
    }
}

impl TriedComparison {
    fn new(comparison: Comparison) -> Self {
        let slot = system_slot(&comparison.property);
        let (types, literal) = (BTreeSet::new(), None);
        let mut tried = Self { comparison, types, literal, is_sound: false };
        // Every entity has them, and their type is known.
        match slot {
            Some(TIMESTAMP) => tried.observe(EdmValueRef::DateTime(Ticks::MAX)),
            Some(_) => tried.observe(EdmValueRef::String("")),
            None => {}
        }
        tried
    }

    fn observe(&mut self, value: EdmValueRef<'_>) {
        let Comparison { operator, literal, .. } = &self.comparison;
        let literal = literal.as_value();
        self.is_sound |= rank(value) == rank(literal) || holds(value, *operator, literal);
        if self.types.insert(type_name(value)) && !self.is_sound {
            self.literal = converted(&self.comparison.literal, value);
        }
    }

    /// Values of other types only, for which the comparison is never true.
    fn type_reason(&self) -> Option<String> {
        if self.is_sound || self.types.is_empty() {
            return None;
        }
        let Comparison { property, literal, .. } = &self.comparison;
        let stored: Vec<_> = self.types.iter().copied().collect();
        let (stored, given) = (stored.join(" or "), type_name(literal.as_value()));
        let mut reason = format!("`{}` is {stored}, and {given} in the filter", quoted(property));
        if let Some(other) = &self.literal {
            reason.push_str(&format!(": write {other}, not {literal}"));
        }
        Some(reason)
    }
}

/// A literal with the type of a value and the text of another literal, if it has one.
fn converted(literal: &Literal, value: EdmValueRef<'_>) -> Option<Literal> {
    let text = match literal {
        Literal::String(text) => text.clone(),
        Literal::Int32(number) => number.to_string(),
        Literal::Int64(number) => number.to_string(),
        Literal::Double(number) => number.to_string(),
        Literal::Boolean(truth) => truth.to_string(),
        Literal::DateTime(ticks) => format_time(*ticks),
        Literal::Guid(guid) => guid.hyphenated().to_string(),
        Literal::Binary(_) => return None,
    };
    if text.chars().count() > REPEATED_CHARS_MAX {
        return None;
    }
    let quoted = text.replace('\'', "''");
    let written = match value {
        EdmValueRef::String(_) => [format!("'{quoted}'"), String::new()],
        EdmValueRef::DateTime(_) => [format!("datetime'{quoted}'"), String::new()],
        EdmValueRef::Guid(_) => [format!("guid'{quoted}'"), String::new()],
        EdmValueRef::Binary(_) => [format!("X'{quoted}'"), String::new()],
        EdmValueRef::Boolean(_) => [text, String::new()],
        // Those past an Int32 have a suffix.
        _ => [text.clone(), format!("{text}L")],
    };
    let has_rank = |literal: &Literal| rank(literal.as_value()) == rank(value);
    written.iter().find_map(|written| parsed(written).filter(has_rank))
}

/// The literal of a text, if that is one literal.
fn parsed(text: &str) -> Option<Literal> {
    let condition = trestle_filter::parse::<Plain>(&format!("a eq {text}")).ok()??;
    if let Expr::Compare(Comparison { literal, .. }) = condition { Some(literal) } else { None }
}

fn type_name(value: EdmValueRef<'_>) -> &'static str {
    let edm = match value {
        EdmValueRef::String(_) => EdmType::String,
        EdmValueRef::Int32(_) => EdmType::Int32,
        EdmValueRef::Int64(_) => EdmType::Int64,
        EdmValueRef::Double(_) => EdmType::Double,
        EdmValueRef::Boolean(_) => EdmType::Boolean,
        EdmValueRef::DateTime(_) => EdmType::DateTime,
        EdmValueRef::Guid(_) => EdmType::Guid,
        EdmValueRef::Binary(_) => EdmType::Binary,
    };
    edm.name()
}
