//! Evaluating a filter on encoded entities: one walk over the bytes, which reads only the
//! properties that the filter names and ends at the last of them.

use std::fmt;

use super::{
    FilterError,
    ast::{Comparison, Expr},
    compare::holds,
    parse,
};
use crate::stored::{Corrupt, EntityView, ValueRef, text};

/// Values that are kept on the stack; filters that read more properties allocate for each entity.
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
    program: Node,
}

/// The condition with each property replaced by the place of its value.
#[derive(Debug, Clone, PartialEq)]
enum Node {
    Constant(bool),
    Compare { place: usize, comparison: Comparison },
    Not(Box<Node>),
    All(Vec<Node>),
    Any(Vec<Node>),
}

/// Places of what every entity has; custom properties follow, in the order of `Filter::names`.
const PARTITION_KEY: usize = 0;
const ROW_KEY: usize = 1;
pub(super) const TIMESTAMP: usize = 2;
const SYSTEM_PLACES: usize = 3;

/// The place of a property that every entity has.
pub(super) fn system_place(property: &str) -> Option<usize> {
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
        Ok(parse::parse(text)?.map(Self::new))
    }

    /// Prepares a condition for evaluation.
    #[must_use]
    pub fn new(expr: Expr) -> Self {
        let mut names = Vec::new();
        let (mut reads_key, mut reads_timestamp) = (false, false);
        expr.for_each_comparison(&mut |comparison| match system_place(&comparison.property) {
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
    pub fn matches(&self, wire: &[u8]) -> Result<bool, Corrupt> {
        if self.names.len() <= INLINE_VALUES - SYSTEM_PLACES {
            self.run(wire, &mut [None; INLINE_VALUES])
        } else {
            self.run(wire, &mut vec![None; SYSTEM_PLACES + self.names.len()])
        }
    }

    fn run<'a>(
        &self,
        wire: &'a [u8],
        values: &mut [Option<ValueRef<'a>>],
    ) -> Result<bool, Corrupt> {
        let mut keep = |place: usize, value: ValueRef<'a>| {
            if let Some(kept) = values.get_mut(place) {
                *kept = Some(value);
            }
        };
        let (partition_key, row_key, mut properties) = EntityView::new(wire).open()?;
        if self.reads_key {
            keep(PARTITION_KEY, ValueRef::String(text(partition_key)?));
            keep(ROW_KEY, ValueRef::String(text(row_key)?));
        }
        let mut missing = self.names.len();
        while missing > 0 {
            let Some(property) = properties.next_raw()? else {
                break;
            };
            if let Some(index) = self.index_of(property.name) {
                keep(SYSTEM_PLACES + index, property.value()?);
                missing -= 1;
            }
        }
        if self.reads_timestamp {
            while properties.next_raw()?.is_some() {}
            keep(TIMESTAMP, ValueRef::DateTime(properties.timestamp()?));
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

fn compile(expr: &Expr, names: &[String]) -> Node {
    let list = |parts: &[Expr]| parts.iter().map(|part| compile(part, names)).collect();
    match expr {
        Expr::Constant(truth) => Node::Constant(*truth),
        Expr::Not(inner) => Node::Not(Box::new(compile(inner, names))),
        Expr::And(parts) => Node::All(list(parts)),
        Expr::Or(parts) => Node::Any(list(parts)),
        Expr::Compare(comparison) => {
            let place = system_place(&comparison.property).or_else(|| {
                let index = names.binary_search(&comparison.property).ok()?;
                Some(SYSTEM_PLACES + index)
            });
            // Every property of the condition is among the names; were it not, it would be missing.
            place.map_or(Node::Constant(false), |place| Node::Compare {
                place,
                comparison: comparison.clone(),
            })
        }
    }
}

impl Node {
    fn eval(&self, values: &[Option<ValueRef<'_>>]) -> bool {
        match self {
            Self::Constant(truth) => *truth,
            // A comparison with a property that the entity lacks is false, whatever the operator.
            Self::Compare { place, comparison } => {
                values.get(*place).copied().flatten().is_some_and(|value| {
                    holds(value, comparison.operator, comparison.literal.as_value())
                })
            }
            Self::Not(inner) => !inner.eval(values),
            Self::All(parts) => parts.iter().all(|part| part.eval(values)),
            Self::Any(parts) => parts.iter().any(|part| part.eval(values)),
        }
    }
}
