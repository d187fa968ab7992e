//! `export`: the records of a range as a file, in memory that does not grow with the range.

use std::io::{self, Write};

use indicatif::ProgressBar;
use prost_types::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use trestle_command::{
    errors::CliError,
    flags::ClientArgs,
    output::{Context, cell_text},
};
use trestle_proto::log::v1::{ReadDirection, ReadRecordsRequest, Record};

use super::{
    args::ExportLogArgs,
    print,
    read::{COLUMNS, RecordScan, mask},
    when::{self, TimeBound},
};
use crate::export::{self, ExportFormat, ExportOrder, ExportPage, ExportSource, ExportWriter};

/// Exports records.
pub(super) async fn run(
    context: &mut Context,
    args: ExportLogArgs,
    client: &ClientArgs,
) -> Result<(), CliError> {
    let format = ExportFormat::of(&args.file, args.format, client.output.format)?;
    if format == ExportFormat::Parquet {
        let stream = &args.stream;
        return Err(CliError::Usage(format!(
            "records are exported as JSONL or CSV; the segments of a stream are files of Parquet \
             already: `trestle log segments {stream}` lists them"
        )));
    }
    let text = |bound: Option<TimeBound>| bound.map(TimeBound::text);
    let job = json!({
        "endpoint": client.endpoint, "stream": args.stream, "since": text(args.since),
        "until": text(args.until), "filter": args.records.condition(),
        "fields": args.records.fields, "format": format.name().to_lowercase(),
    });
    let order = ExportOrder {
        file: args.file.clone(),
        resume: args.resume,
        is_resumable: true,
        job,
        endpoint: client.endpoint.clone(),
    };
    export::run(context, order, ExportedRecords { args, format, scan: None }).await
}

/// The range of an export: a time ago is the same when it is continued. Seconds and nanoseconds since 1970.
#[derive(Debug, Default, Serialize, Deserialize)]
struct ExportedRange {
    start: Option<(i64, i32)>,
    end: Option<(i64, i32)>,
}

struct ExportedRecords {
    args: ExportLogArgs,
    format: ExportFormat,
    scan: Option<RecordScan>,
}

impl ExportSource for ExportedRecords {
    type Row = Record;
    type Plan = ExportedRange;
    type Writer<W: Write + Send> = RecordFileWriter<W>;

    const ROW: &'static str = "record";

    async fn plan(&self, _: &Context, _: &ProgressBar) -> Result<ExportedRange, CliError> {
        let (start, end) = when::range(self.args.since, self.args.until, when::now())?;
        let pair = |time: Timestamp| (time.seconds, time.nanos);
        Ok(ExportedRange { start: start.map(pair), end: end.map(pair) })
    }

    fn read(&mut self, context: &Context, plan: &ExportedRange, resume_token: &str) {
        let time =
            |pair: Option<(i64, i32)>| pair.map(|(seconds, nanos)| Timestamp { seconds, nanos });
        let request = ReadRecordsRequest {
            stream: self.args.stream.clone(),
            start_time: time(plan.start),
            end_time: time(plan.end),
            direction: ReadDirection::Forward.into(),
            filter: self.args.records.condition(),
            fields: mask(&self.args.records),
            limit: 0,
            resume_token: resume_token.to_owned(),
        };
        self.scan = Some(RecordScan::new(&context.session, request));
    }

    async fn next(&mut self) -> Result<Option<ExportPage<Record>>, CliError> {
        let Some(scan) = &mut self.scan else { return Ok(None) };
        let Some(rows) = scan.next().await? else { return Ok(None) };
        let resume_token = scan.resume_token().to_owned();
        Ok(Some(ExportPage { rows, resume_token }))
    }

    fn writer<W: Write + Send>(
        &self,
        out: W,
        _: &ExportedRange,
        is_rest: bool,
    ) -> io::Result<RecordFileWriter<W>> {
        if self.format == ExportFormat::Jsonl {
            return Ok(RecordFileWriter::Jsonl(out));
        }
        let mut writer = csv::Writer::from_writer(out);
        if !is_rest {
            writer.write_record(COLUMNS)?;
        }
        Ok(RecordFileWriter::Csv(Box::new(writer)))
    }
}

enum RecordFileWriter<W: Write> {
    Jsonl(W),
    Csv(Box<csv::Writer<W>>),
}

impl<W: Write + Send> ExportWriter<Record> for RecordFileWriter<W> {
    fn write(&mut self, row: &Record) -> io::Result<()> {
        let object = print::object(row);
        match self {
            Self::Jsonl(out) => writeln!(out, "{object}"),
            Self::Csv(out) => {
                let cell = |name: &&str| cell_text(object.get(*name).unwrap_or(&Value::Null));
                Ok(out.write_record(COLUMNS.iter().map(cell))?)
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Jsonl(out) => out.flush(),
            Self::Csv(out) => out.flush(),
        }
    }

    fn finish(mut self) -> io::Result<()> {
        self.flush()
    }
}
