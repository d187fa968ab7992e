//! Summaries of records, as a stream of responses.

use std::{num::NonZeroU64, time::Duration};

use tokio::time::Instant;
use trestle_model::fault::{Fault, Reason, Violations, quoted};
use trestle_proto::{
    log::v1 as proto,
    opentelemetry::proto::common::v1::{AnyValue, any_value::Value},
};
use trestle_rpc::call_statistics::StatisticsRecorder;
use trestle_rpc::response_stream::{self, ResponseStream};

use super::{LogApi, failed, parse, read, render};
use crate::{
    authorize::LogAccess,
    filter,
    row::{Property, ValueRef},
    summary::{NumberSummary, SummaryGroup, SummaryPlan},
};

/// Most properties of a key.
const GROUP_BY_MAX: usize = 8;
/// Most quantiles.
const QUANTILES_MAX: usize = 16;
/// Shortest and longest interval.
const INTERVAL: (Duration, Duration) =
    (Duration::from_millis(1), Duration::from_secs(36_500 * 24 * 3600));
/// How often a response without groups is sent.
const PROGRESS: Duration = Duration::from_secs(1);
/// A response ends with the group that takes it to about so many bytes.
const BYTES_MAX: usize = 1024 * 1024;
/// Bytes of a group beside the texts of its key.
const GROUP_BYTES: usize = 128;

impl LogApi {
    pub(super) async fn summarize(
        &self,
        access: &LogAccess,
        request: proto::SummarizeRecordsRequest,
        recorder: StatisticsRecorder,
    ) -> Result<ResponseStream<proto::SummarizeRecordsResponse>, Fault> {
        let name = parse::stream_name(request.stream.clone())?;
        let stream = self.logs.open(access.account_of(&name)?, &name).await?;
        let plan = plan(&request)?;
        let mut open = self.logs.summarize(&stream, plan).await?;
        Ok(response_stream::spawn(|sender| async move {
            let mut told = Instant::now();
            while sender.unless_closed(open.proceed()).await?.map_err(failed)? {
                if told.elapsed() >= PROGRESS {
                    let cost = Some(open.cost());
                    sender
                        .send(proto::SummarizeRecordsResponse { groups: Vec::new(), cost })
                        .await?;
                    told = Instant::now();
                }
            }
            let groups = open.summary().groups();
            let mut cost = open.cost();
            cost.records_returned = groups.len() as u64;
            recorder.record(|statistics| {
                statistics.scanned += cost.records_scanned;
                statistics.returned += cost.records_returned;
            });
            let mut groups = groups.iter().map(group).peekable();
            while groups.peek().is_some() {
                let (mut part, mut bytes) = (Vec::new(), 0);
                while bytes < BYTES_MAX
                    && let Some(group) = groups.next()
                {
                    bytes += GROUP_BYTES + group.key.iter().map(bytes_of).sum::<usize>();
                    part.push(group);
                }
                sender
                    .send(proto::SummarizeRecordsResponse { groups: part, cost: Some(cost) })
                    .await?;
            }
            // The cost of a summary without groups.
            sender
                .send(proto::SummarizeRecordsResponse { groups: Vec::new(), cost: Some(cost) })
                .await
        }))
    }
}

/// What a request summarizes.
///
/// # Errors
/// Every violated rule.
fn plan(request: &proto::SummarizeRecordsRequest) -> Result<SummaryPlan, Fault> {
    let mut violations = Violations::default();
    let times = parse::times(request.start_time, request.end_time, &mut violations);
    let predicate = read::predicate(&request.filter, &mut violations);
    let within = predicate.as_ref().map_or(0..u64::MAX, |predicate| predicate.times());
    let plan = SummaryPlan {
        times: times.start.max(within.start)..times.end.min(within.end),
        predicate,
        interval: interval(request.interval, &mut violations),
        group_by: group_by(&request.group_by, &mut violations),
        value: value(&request.value, &mut violations),
        quantiles: quantiles(request, &mut violations),
    };
    violations.check(plan)
}

fn interval(
    given: Option<prost_types::Duration>,
    violations: &mut Violations,
) -> Option<NonZeroU64> {
    let rule = ("interval", "must be 1 millisecond to 36,500 days");
    let interval = parse::between(given, INTERVAL, rule, violations)?;
    NonZeroU64::new(u64::try_from(interval.as_nanos()).unwrap_or(u64::MAX))
}

fn group_by(names: &[String], violations: &mut Violations) -> Vec<Property> {
    if names.len() > GROUP_BY_MAX {
        let rule = format!("must be at most 8 properties: count=`{}`", names.len());
        violations.push(Reason::OutOfRangeInput, "group_by", rule);
    }
    let mut properties = Vec::new();
    for (index, name) in names.iter().enumerate().take(GROUP_BY_MAX) {
        let property = filter::property(name).and_then(|property| match property {
            Property::Time => Err("must not be `time`: give an `interval`".to_owned()),
            property if properties.contains(&property) => {
                Err(format!("must be unique: value=`{}`", quoted(name)))
            }
            property => Ok(property),
        });
        match property {
            Ok(property) => properties.push(property),
            Err(rule) => violations.push(Reason::InvalidInput, format!("group_by[{index}]"), rule),
        }
    }
    properties
}

fn value(name: &str, violations: &mut Violations) -> Option<Property> {
    if name.is_empty() {
        return None;
    }
    let property = filter::property(name).and_then(|property| match property {
        Property::Value
        | Property::Severity
        | Property::Sequence
        | Property::Attribute(_)
        | Property::Resource(_) => Ok(property),
        _ => {
            let numbers = "`value`, `severity`, `sequence`, `attributes/KEY` or `resource/KEY`";
            Err(format!("must be a property with numbers, {numbers}: value=`{}`", quoted(name)))
        }
    });
    property.map_err(|rule| violations.push(Reason::InvalidInput, "value", rule)).ok()
}

fn quantiles(request: &proto::SummarizeRecordsRequest, violations: &mut Violations) -> Vec<f64> {
    let quantiles = &request.quantiles;
    let mut reject = |rule| violations.push(Reason::OutOfRangeInput, "quantiles", rule);
    if quantiles.len() > QUANTILES_MAX {
        reject(format!("must be at most 16: count=`{}`", quantiles.len()));
    }
    if let Some(outside) = quantiles.iter().find(|part| !(0.0..=1.0).contains(*part)) {
        reject(format!("must be 0 to 1: value=`{outside}`"));
    }
    if !quantiles.is_empty() && request.value.is_empty() {
        reject("need a `value`, the property that they are of".to_owned());
    }
    quantiles.clone()
}

fn group(group: &SummaryGroup<'_>) -> proto::RecordGroup {
    let key = group.key.iter().map(|value| AnyValue { value: value.as_ref().map(any_value) });
    proto::RecordGroup {
        start_time: group.start.map(render::time),
        key: key.collect(),
        records: group.records,
        numbers: group.numbers.as_ref().map(numbers),
    }
}

fn any_value(value: &ValueRef<'_>) -> Value {
    match value {
        ValueRef::Str(text) => Value::StringValue(text.to_string()),
        ValueRef::Int(number) => Value::IntValue(*number),
        ValueRef::Double(number) => Value::DoubleValue(*number),
        ValueRef::Bool(truth) => Value::BoolValue(*truth),
        ValueRef::Bytes(bytes) => Value::BytesValue(bytes.to_vec().into()),
    }
}

/// The bytes of a text.
fn bytes_of(value: &AnyValue) -> usize {
    match &value.value {
        Some(Value::StringValue(text)) => text.len(),
        Some(Value::BytesValue(bytes)) => bytes.len(),
        _ => 0,
    }
}

fn numbers(numbers: &NumberSummary) -> proto::NumberSummary {
    let NumberSummary { count, sum, min, max, quantiles } = numbers;
    proto::NumberSummary {
        count: *count,
        sum: *sum,
        min: *min,
        max: *max,
        quantiles: quantiles.clone(),
    }
}
