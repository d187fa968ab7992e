//! Names of severities in filters. Each denotes four numbers, those of OpenTelemetry.

use trestle_filter::{Expr, Literal, Operator};

use super::condition::LogCondition;
use crate::row::Property;

/// The numbers of a name.
const NUMBERS: i32 = 4;
/// The names, with the first number of each.
const NAMES: [(&str, i32); 6] =
    [("trace", 1), ("debug", 5), ("info", 9), ("warn", 13), ("error", 17), ("fatal", 21)];

/// What a severity is compared with.
pub(super) const EXPECTED: &str = "a number, 'trace', 'debug', 'info', 'warn', 'error' or 'fatal'";

/// The comparison with the numbers of a name, in any case; none if there is no such name.
pub(super) fn compare(operator: Operator, name: &str) -> Option<Expr<LogCondition>> {
    let (_, first) = NAMES.iter().find(|(known, _)| name.eq_ignore_ascii_case(known))?;
    let last = first + NUMBERS - 1;
    let compare = |operator, number| {
        let (property, literal) = (Property::Severity, Literal::Int32(number));
        Expr::Compare(LogCondition::Compare { property, operator, literal })
    };
    let (below, above) = (Operator::Less, Operator::Greater);
    Some(match operator {
        Operator::Equal => Expr::all(vec![
            compare(Operator::GreaterOrEqual, *first),
            compare(Operator::LessOrEqual, last),
        ]),
        Operator::NotEqual => Expr::any(vec![compare(below, *first), compare(above, last)]),
        Operator::Greater | Operator::LessOrEqual => compare(operator, last),
        Operator::Less | Operator::GreaterOrEqual => compare(operator, *first),
    })
}
