//! `tail`: the last records, and those that follow.

use trestle_command::{
    errors::CliError,
    output::Context,
    retry::{Retries, Temporary as _},
};
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
    if args.limit == 0 {
        return Ok(());
    }
    let request = ReadRecordsRequest {
        fields: mask(&args.records),
        stream: args.stream,
        direction: ReadDirection::Backward.into(),
        filter: args.records.condition(),
        limit: args.limit.into(),
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
    let mut tail = RecordTail {
        request: TailRecordsRequest {
            fields: mask(&args.records),
            stream: args.stream,
            filter: args.records.condition(),
            start: Some(Start::Last(args.limit)),
        },
        retries: context.session.first_tries(),
        is_begun: false,
        is_lost: false,
    };
    loop {
        let error = match tail.attempt(context).await {
            Ok(()) => tonic::Status::unavailable("stream ended").into(),
            Err(error) => error,
        };
        // Once: the tries of one outage are many.
        if tail.is_begun && error.is_temporary() && !tail.is_lost {
            tail.is_lost = true;
            context.output.note(&format!("connection lost, reconnecting: {error}"));
        }
        tail.retries.wait(error).await?;
    }
}

/// Records that are followed over several connections.
struct RecordTail {
    request: TailRecordsRequest,
    retries: Retries,
    /// Whether a call was answered.
    is_begun: bool,
    /// Whether a lost connection was reported, and no call was answered since.
    is_lost: bool,
}

impl RecordTail {
    async fn attempt(&mut self, context: &mut Context) -> Result<(), CliError> {
        let call = context.session.logs().tail_records(self.request.clone()).await?;
        let mut messages = call.into_inner();
        self.is_begun = true;
        if std::mem::take(&mut self.is_lost) {
            context.output.note("connected again");
        }
        while let Some(message) = messages.message().await? {
            self.retries = Retries::default();
            let records = decoded(&message.records)?;
            records.iter().try_for_each(|record| read::print(&mut context.output, record))?;
            context.output.flush()?;
            self.request.start = Some(Start::FromSequence(message.next_sequence));
        }
        Ok(())
    }
}
