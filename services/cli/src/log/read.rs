//! `read`: the records of a time range, as they arrive.

use prost::Message as _;
use serde_json::json;
use tonic::Streaming;
use trestle_command::{
    client::Session,
    errors::CliError,
    output::{self, Context, Output, OutputFormat, counted, report_line, thousands},
    retry::Retries,
};
use trestle_proto::log::v1::{
    LogReadCost, ReadDirection, ReadRecordsRequest, Record, wire::ReadRecordsResponse,
};

use super::{ReadLogArgs, args::RecordFilterArgs, print, when};

/// Fields by the names that they are printed with.
const FIELDS: [(&str, &str); 3] = [
    ("time", "time_unix_nano"),
    ("observed_time", "observed_time_unix_nano"),
    ("severity", "severity_number"),
];

/// The columns of CSV.
pub(super) const COLUMNS: [&str; 15] = [
    "time",
    "observed_time",
    "severity_number",
    "severity_text",
    "event_name",
    "value",
    "body",
    "attributes",
    "resource",
    "trace_id",
    "span_id",
    "scope",
    "scope_version",
    "scope_attributes",
    "sequence",
];

/// Prints the records of a range.
pub(super) async fn run(context: &mut Context, args: ReadLogArgs) -> Result<(), CliError> {
    let (start_time, end_time) = when::range(args.since, args.until, when::now())?;
    let direction = match args.reverse {
        true => ReadDirection::Backward,
        false => ReadDirection::Forward,
    };
    let request = ReadRecordsRequest {
        stream: args.stream,
        start_time,
        end_time,
        direction: direction.into(),
        filter: args.records.condition(),
        fields: mask(&args.records),
        limit: args.limit.unwrap_or_default(),
        resume_token: String::new(),
    };
    let mut read = RecordScan::new(&context.session, request);
    while let Some(records) = read.next().await? {
        records.iter().try_for_each(|record| print(&mut context.output, record))?;
        context.output.flush()?;
    }
    if context.output.format() == OutputFormat::Csv {
        // The header, where there was no record.
        context.output.records(&[], &COLUMNS)?;
    }
    let cost = read.cost();
    if args.cost {
        report_cost(&cost, context.output.is_json());
    } else if !context.output.is_json() {
        report_line(&counted(cost.records_returned, "record"));
    }
    Ok(())
}

/// Prints a record.
pub(super) fn print(output: &mut Output, record: &Record) -> Result<(), CliError> {
    match output.format() {
        OutputFormat::Json | OutputFormat::Jsonl => output.line(&print::object(record).to_string()),
        OutputFormat::Csv => output.records(&[print::object(record)], &COLUMNS),
        OutputFormat::Table | OutputFormat::Plain => output.line(&print::line(record)),
    }
}

/// The fields to return; none for all.
pub(super) fn mask(args: &RecordFilterArgs) -> Option<prost_types::FieldMask> {
    let path = |name: &String| {
        let found = FIELDS.iter().find(|(printed, _)| printed == name);
        found.map_or_else(|| name.clone(), |(_, path)| (*path).to_owned())
    };
    let mut paths: Vec<_> = args.fields.iter().map(path).collect();
    // Names are shown beside numbers.
    if args.fields.iter().any(|name| name == "severity") {
        paths.push("severity_text".to_owned());
    }
    (!paths.is_empty()).then_some(prost_types::FieldMask { paths })
}

/// A read that continues after a broken connection.
pub(super) struct RecordScan {
    session: Session,
    request: ReadRecordsRequest,
    messages: Option<Streaming<ReadRecordsResponse>>,
    retries: Retries,
    returned: u64,
    /// Of the calls before the present one.
    spent: LogReadCost,
    /// Of the present call.
    cost: LogReadCost,
}

impl RecordScan {
    pub(super) fn new(session: &Session, request: ReadRecordsRequest) -> Self {
        Self {
            session: session.clone(),
            request,
            messages: None,
            retries: session.first_tries(),
            returned: 0,
            spent: LogReadCost::default(),
            cost: LogReadCost::default(),
        }
    }

    /// The next records; none at the end.
    ///
    /// # Errors
    /// An error that retries did not end.
    pub(super) async fn next(&mut self) -> Result<Option<Vec<Record>>, CliError> {
        loop {
            match self.message().await {
                Ok(None) => return Ok(None),
                Ok(Some(message)) => return self.received(message).map(Some),
                Err(error) => {
                    self.messages = None;
                    self.retries.wait(error).await?;
                    if self.request.limit > 0 && self.request.limit == self.returned {
                        return Ok(None);
                    }
                }
            }
        }
    }

    async fn message(&mut self) -> Result<Option<ReadRecordsResponse>, CliError> {
        if self.messages.is_none() {
            self.spent = self.cost();
            self.cost = LogReadCost::default();
            let mut request = self.request.clone();
            request.limit = request.limit.saturating_sub(self.returned);
            let call = self.session.logs().read_records(request).await?;
            self.messages = Some(call.into_inner());
        }
        match &mut self.messages {
            Some(messages) => Ok(messages.message().await?),
            None => Ok(None),
        }
    }

    fn received(&mut self, message: ReadRecordsResponse) -> Result<Vec<Record>, CliError> {
        self.retries = Retries::default();
        let records = decoded(&message.records)?;
        self.returned += u64::try_from(records.len()).unwrap_or_default();
        if !message.resume_token.is_empty() {
            self.request.resume_token = message.resume_token;
        }
        // Each message has the cost of its call so far.
        self.cost = message.cost.unwrap_or(self.cost);
        Ok(records)
    }

    /// Continues behind the records so far; empty before the first ones.
    pub(super) fn resume_token(&self) -> &str {
        &self.request.resume_token
    }

    /// What the read cost so far.
    pub(super) fn cost(&self) -> LogReadCost {
        let (a, b) = (&self.spent, &self.cost);
        LogReadCost {
            segments: a.segments.max(b.segments),
            bytes: a.bytes + b.bytes,
            records_scanned: a.records_scanned + b.records_scanned,
            records_returned: self.returned,
        }
    }
}

/// Decodes records.
pub(super) fn decoded(records: &[bytes::Bytes]) -> Result<Vec<Record>, CliError> {
    let decode = |record: &bytes::Bytes| Record::decode(record.clone());
    let decoded: Result<_, _> = records.iter().map(decode).collect();
    decoded.map_err(|error| CliError::Protocol(error.to_string()))
}

/// Reports what a read cost, on standard error.
pub(super) fn report_cost(cost: &LogReadCost, json: bool) {
    let LogReadCost { segments, bytes, records_scanned, records_returned } = *cost;
    report_line(&match json {
        true => {
            let cost = json!({
                "segments": segments, "bytes": bytes, "scanned": records_scanned,
                "returned": records_returned,
            });
            json!({ "cost": cost }).to_string()
        }
        false => format!(
            "cost: {}, {}, {} scanned, {} returned",
            counted(segments, "segment"),
            output::bytes(bytes),
            thousands(records_scanned),
            thousands(records_returned)
        ),
    });
}
