//! The command line of `trestle log`.

use std::{path::PathBuf, time::Duration};

use chrono::FixedOffset;
use clap::{Args, Subcommand};
use trestle_command::{
    errors::{LOG_EXIT_CODES as EXIT_CODES, with_help},
    values::{DURATION_MAX, time_between, whole_number},
};
use trestle_proto::log::v1::PromotedAttribute;

use super::{
    input::{self, FieldNames, LineFormat, TimestampPattern},
    settings::{bytes, key_value, promoted},
    when::{TimeBound, bound},
};
use crate::export::ExportFormat;

const APPEND_HELP: &str = "\
json: one object a line. The time is in `time`, `timestamp`, `ts` or `@timestamp`: RFC 3339, or a number of seconds,
milliseconds, microseconds or nanoseconds since 1970; the severity in `severity` or `level`; the body in `body`,
`message` or `msg`; `trace_id`, `span_id`, `event_name`, `value` and `attributes` are as `trestle log read` prints them.
Everything else is an attribute. --time-field, --severity-field and --body-field name the fields of other programs, also
of objects in the object, such as log.level. Lines of `journalctl -o json`, of Serilog (CLEF) and of Docker (json-file)
are recognised.

otlp-json: one export request of OpenTelemetry a line, as the file exporter of its collector writes them.

text: the line is the body. With --timestamp-pattern a line begins with a time, and the rest is the body. %f is the
digits of a fraction of a second, %.f the same with the point before them.

syslog: RFC 5424 or RFC 3164. logfmt: key=value pairs, with the keys of json.

A time without a zone is in that of --utc-offset; without a year it is in the last twelve months. A record without a
time gets that at which the server receives it; how many did is reported on standard error.

Progress is kept in FILE.trestle-append until everything is appended; --resume continues there. A batch that was sent
but not yet answered is sent again under the same request id: within 10 minutes the server appends it only once.";

const EXPORT_HELP: &str = "\
JSONL: every field of a record, as `trestle log read -o jsonl` prints it. `trestle log append` reads the file, and
appends equal records, with sequences of their own. CSV has the columns of `trestle log read -o csv`. The segments of a
stream are files of Parquet already: `trestle log segments` lists them.

The file is written as FILE.trestle-part and takes its name when it is complete and on stable storage. A pipe or a
device is written to directly. Progress is kept in FILE.trestle-export; --resume continues there, with the same --since
and --until, which are the times that they were at the start. Records that are appended meanwhile, at times that were
passed, are not in it.";

/// Commands on streams of log records.
#[derive(Debug, Subcommand)]
#[command(after_help = EXIT_CODES, mut_subcommands = |it| with_help(it, EXIT_CODES))]
pub enum LogCommand {
    /// Create a stream
    Create(CreateStreamArgs),
    /// List streams, ordered by name
    List {
        /// Only streams whose name begins so
        #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true)]
        prefix: String,
    },
    /// Show the settings and the statistics of a stream
    Show {
        /// Name of the stream
        stream: String,
    },
    /// Change settings of a stream
    Update(UpdateStreamArgs),
    /// Delete a stream with its records and segments
    ///
    /// Takes `--yes`, or its name typed at the prompt on a terminal. Without a terminal and without `--yes` nothing is
    /// deleted and the exit code is 2.
    Delete {
        /// Name of the stream
        stream: String,
        /// Delete without confirmation
        #[arg(long, short = 'y')]
        yes: bool,
    },
    /// Append the lines of a file, or of standard input
    #[command(after_long_help = APPEND_HELP)]
    Append(Box<AppendLogArgs>),
    /// Print records of a time range, ordered by time
    ///
    /// With -o table and -o plain a record is one line of text, not columns: time, severity, body, and the others as
    /// KEY=VALUE. -o csv has columns, -o jsonl every field.
    Read(ReadLogArgs),
    /// Write the records of a time range to a file, ordered by time
    #[command(after_long_help = EXPORT_HELP)]
    Export(ExportLogArgs),
    /// Count records, and summarize their numbers, by time and by property
    ///
    /// The server reads the records, and returns the groups. STATISTIC is count, rate (records a second), sum, avg,
    /// min, max, median or a percentile such as p95, within 1 % of the exact one. GROUP is second, minute, hour, day
    /// or a time such as 5m, and properties by their names in filters. Groups are in order of time, then the largest
    /// first.
    ///
    /// trestle log stats app by minute severity
    ///
    /// trestle log stats app p50 p99 rate --of attributes/duration_ms --since 1h by attributes/http.route
    Stats(Box<LogStatsArgs>),
    /// Print the last records; with `-f`, those that follow too
    ///
    /// Records have the forms of `trestle log read`.
    Tail(TailLogArgs),
    /// List the segments of a stream: Parquet files that other programs can read
    Segments(SegmentsArgs),
    /// Restore the segments that the retention of a stream removed within the last day
    ///
    /// Those that are past the retention remain removed: give it a longer one first, with `trestle log update`.
    Undelete {
        /// Name of the stream
        stream: String,
    },
    /// Read every byte of the segments of a stream, which the server verifies against its checksum, and report damaged
    /// ones
    ///
    /// Reports what is in a damaged segment, and how many of its records can be read. It is set aside: merges leave it
    /// out, and `segments` shows it. The exit code is 1 if a segment is damaged or cannot be read.
    Verify(SegmentsArgs),
    /// Remove a damaged segment with all of its records, so that reads of its times succeed again
    ///
    /// Takes `--yes`, or its id typed at the prompt on a terminal. A segment that can be read is not removed.
    DropSegment {
        /// Name of the stream
        stream: String,
        /// Id of the segment, as `verify` and `segments` print it
        id: u64,
        /// Remove without confirmation
        #[arg(long, short = 'y')]
        yes: bool,
    },
    /// Seal the records of a stream into segments now
    Flush {
        /// Name of the stream
        stream: String,
    },
}

/// Shortest retention of records.
const RETENTION_MIN: &str = "1m";

/// Settings of a stream that can change.
#[derive(Debug, Clone, Args)]
pub(super) struct StreamSettingsArgs {
    /// Seal records into a segment after this time, 1s to 1d [server default: 5m]
    #[arg(long, value_parser = time_between("1s", "1d"), value_name = "TIME")]
    pub(super) roll_age: Option<Duration>,
    /// Seal records into a segment at this size, 64KiB to 256MiB [server default: 64MiB]
    #[arg(long, value_parser = bytes, value_name = "BYTES")]
    pub(super) roll_bytes: Option<u64>,
    /// An attribute with a typed column in segments; TYPE is string, int64, double or boolean; `indexed` adds a bloom
    /// filter
    #[arg(long, value_parser = promoted, value_name = "KEY:TYPE[:indexed]")]
    pub(super) promote: Vec<PromotedAttribute>,
    /// A label of the stream
    #[arg(long, value_parser = key_value, value_name = "KEY=VALUE")]
    pub(super) label: Vec<(String, String)>,
}

/// Arguments of `create`.
#[derive(Debug, Clone, Args)]
pub struct CreateStreamArgs {
    /// Name: lower-case letters, digits, `.`, `_` and `-`
    pub(super) stream: String,
    /// Delete records after this time, 1m to 36500d [default: never]
    #[arg(long, value_parser = time_between(RETENTION_MIN, DURATION_MAX), value_name = "TIME")]
    pub(super) retention: Option<Duration>,
    /// Settings that can change
    #[command(flatten)]
    pub(super) settings: StreamSettingsArgs,
}

/// Arguments of `update`.
#[derive(Debug, Clone, Args)]
pub struct UpdateStreamArgs {
    /// Name of the stream
    pub(super) stream: String,
    /// Delete records after this time, 1m to 36500d, or `off`
    #[arg(long, value_parser = retention, value_name = "TIME")]
    pub(super) retention: Option<RetentionArg>,
    /// Replaces the roll policy, the promoted attributes or the labels that are given
    #[command(flatten)]
    pub(super) settings: StreamSettingsArgs,
}

/// A new retention; none for no limit.
#[derive(Debug, Clone, Copy)]
pub(super) struct RetentionArg(pub(super) Option<Duration>);

fn utc_offset(text: &str) -> Result<FixedOffset, String> {
    text.parse().map_err(|_| "must be -23:59 to +23:59, such as +02:00".to_owned())
}

fn retention(text: &str) -> Result<RetentionArg, String> {
    match text {
        "off" => Ok(RetentionArg(None)),
        text => match time_between(RETENTION_MIN, DURATION_MAX)(text) {
            Ok(time) => Ok(RetentionArg(Some(time))),
            Err(rule) => Err(format!("{rule}; or `off`")),
        },
    }
}

/// Arguments of `append`.
#[derive(Debug, Clone, Args)]
pub struct AppendLogArgs {
    /// Name of the stream
    pub(super) stream: String,
    /// The file; `-` reads standard input
    #[arg(default_value = "-")]
    pub(super) file: PathBuf,
    /// Format of the lines
    #[arg(long, value_enum, default_value_t = LineFormat::Json)]
    pub(super) format: LineFormat,
    /// The time at the beginning of a line of text, such as '%Y-%m-%d %H:%M:%S%.f' (strptime)
    #[arg(long, value_parser = input::timestamp_pattern, value_name = "PATTERN")]
    pub(super) timestamp_pattern: Option<TimestampPattern>,
    /// The names of fields
    #[command(flatten)]
    pub(super) fields: FieldNameArgs,
    /// The zone of times without one, such as +02:00
    #[arg(long, value_name = "OFFSET", default_value = "+00:00", allow_hyphen_values = true)]
    #[arg(value_parser = utc_offset)]
    pub(super) utc_offset: FixedOffset,
    /// Most records of a batch
    #[arg(long, value_name = "N", default_value_t = 1000)]
    #[arg(value_parser = whole_number::<u32>(1..=u32::MAX.into()))]
    pub(super) batch: u32,
    /// An attribute of what emitted the records, such as service.name=orders
    #[arg(long, value_parser = key_value, value_name = "KEY=VALUE")]
    pub(super) resource: Vec<(String, String)>,
    /// Derive request ids from this text instead of a random one: appending the same file again within 10 minutes
    /// appends nothing
    #[arg(long, value_parser = input::request_id_prefix, value_name = "TEXT")]
    pub(super) request_id_prefix: Option<String>,
    /// Stop at the first line that is malformed or rejected
    #[arg(long)]
    pub(super) strict: bool,
    /// Continue an interrupted append of this file
    #[arg(long)]
    pub(super) resume: bool,
}

/// The fields of lines of JSON or logfmt that have other names than the usual ones.
#[derive(Debug, Clone, Args)]
pub(super) struct FieldNameArgs {
    /// The field with the time of a line of JSON or logfmt
    #[arg(long, value_name = "NAME")]
    time_field: Option<String>,
    /// The field with its severity
    #[arg(long, value_name = "NAME")]
    severity_field: Option<String>,
    /// The field with its body
    #[arg(long, value_name = "NAME")]
    body_field: Option<String>,
}

impl FieldNameArgs {
    /// The names as lines are read by them.
    pub(super) fn names(&self) -> FieldNames {
        let Self { time_field, severity_field, body_field } = self.clone();
        FieldNames { time: time_field, severity: severity_field, body: body_field }
    }
}

/// Arguments of `segments`.
#[derive(Debug, Clone, Args)]
pub struct SegmentsArgs {
    /// Name of the stream
    pub(super) stream: String,
    /// Segments with records from this time on: 15m, 1h or 7d ago, or 2026-01-31T08:00:00Z
    #[arg(long, value_parser = bound, value_name = "TIME")]
    pub(super) since: Option<TimeBound>,
    /// Segments with records before this time
    #[arg(long, value_parser = bound, value_name = "TIME")]
    pub(super) until: Option<TimeBound>,
}

/// Which records.
#[derive(Debug, Clone, Args)]
pub(super) struct MatchingArgs {
    /// Only records that match, such as "severity ge 'error' and attributes/http.route eq '/pay'"
    #[arg(long, default_value = "", hide_default_value = true)]
    filter: String,
    /// Only records whose body has this text
    #[arg(long, value_name = "TEXT")]
    grep: Option<String>,
}

/// Which records are printed, and what of them.
#[derive(Debug, Clone, Args)]
pub(super) struct RecordFilterArgs {
    /// Which records
    #[command(flatten)]
    matching: MatchingArgs,
    /// Only these fields, separated by commas, such as time,severity,body
    #[arg(long, value_delimiter = ',', value_name = "NAMES")]
    pub(super) fields: Vec<String>,
}

impl RecordFilterArgs {
    /// The condition of the records.
    pub(super) fn condition(&self) -> String {
        self.matching.condition()
    }
}

impl MatchingArgs {
    /// The condition of both flags.
    pub(super) fn condition(&self) -> String {
        let Some(text) = &self.grep else { return self.filter.clone() };
        let found = format!("contains(body, '{}')", text.replace('\'', "''"));
        match self.filter.trim() {
            "" => found,
            filter => format!("({filter}) and {found}"),
        }
    }
}

/// Arguments of `read`.
#[derive(Debug, Clone, Args)]
pub struct ReadLogArgs {
    /// Name of the stream
    pub(super) stream: String,
    /// Records from this time on: 15m, 1h or 7d ago, or 2026-01-31T08:00:00Z
    #[arg(long, value_parser = bound, value_name = "TIME")]
    pub(super) since: Option<TimeBound>,
    /// Records before this time
    #[arg(long, value_parser = bound, value_name = "TIME")]
    pub(super) until: Option<TimeBound>,
    /// Which records
    #[command(flatten)]
    pub(super) records: RecordFilterArgs,
    /// At most this many records
    #[arg(long, value_name = "N", value_parser = whole_number::<u64>(1..=u64::MAX))]
    pub(super) limit: Option<u64>,
    /// Newest first
    #[arg(long)]
    pub(super) reverse: bool,
    /// Also print what the read cost, on standard error
    #[arg(long)]
    pub(super) cost: bool,
}

/// Arguments of `export`.
#[derive(Debug, Clone, Args)]
pub struct ExportLogArgs {
    /// Name of the stream
    pub(super) stream: String,
    /// The file; `-` writes to standard output
    pub(super) file: PathBuf,
    /// Format of the file; by default from its extension, else CSV with `-o csv`, JSONL for standard output
    #[arg(long, value_enum)]
    pub(super) format: Option<ExportFormat>,
    /// Records from this time on: 15m, 1h or 7d ago, or 2026-01-31T08:00:00Z
    #[arg(long, value_parser = bound, value_name = "TIME")]
    pub(super) since: Option<TimeBound>,
    /// Records before this time
    #[arg(long, value_parser = bound, value_name = "TIME")]
    pub(super) until: Option<TimeBound>,
    /// Which records
    #[command(flatten)]
    pub(super) records: RecordFilterArgs,
    /// Continue an interrupted export to this file
    #[arg(long)]
    pub(super) resume: bool,
}

/// Arguments of `stats`.
#[derive(Debug, Clone, Args)]
pub struct LogStatsArgs {
    /// Name of the stream
    pub(super) stream: String,
    /// What is shown of each group; behind `by`, what the groups are [default: count]
    #[arg(value_name = "STATISTIC... by GROUP")]
    pub(super) words: Vec<String>,
    /// The property with the numbers, such as value or attributes/duration_ms
    #[arg(long, value_name = "PROPERTY")]
    pub(super) of: Option<String>,
    /// What the groups are, as behind `by`, separated by commas
    #[arg(long, value_delimiter = ',', value_name = "GROUPS")]
    pub(super) by: Vec<String>,
    /// Records from this time on: 15m, 1h or 7d ago, or 2026-01-31T08:00:00Z
    #[arg(long, value_parser = bound, value_name = "TIME")]
    pub(super) since: Option<TimeBound>,
    /// Records before this time
    #[arg(long, value_parser = bound, value_name = "TIME")]
    pub(super) until: Option<TimeBound>,
    /// Which records
    #[command(flatten)]
    pub(super) matching: MatchingArgs,
    /// At most this many groups, of each interval, the largest
    #[arg(long, value_name = "N", value_parser = whole_number::<u64>(1..=u64::MAX))]
    pub(super) limit: Option<u64>,
    /// Also print what the summary cost, on standard error
    #[arg(long)]
    pub(super) cost: bool,
}

/// Arguments of `tail`.
#[derive(Debug, Clone, Args)]
pub struct TailLogArgs {
    /// Name of the stream
    pub(super) stream: String,
    /// Continue with records as they are appended, until Ctrl-C; a lost connection is reported and tried again for
    /// about half a minute
    #[arg(long, short)]
    pub(super) follow: bool,
    /// Begin with this many of the last records
    #[arg(long, visible_alias = "lines", value_name = "N", default_value_t = 10)]
    #[arg(value_parser = whole_number::<u32>(0..=10_000))]
    pub(super) limit: u32,
    /// Which records
    #[command(flatten)]
    pub(super) records: RecordFilterArgs,
}
