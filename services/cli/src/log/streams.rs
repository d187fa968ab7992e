//! `create`, `list`, `show`, `update`, `delete` and `flush`.

use std::time::Duration;

use serde_json::{Value, json};
use trestle_command::{
    confirm::{confirm, require_found},
    errors::CliError,
    messages::proto_duration,
    output::{Context, counted, with_fields},
};
use trestle_proto::log::v1::{
    CreateStreamRequest, DeleteStreamRequest, FlushStreamRequest, GetStreamRequest,
    ListStreamsRequest, LogStream, LogStreamStats, RollPolicy, UpdateStreamRequest,
};

use super::{
    CreateStreamArgs, UpdateStreamArgs,
    args::{RetentionArg, StreamSettingsArgs},
    settings::promoted_text,
};
use crate::datetime;

/// The stream of these settings.
fn stream(
    name: String,
    retention: Option<Duration>,
    settings: StreamSettingsArgs,
) -> Result<LogStream, CliError> {
    let has_policy = settings.roll_age.is_some() || settings.roll_bytes.is_some();
    let roll_policy = has_policy.then(|| RollPolicy {
        max_age: settings.roll_age.map(proto_duration),
        max_bytes: settings.roll_bytes.unwrap_or_default(),
    });
    let mut stream = LogStream {
        name,
        retention: retention.map(proto_duration),
        roll_policy,
        promoted_attributes: settings.promote,
        ..LogStream::default()
    };
    for (key, value) in settings.label {
        // A map in a message has each key once, so the server cannot detect repeats.
        if stream.labels.insert(key.clone(), value).is_some() {
            return Err(CliError::Usage(format!("each label must have another key: `{key}`")));
        }
    }
    Ok(stream)
}

/// Creates a stream.
pub(super) async fn create(context: &mut Context, args: CreateStreamArgs) -> Result<(), CliError> {
    let name = args.stream.clone();
    let stream = stream(args.stream, args.retention, args.settings)?;
    let request = CreateStreamRequest { stream: Some(stream) };
    let created = context.session.logs().create_stream(request).await?.into_inner().created;
    let text = match created {
        true => format!("created stream {name}"),
        false => format!("stream {name} already exists, with the same settings"),
    };
    context.output.either(&text, &json!({ "stream": name, "created": created }))
}

/// The fields of a listing; a table has the first four.
const COLUMNS: [&str; 7] = [
    "stream",
    "create_time",
    "retention_seconds",
    "labels",
    "roll_age_seconds",
    "roll_bytes",
    "promoted",
];

/// Prints the streams whose names have the prefix.
pub(super) async fn list(context: &mut Context, prefix: String) -> Result<(), CliError> {
    let (mut page_token, mut printed) = (String::new(), false);
    loop {
        let request = ListStreamsRequest { prefix: prefix.clone(), page_size: None, page_token };
        let page = context.session.logs().list_streams(request).await?.into_inner();
        let records: Vec<_> = page.streams.iter().map(record).collect();
        // A table has the width of a terminal.
        let shown = if context.output.is_table() { 4 } else { COLUMNS.len() };
        context.output.records(&records, COLUMNS.get(..shown).unwrap_or(&COLUMNS))?;
        printed |= !records.is_empty();
        page_token = page.next_page_token;
        if page_token.is_empty() {
            return context.output.unless_empty(printed, "no streams");
        }
    }
}

/// Prints the settings and the statistics of a stream.
pub(super) async fn show(context: &mut Context, stream: String) -> Result<(), CliError> {
    let request = GetStreamRequest { stream };
    let found = context.session.logs().get_stream(request).await?.into_inner();
    let stream = found.stream.ok_or_else(|| CliError::Protocol("no stream".to_owned()))?;
    let record = with_fields(record(&stream), stats(&found.stats.unwrap_or_default()));
    context.output.record(["Property", "Value"], &record)
}

/// Changes the settings that are given.
pub(super) async fn update(context: &mut Context, args: UpdateStreamArgs) -> Result<(), CliError> {
    let name = args.stream.clone();
    let retention = args.retention.and_then(|RetentionArg(retention)| retention);
    let has_retention = args.retention.is_some();
    let stream = stream(args.stream, retention, args.settings)?;
    let given = [
        ("retention", has_retention),
        ("roll_policy", stream.roll_policy.is_some()),
        ("promoted_attributes", !stream.promoted_attributes.is_empty()),
        ("labels", !stream.labels.is_empty()),
    ];
    let paths = given.into_iter().filter(|(_, given)| *given);
    let paths: Vec<_> = paths.map(|(path, _)| path.to_owned()).collect();
    if paths.is_empty() {
        return Err(CliError::Usage("nothing to change: give a setting".to_owned()));
    }
    let update_mask = Some(prost_types::FieldMask { paths: paths.clone() });
    let request = UpdateStreamRequest { stream: Some(stream), update_mask };
    context.session.logs().update_stream(request).await?;
    let text = format!("changed {} of stream {name}", paths.join(", "));
    context.output.either(&text, &json!({ "stream": name, "changed": paths }))
}

/// Deletes a stream.
pub(super) async fn delete(
    context: &mut Context,
    stream: String,
    yes: bool,
) -> Result<(), CliError> {
    if !yes {
        let request = GetStreamRequest { stream: stream.clone() };
        require_found(context.session.logs().get_stream(request).await)?;
    }
    confirm(yes, "deleting a stream", "stream", &stream)?;
    let request = DeleteStreamRequest { stream: stream.clone() };
    context.session.logs().delete_stream(request).await?;
    let text = format!("deleted stream {stream}");
    context.output.either(&text, &json!({ "stream": stream, "deleted": true }))
}

/// Seals the records of a stream.
pub(super) async fn flush(context: &mut Context, stream: String) -> Result<(), CliError> {
    let request = FlushStreamRequest { stream: stream.clone() };
    let flushed = context.session.logs().flush_stream(request).await?.into_inner();
    let text = format!(
        "sealed {} of stream {stream} into {}",
        counted(flushed.records, "record"),
        counted(flushed.segments.into(), "segment")
    );
    let object = json!({
        "stream": stream, "records": flushed.records, "segments": flushed.segments,
        "snapshot": flushed.snapshot,
    });
    context.output.either(&text, &object)
}

fn record(stream: &LogStream) -> Value {
    let policy = stream.roll_policy.unwrap_or_default();
    let promoted = stream.promoted_attributes.iter().map(promoted_text);
    json!({
        "stream": stream.name,
        "create_time": stream.create_time.as_ref().and_then(datetime::format),
        "labels": stream.labels,
        "retention_seconds": stream.retention.map(|retention| retention.seconds),
        "roll_age_seconds": policy.max_age.map(|age| age.seconds),
        "roll_bytes": policy.max_bytes,
        "promoted": promoted.collect::<Vec<_>>(),
    })
}

fn stats(stats: &LogStreamStats) -> Value {
    json!({
        "next_sequence": stats.next_sequence,
        "unsealed_records": stats.unsealed_records,
        "unsealed_bytes": stats.unsealed_bytes,
        "segments": stats.segments,
        "segment_records": stats.segment_records,
        "segment_bytes": stats.segment_bytes,
        "snapshot": stats.snapshot,
    })
}
