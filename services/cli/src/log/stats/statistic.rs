//! The words of a summary: what is shown of each group, and by what records are grouped.

use std::time::Duration;

use trestle_command::values::duration;

/// A number of each group.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Statistic {
    /// How many records it has.
    Count,
    /// How many a second.
    Rate,
    /// The sum of their numbers.
    Sum,
    /// The mean.
    Avg,
    /// The least.
    Min,
    /// The greatest.
    Max,
    /// The number below which this part of them is, by the name that was given.
    Quantile(String, f64),
}

const RULE: &str = "must be count, rate, sum, avg, min, max, median or a percentile such as p95 or p99.9; groups come \
     behind `by`";

impl Statistic {
    /// Reads a word.
    ///
    /// # Errors
    /// The rule.
    pub(super) fn parse(word: &str) -> Result<Self, String> {
        Ok(match word {
            "count" => Self::Count,
            "rate" => Self::Rate,
            "sum" => Self::Sum,
            "avg" | "mean" => Self::Avg,
            "min" => Self::Min,
            "max" => Self::Max,
            "median" => Self::Quantile(word.to_owned(), 0.5),
            _ => {
                let percent = word.strip_prefix('p').filter(|it| !it.starts_with(['+', '-']));
                let percent = percent.and_then(|percent| percent.parse::<f64>().ok());
                let percent = percent.filter(|percent| (0.0..=100.0).contains(percent));
                Self::Quantile(word.to_owned(), percent.ok_or(RULE)? / 100.0)
            }
        })
    }

    /// The name of its column.
    pub(super) fn name(&self) -> &str {
        match self {
            Self::Count => "count",
            Self::Rate => "rate",
            Self::Sum => "sum",
            Self::Avg => "avg",
            Self::Min => "min",
            Self::Max => "max",
            Self::Quantile(name, _) => name,
        }
    }

    /// The part of a quantile.
    pub(super) fn part(&self) -> Option<f64> {
        match self {
            Self::Quantile(_, part) => Some(*part),
            _ => None,
        }
    }

    /// Whether it is of a number that records have.
    pub(super) fn is_of_numbers(&self) -> bool {
        !matches!(self, Self::Count | Self::Rate)
    }
}

/// By what records are grouped.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Grouping {
    /// The length of the intervals.
    pub(super) interval: Option<Duration>,
    /// The properties.
    pub(super) properties: Vec<String>,
}

impl Grouping {
    /// Reads words: one of an interval, `second`, `minute`, `hour`, `day` or a time such as `5m`, and properties.
    ///
    /// # Errors
    /// The rule.
    pub(super) fn parse<'w>(words: impl Iterator<Item = &'w str>) -> Result<Self, String> {
        let mut grouping = Self::default();
        for word in words {
            let seconds = match word {
                "second" => Some(1),
                "minute" => Some(60),
                "hour" => Some(3600),
                "day" => Some(86_400),
                _ => None,
            };
            let begins_with_digit = word.starts_with(|c: char| c.is_ascii_digit());
            let interval = match seconds {
                Some(seconds) => Some(Duration::from_secs(seconds)),
                None if begins_with_digit => Some(duration(word)?),
                None => None,
            };
            match interval {
                None => grouping.properties.push(word.to_owned()),
                Some(_) if grouping.interval.is_some() => {
                    return Err("must have one interval".to_owned());
                }
                found => grouping.interval = found,
            }
        }
        Ok(grouping)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_statistics() {
        let parsed = |word| Statistic::parse(word);
        assert_eq!(parsed("count"), Ok(Statistic::Count));
        assert_eq!(parsed("p99.9").map(|it| it.name().to_owned()), Ok("p99.9".to_owned()));
        assert_eq!(parsed("p50"), Ok(Statistic::Quantile("p50".to_owned(), 0.5)));
        assert_eq!(parsed("median"), Ok(Statistic::Quantile("median".to_owned(), 0.5)));
        for word in ["", "p", "p101", "p-1", "p+1", "pNaN", "pinf", "counts", "minute"] {
            assert_eq!(parsed(word), Err(RULE.to_owned()), "{word}");
        }
    }

    #[test]
    fn words_are_an_interval_and_properties() {
        let parsed = |words: &[&'static str]| Grouping::parse(words.iter().copied());
        let grouping = parsed(&["severity", "5m", "attributes/path"]).unwrap();
        assert_eq!(grouping.interval, Some(Duration::from_secs(300)));
        assert_eq!(grouping.properties, ["severity", "attributes/path"]);
        assert_eq!(parsed(&["day"]).unwrap().interval, Some(Duration::from_secs(86_400)));
        assert!(parsed(&["hour", "5m"]).unwrap_err().contains("one interval"));
        assert!(parsed(&["5x"]).is_err());
    }
}
