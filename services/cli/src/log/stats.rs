//! `stats`: counts of records, rates, sums and quantiles, by time and by property. The server reads the records.

mod statistic;

use std::time::Duration;

use chrono::{DateTime, SecondsFormat, Utc};
use prost_types::Timestamp;
use serde_json::{Map, Value, json};
use trestle_command::{
    client::Session,
    errors::CliError,
    output::{Context, counted},
    retry::repeated,
};
use trestle_proto::{
    log::v1::{LogReadCost, NumberSummary, RecordGroup, SummarizeRecordsRequest},
    opentelemetry::proto::common::v1::any_value,
};

use self::statistic::{Grouping, Statistic};
use super::{LogStatsArgs, exact_json, read, severity, when};

/// The word before the groups.
const BY: &str = "by";
/// What is shown of a number where nothing is named.
const OF_NUMBERS: [&str; 7] = ["count", "min", "avg", "p50", "p95", "p99", "max"];

/// What is shown.
struct Shown {
    statistics: Vec<Statistic>,
    grouping: Grouping,
    /// The times of the records.
    start: Option<Timestamp>,
    end: Timestamp,
}

/// Prints the groups of the records of a range.
pub(super) async fn run(context: &mut Context, args: LogStatsArgs) -> Result<(), CliError> {
    let (statistics, grouping) = words(&args).map_err(CliError::Usage)?;
    let now = when::now();
    let (start, end) = when::range(args.since, args.until, now)?;
    let mut request = SummarizeRecordsRequest {
        stream: args.stream,
        start_time: start,
        end_time: end,
        filter: args.matching.condition(),
        group_by: grouping.properties.clone(),
        value: args.of.unwrap_or_default(),
        ..SummarizeRecordsRequest::default()
    };
    request.interval = grouping.interval.and_then(|it| prost_types::Duration::try_from(it).ok());
    request.quantiles = statistics.iter().filter_map(Statistic::part).collect();
    let end = end.unwrap_or_else(|| when::TimeBound::At(now).timestamp(now));
    let shown = Shown { statistics, grouping, start, end };
    let (groups, cost) = summarize(context, &request).await?;
    shown.print(context, &groups, args.limit)?;
    if !request.value.is_empty() && groups.iter().all(|group| group.numbers.is_none()) {
        let none = format!("no record has a number in `{}`", request.value);
        context.output.note(&none);
    }
    if args.cost {
        read::report_cost(&cost, context.output.is_json());
    }
    Ok(())
}

/// What is shown, and by what it is grouped.
///
/// # Errors
/// The rule that the words violate.
fn words(args: &LogStatsArgs) -> Result<(Vec<Statistic>, Grouping), String> {
    let at = args.words.iter().position(|word| word == BY);
    let (named, groups) = args.words.split_at(at.unwrap_or(args.words.len()));
    let flags = args.by.iter();
    let groups = groups.iter().skip(1).flat_map(|word| word.split(',')).map(str::trim);
    let groups = groups.chain(flags.map(|word| word.trim())).filter(|word| !word.is_empty());
    let grouping = Grouping::parse(groups).map_err(|rule| format!("`by`: {rule}"))?;
    let mut names: Vec<_> = named.iter().map(String::as_str).collect();
    if names.is_empty() {
        names = if args.of.is_some() { OF_NUMBERS.to_vec() } else { vec!["count"] };
    }
    let parse = |word: &&str| Statistic::parse(word).map_err(|rule| format!("`{word}`: {rule}"));
    let statistics = names.iter().map(parse).collect::<Result<Vec<_>, _>>()?;
    if let Some(of_numbers) = statistics.iter().find(|it| it.is_of_numbers() && args.of.is_none()) {
        let name = of_numbers.name();
        return Err(format!("`{name}`: needs --of, the property with the numbers"));
    }
    let has_rate = statistics.contains(&Statistic::Rate);
    if has_rate && grouping.interval.is_none() && args.since.is_none() {
        return Err("`rate`: needs --since, or an interval such as `by minute`".to_owned());
    }
    Ok((statistics, grouping))
}

/// Calls the server; again after a temporary error.
async fn summarize(
    context: &Context,
    request: &SummarizeRecordsRequest,
) -> Result<(Vec<RecordGroup>, LogReadCost), CliError> {
    let session: &Session = &context.session;
    let progress = context.output.progress(None, 0);
    let call = async || {
        let mut responses = session.logs().summarize_records(request.clone()).await?.into_inner();
        let (mut groups, mut cost) = (Vec::new(), LogReadCost::default());
        while let Some(response) = responses.message().await? {
            groups.extend(response.groups);
            cost = response.cost.unwrap_or(cost);
            progress.set_message(counted(cost.records_scanned, "record"));
            progress.tick();
        }
        Ok::<_, CliError>((groups, cost))
    };
    let summarized = repeated(call).await;
    progress.finish_and_clear();
    summarized
}

impl Shown {
    fn print(
        &self,
        context: &mut Context,
        groups: &[RecordGroup],
        limit: Option<u64>,
    ) -> Result<(), CliError> {
        let mut columns: Vec<&str> = Vec::new();
        columns.extend(self.grouping.interval.map(|_| "time"));
        columns.extend(self.grouping.properties.iter().map(String::as_str));
        columns.extend(self.statistics.iter().map(Statistic::name));
        let is_table = context.output.is_table();
        let (mut of_interval, mut start) = (0, None);
        let mut records = Vec::new();
        for group in groups {
            if start != group.start_time {
                (of_interval, start) = (0, group.start_time);
            }
            of_interval += 1;
            if limit.is_none_or(|limit| of_interval <= limit) {
                records.push(self.record(group, is_table));
            }
        }
        context.output.records(&records, &columns)?;
        context.output.unless_empty(!records.is_empty(), "no records")
    }

    /// A group as an object.
    fn record(&self, group: &RecordGroup, is_table: bool) -> Value {
        let mut object = Map::new();
        if let Some(start) = &group.start_time {
            object.insert("time".to_owned(), json!(time(start)));
        }
        for (name, value) in self.grouping.properties.iter().zip(&group.key) {
            let named = match &value.value {
                Some(any_value::Value::IntValue(number)) if is_table && name == "severity" => {
                    severity::exact_name_of(*number).map(Value::from)
                }
                _ => None,
            };
            let value = named.unwrap_or_else(|| exact_json::of_value(value));
            object.insert(name.clone(), value);
        }
        let mut quantiles = group.numbers.iter().flat_map(|numbers| &numbers.quantiles);
        for statistic in &self.statistics {
            let numbers = group.numbers.as_ref();
            let of = |get: fn(&NumberSummary) -> f64| numbers.map(|numbers| number(get(numbers)));
            #[expect(clippy::cast_precision_loss, reason = "what is shown has six digits")]
            let value = match statistic {
                Statistic::Count => Some(json!(group.records)),
                Statistic::Rate => {
                    let rate = group.records as f64 / self.seconds(group.start_time.as_ref());
                    Some(number(rounded(rate, 6)))
                }
                Statistic::Sum => of(|numbers| numbers.sum),
                Statistic::Avg => of(|numbers| rounded(numbers.sum / numbers.count as f64, 6)),
                Statistic::Min => of(|numbers| numbers.min),
                Statistic::Max => of(|numbers| numbers.max),
                // It is within 1 %.
                Statistic::Quantile(..) => quantiles.next().map(|found| number(rounded(*found, 4))),
            };
            // A table would show one digit behind the point.
            let digits = value.as_ref().filter(|value| is_table && value.is_f64());
            let value = digits.map(|value| json!(value.to_string())).or(value);
            object.insert(statistic.name().to_owned(), value.unwrap_or(Value::Null));
        }
        Value::Object(object)
    }

    /// How many seconds of the range are in the interval that begins at a time; of the range, without intervals.
    fn seconds(&self, start: Option<&Timestamp>) -> f64 {
        let seconds = |time: &Timestamp| {
            #[expect(clippy::cast_precision_loss, reason = "seconds of this millennium")]
            let whole = time.seconds as f64;
            whole + f64::from(time.nanos) / 1e9
        };
        let end = seconds(&self.end);
        let bound = self.start.as_ref().map(seconds);
        let length = self.grouping.interval.as_ref().map(Duration::as_secs_f64);
        let (from, to) = match (start.map(seconds), length) {
            (Some(start), Some(length)) => {
                let from = bound.map_or(start, |bound| bound.max(start));
                let to = (start + length).min(end);
                // A record may be ahead of this clock.
                if to > from { (from, to) } else { (start, start + length) }
            }
            _ => (bound.unwrap_or_default(), end),
        };
        (to - from).max(1e-3)
    }
}

fn time(time: &Timestamp) -> String {
    let nanos = u32::try_from(time.nanos).unwrap_or_default();
    let time = DateTime::<Utc>::from_timestamp(time.seconds, nanos).unwrap_or_default();
    time.to_rfc3339_opts(SecondsFormat::AutoSi, true)
}

/// With so many digits.
fn rounded(value: f64, digits: usize) -> f64 {
    format!("{value:.*e}", digits.saturating_sub(1)).parse().unwrap_or(value)
}

/// A number, without a fraction where it is whole.
fn number(value: f64) -> Value {
    const EXACT_MAX: f64 = 9_007_199_254_740_992.0;
    if value.fract() == 0.0 && value.abs() <= EXACT_MAX {
        #[expect(clippy::cast_possible_truncation, reason = "it is whole and in range")]
        return json!(value as i64);
    }
    if value.is_finite() { json!(value) } else { json!(value.to_string()) }
}

#[cfg(test)]
mod tests;
