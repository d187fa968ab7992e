//! `tail`: the last records, and those that follow.

use trestle_command::{errors::CliError, output::Context, retry::Retries};
use trestle_proto::log::v1::{
    ReadDirection, ReadRecordsRequest, TailRecordsRequest, tail_records_request::Start,
};

use super::{
    TailLogArgs,
    read::{self, RecordScan, decoded, mask},
};

/// Prints the last records.
pub(super) async fn run(context: &mut Context, args: TailLogArgs) -> Result<(), CliError> {
    if args.follow { follow(context, args).await } else { last(context, args).await }
}

/// Prints the last records by time, oldest first.
async fn last(context: &mut Context, args: TailLogArgs) -> Result<(), CliError> {
    if args.lines == 0 {
        return Ok(());
    }
    let request = ReadRecordsRequest {
        fields: mask(&args.records),
        stream: args.stream,
        direction: ReadDirection::Backward.into(),
        filter: args.records.filter,
        limit: args.lines.into(),
        ..ReadRecordsRequest::default()
    };
    let mut scan = RecordScan::new(&context.session, request);
    let mut all = Vec::new();
    while let Some(records) = scan.next().await? {
        all.extend(records);
    }
    all.iter().rev().try_for_each(|record| read::print(&mut context.output, record))
}

/// Prints records as they are appended. A broken connection continues behind the last one.
async fn follow(context: &mut Context, args: TailLogArgs) -> Result<(), CliError> {
    let mut request = TailRecordsRequest {
        fields: mask(&args.records),
        stream: args.stream,
        filter: args.records.filter,
        start: Some(Start::Last(args.lines)),
    };
    let mut retries = context.session.first_tries();
    loop {
        let error = match attempt(context, &mut request, &mut retries).await {
            Ok(()) => tonic::Status::unavailable("stream ended").into(),
            Err(error) => error,
        };
        retries.wait(error).await?;
    }
}

async fn attempt(
    context: &mut Context,
    request: &mut TailRecordsRequest,
    retries: &mut Retries,
) -> Result<(), CliError> {
    let call = context.session.logs().tail_records(request.clone()).await?;
    let mut messages = call.into_inner();
    while let Some(message) = messages.message().await? {
        *retries = Retries::default();
        let records = decoded(&message.records)?;
        records.iter().try_for_each(|record| read::print(&mut context.output, record))?;
        context.output.flush()?;
        request.start = Some(Start::FromSequence(message.next_sequence));
    }
    Ok(())
}
