//! Evaluating a filter on encoded entities: one walk over the bytes, which reads only the
//! properties that the filter names and ends at the last of them.

use std::fmt;

use trestle_filter::{Comparison, EdmValueRef, Expr, FilterError, Plain, holds};

use crate::{
    corrupt::CorruptRecord,
    stored::{EntityView, text},
};

/// Values that fit on the stack; filters that read more properties allocate for each entity.
const INLINE_VALUES: usize = 8;
/// Up to this many names, comparing with each is faster than a search.
const NAMES_SCANNED_MAX: usize = 4;

/// A parsed filter, prepared for evaluation.
#[derive(Debug, Clone, PartialEq)]
pub struct Filter {
    expr: Expr,
    /// The custom properties that are read: sorted by bytes, without duplicates.
    names: Vec<String>,
    reads_key: bool,
    reads_timestamp: bool,
    program: FilterNode,
}

/// The condition with each property replaced by the slot of its value.
#[derive(Debug, Clone, PartialEq)]
enum FilterNode {
    Constant(bool),
    Compare { slot: usize, comparison: Comparison },
    Not(Box<FilterNode>),
    All(Vec<FilterNode>),
    Any(Vec<FilterNode>),
}

/// Slots of the properties that every entity has; custom ones follow, in the order of `Filter::names`.
const PARTITION_KEY: usize = 0;
const ROW_KEY: usize = 1;
pub(super) const TIMESTAMP: usize = 2;
const SYSTEM_SLOTS: usize = 3;

/// The slot of a property that every entity has.
pub(super) fn system_slot(property: &str) -> Option<usize> {
    match property {
        "PartitionKey" => Some(PARTITION_KEY),
        "RowKey" => Some(ROW_KEY),
        "Timestamp" => Some(TIMESTAMP),
        _ => None,
    }
}

impl Filter {
    /// Parses a filter; none for the empty one, which every entity matches.
    ///
    /// # Errors
    /// When it is not in the language, or exceeds its bounds.
    pub fn parse(text: &str) -> Result<Option<Self>, FilterError> {
        Ok(trestle_filter::parse::<Plain>(text)?.map(Self::new))
    }

    /// Prepares a condition for evaluation.
    #[must_use]
    pub fn new(expr: Expr) -> Self {
        let mut names = Vec::new();
        let (mut reads_key, mut reads_timestamp) = (false, false);
        expr.for_each_comparison(&mut |comparison| match system_slot(&comparison.property) {
            Some(TIMESTAMP) => reads_timestamp = true,
            Some(_) => reads_key = true,
            None => names.push(comparison.property.clone()),
        });
        names.sort_unstable();
        names.dedup();
        let program = compile(&expr, &names);
        Self { expr, names, reads_key, reads_timestamp, program }
    }

    /// The condition.
    #[must_use]
    pub fn expr(&self) -> &Expr {
        &self.expr
    }

    /// Whether an encoded entity (without the header of the stored form) matches.
    ///
    /// # Errors
    /// When the entity cannot be read as far as the filter needs it.
    pub fn matches(&self, wire: &[u8]) -> Result<bool, CorruptRecord> {
        if self.names.len() <= INLINE_VALUES - SYSTEM_SLOTS {
            self.run(wire, &mut [None; INLINE_VALUES])
        } else {
            self.run(wire, &mut vec![None; SYSTEM_SLOTS + self.names.len()])
        }
    }

    fn run<'a>(
        &self,
        wire: &'a [u8],
        values: &mut [Option<EdmValueRef<'a>>],
    ) -> Result<bool, CorruptRecord> {
        let mut set = |slot: usize, value: EdmValueRef<'a>| {
            if let Some(entry) = values.get_mut(slot) {
                *entry = Some(value);
            }
        };
        let (partition_key, row_key, mut properties) = EntityView::new(wire).open()?;
        if self.reads_key {
            set(PARTITION_KEY, EdmValueRef::String(text(partition_key)?));
            set(ROW_KEY, EdmValueRef::String(text(row_key)?));
        }
        let mut missing = self.names.len();
        while missing > 0 {
            let Some(property) = properties.next_raw()? else {
                break;
            };
            if let Some(index) = self.index_of(property.name) {
                set(SYSTEM_SLOTS + index, property.value()?);
                missing -= 1;
            }
        }
        if self.reads_timestamp {
            while properties.next_raw()?.is_some() {}
            set(TIMESTAMP, EdmValueRef::DateTime(properties.timestamp()?));
        }
        Ok(self.program.eval(values))
    }

    #[inline]
    fn index_of(&self, name: &[u8]) -> Option<usize> {
        if self.names.len() <= NAMES_SCANNED_MAX {
            self.names.iter().position(|own| own.as_bytes() == name)
        } else {
            self.names.binary_search_by(|own| own.as_bytes().cmp(name)).ok()
        }
    }
}

/// Canonical text.
impl fmt::Display for Filter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.expr.fmt(f)
    }
}

fn compile(expr: &Expr, names: &[String]) -> FilterNode {
    let list = |parts: &[Expr]| parts.iter().map(|part| compile(part, names)).collect();
    match expr {
        Expr::Constant(truth) => FilterNode::Constant(*truth),
        Expr::Not(inner) => FilterNode::Not(Box::new(compile(inner, names))),
        Expr::And(parts) => FilterNode::All(list(parts)),
        Expr::Or(parts) => FilterNode::Any(list(parts)),
        Expr::Compare(comparison) => {
            let slot = system_slot(&comparison.property).or_else(|| {
                let index = names.binary_search(&comparison.property).ok()?;
                Some(SYSTEM_SLOTS + index)
            });
            // Every property of the condition is among the names; any other would count as missing.
            slot.map_or(FilterNode::Constant(false), |slot| FilterNode::Compare {
                slot,
                comparison: comparison.clone(),
            })
        }
    }
}

impl FilterNode {
    fn eval(&self, values: &[Option<EdmValueRef<'_>>]) -> bool {
        match self {
            Self::Constant(truth) => *truth,
            // A comparison with a property that the entity lacks is false, for any operator.
            Self::Compare { slot, comparison } => {
                values.get(*slot).copied().flatten().is_some_and(|value| {
                    holds(value, comparison.operator, comparison.literal.as_value())
                })
            }
            Self::Not(inner) => !inner.eval(values),
            Self::All(parts) => parts.iter().all(|part| part.eval(values)),
            Self::Any(parts) => parts.iter().any(|part| part.eval(values)),
        }
    }
}
