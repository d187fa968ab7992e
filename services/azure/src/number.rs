//! Numbers in queries.

use std::ops::RangeInclusive;

use trestle_model::fault::{Fault, Reason};

use crate::{error::RestError, params::Params};

/// The number of a parameter, which must be in a range.
///
/// # Errors
/// An invalid number, or a number out of the range, each with its REST elements.
pub(crate) fn number(
    params: &Params,
    name: &'static str,
    range: RangeInclusive<i64>,
) -> Result<Option<i64>, RestError> {
    let rule =
        |range: &RangeInclusive<i64>| format!("must be {} to {}", range.start(), range.end());
    number_with(params, name, range, rule)
}

/// The same, with another text of the rule for its range.
pub(crate) fn number_with(
    params: &Params,
    name: &'static str,
    range: RangeInclusive<i64>,
    rule: impl FnOnce(&RangeInclusive<i64>) -> String,
) -> Result<Option<i64>, RestError> {
    let Some(text) = params.get(name) else {
        return Ok(None);
    };
    let digits = text.strip_prefix('-').unwrap_or(text);
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        let rule = "must be a whole number";
        return Err(RestError::of_parameter(Reason::InvalidQueryParameterValue, name, text, rule)
            .with("Reason", rule));
    }
    // Digits that overflow the number exceed the maximum.
    match text.parse() {
        Ok(number) if range.contains(&number) => Ok(Some(number)),
        _ => {
            let (min, max) = (range.start(), range.end());
            let rule = rule(&range);
            Err(RestError::of_parameter(Reason::OutOfRangeQueryParameterValue, name, text, &rule)
                .with("MinimumAllowed", min.to_string())
                .with("MaximumAllowed", max.to_string()))
        }
    }
}

/// The same for a number that is never negative.
pub(crate) fn count(
    params: &Params,
    name: &'static str,
    max: usize,
) -> Result<Option<u32>, RestError> {
    let max = i64::try_from(max).unwrap_or(i64::MAX);
    let number = number(params, name, 1..=max)?;
    Ok(number.and_then(|number| u32::try_from(number).ok()))
}

/// The error of a missing parameter.
pub(crate) fn missing(name: &'static str) -> RestError {
    let reason = Reason::MissingRequiredQueryParameter;
    let fault = Fault::violation(reason, name, "required");
    RestError::from(fault).with("QueryParameterName", name)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The text of an error, and its elements.
    type Rejected = (String, Vec<(&'static str, String)>);

    fn read(query: &str) -> Result<Option<i64>, Rejected> {
        let params = Params::parse(query).expect("a query");
        let read = number(&params, "n", -1..=32);
        read.map_err(|error| (error.status.message().to_owned(), error.extras))
    }

    #[test]
    fn a_number_in_its_range_is_read() {
        for (query, number) in [
            ("", None),
            ("n=1", Some(1)),
            ("N=32", Some(32)),
            ("n=-1", Some(-1)),
            ("n=007", Some(7)),
        ] {
            assert_eq!(read(query), Ok(number), "{query}");
        }
    }

    #[test]
    fn rejects_a_number_out_of_its_range_with_the_bounds() {
        for value in ["33", "-2", "99999999999999999999999"] {
            let (message, extras) = read(&format!("n={value}")).expect_err(value);
            assert!(message.contains("must be -1 to 32"), "{message}");
            let of = |name, value: &str| (name, value.to_owned());
            let expected = [
                of("QueryParameterName", "n"),
                of("QueryParameterValue", value),
                of("MinimumAllowed", "-1"),
                of("MaximumAllowed", "32"),
            ];
            assert_eq!(extras, expected, "{value}");
        }
    }

    #[test]
    fn rejects_an_invalid_number_with_the_rule() {
        for value in ["", "-", "five", "1.5", "1e3", "%2B5", "0x10", "٣"] {
            let (message, extras) = read(&format!("n={value}")).expect_err(value);
            assert!(message.contains("must be a whole number"), "{message}");
            assert_eq!(extras.last().map(|(name, _)| *name), Some("Reason"), "{value}");
        }
    }
}
