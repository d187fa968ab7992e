//! Batches out, acknowledgements in, and both again after a lost connection.
//!
//! Batches are buffered until they are acknowledged, and sent again over a new stream when one breaks. The request ids
//! make that harmless.

use std::collections::VecDeque;

use prost::Message as _;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Code, Status, Streaming};
use tonic_types::{RpcStatusExt as _, Status as RpcStatus};
use trestle_command::{
    client::Session,
    errors::{CliError, needs_an_operator, status_of},
    retry::Retries,
    upload::{describe, is_temporary},
};
use trestle_proto::log::v1::{
    AppendStreamRequest, AppendStreamResponse, append_stream_response::Outcome,
};

use super::{
    batches::{AppendBatch, LineBatches},
    lines::LineStop,
    progress::AppendProgress,
};

/// Most batches in flight: bounds memory to as many MiB.
const WINDOW: usize = 4;

/// An append in progress.
pub(super) struct AppendUpload {
    session: Session,
    stream: String,
    batches: LineBatches,
    /// Sent, or without records; in the order they are sent.
    waiting: VecDeque<AppendBatch>,
    drained: bool,
    retries: Retries,
}

/// How a stream of calls ended.
#[derive(PartialEq, Eq)]
enum StreamEnd {
    /// Everything is acknowledged.
    Done,
    /// What is not acknowledged is to be sent on another one.
    Changed,
}

impl AppendUpload {
    pub(super) fn new(session: &Session, stream: String, batches: LineBatches) -> Self {
        let retries = session.first_tries();
        let (session, waiting) = (session.clone(), VecDeque::new());
        Self { session, stream, batches, waiting, drained: false, retries }
    }

    /// Sends every batch and records every acknowledgement.
    ///
    /// # Errors
    /// An error that retries did not end, a file that cannot be read, and a rejected line where the first one ends the
    /// append.
    pub(super) async fn run(&mut self, progress: &mut AppendProgress) -> Result<(), CliError> {
        loop {
            match self.attempt(progress).await {
                Ok(StreamEnd::Done) => break,
                Ok(StreamEnd::Changed) => {}
                Err(error) => self.retries.wait(error).await?,
            }
        }
        match self.batches.stop.take() {
            None => Ok(()),
            Some(LineStop::Rejected(line, rule)) => Err(rejected(progress, line, &rule)),
            Some(LineStop::File(line, error)) => {
                let what = format!("cannot read `{}` after line {line}", progress.file);
                Err(CliError::file(what)(error))
            }
        }
    }

    /// One stream, until everything is acknowledged or the stream breaks.
    async fn attempt(&mut self, progress: &mut AppendProgress) -> Result<StreamEnd, CliError> {
        // The server may wait for the first request before it responds.
        while !self.has_request(progress) {
            match self.batches.next().await {
                Some(batch) => self.waiting.push_back(batch),
                None => return Ok(StreamEnd::Done),
            }
        }
        progress.begin()?;
        let (sender, requests) = mpsc::channel(WINDOW);
        let mut sent = 0;
        for batch in self.waiting.iter_mut().filter(|batch| !batch.records.is_empty()) {
            send(&sender, batch, (&self.stream, &mut sent));
        }
        let requests = ReceiverStream::new(requests);
        let mut answers = self.session.logs().append_stream(requests).await?.into_inner();
        loop {
            if !self.has_request(progress) && self.drained {
                return Ok(StreamEnd::Done);
            }
            tokio::select! {
                batch = self.batches.next(), if !self.drained && self.waiting.len() < WINDOW => {
                    match batch {
                        None => self.drained = true,
                        Some(mut batch) => {
                            if !batch.records.is_empty() {
                                send(&sender, &mut batch, (&self.stream, &mut sent));
                            }
                            self.waiting.push_back(batch);
                        }
                    }
                }
                answer = next(&mut answers) => match answer {
                    Ok(answer) => {
                        if self.acknowledged(answer, progress)? == StreamEnd::Changed {
                            return Ok(StreamEnd::Changed);
                        }
                    }
                    // The server ends a stream on which nothing was sent for long: the next batch opens another one.
                    Err(_) if self.waiting.is_empty() => return Ok(StreamEnd::Changed),
                    Err(error) => return Err(error.into()),
                }
            }
        }
    }

    /// Whether the first batch is one to send; those before it without records are done.
    fn has_request(&mut self, progress: &mut AppendProgress) -> bool {
        while let Some(batch) = self.waiting.pop_front_if(|batch| batch.records.is_empty()) {
            progress.record(batch, false);
        }
        !self.waiting.is_empty()
    }

    /// Records an acknowledgement, that of the first batch.
    fn acknowledged(
        &mut self,
        answer: AppendStreamResponse,
        progress: &mut AppendProgress,
    ) -> Result<StreamEnd, CliError> {
        let Some(batch) = self.waiting.pop_front() else {
            return Err(CliError::Protocol("an acknowledgement of no append".to_owned()));
        };
        match answer.outcome {
            Some(Outcome::Appended(appended)) => {
                self.retries = Retries::default();
                // Sent twice by this run: its first acknowledgement was on the stream before.
                let is_repeated = appended.is_repeated && batch.sends == 1;
                progress.record(batch, is_repeated);
                Ok(StreamEnd::Done)
            }
            Some(Outcome::Error(error)) => {
                self.waiting.push_front(batch);
                self.failed(&error.into(), progress)
            }
            None => Err(CliError::Protocol("an acknowledgement without an outcome".to_owned())),
        }
    }

    /// Takes the rejected records out of the first batch.
    fn failed(
        &mut self,
        error: &RpcStatus,
        progress: &mut AppendProgress,
    ) -> Result<StreamEnd, CliError> {
        let is_final = needs_an_operator(&status_of(error));
        if is_temporary(Code::from(error.code)) && !is_final {
            // Repeated like an error of the stream, whatever its code; the details have the retry delay.
            let (message, details) = (error.message.clone(), error.encode_to_vec().into());
            return Err(Status::with_details(Code::Unavailable, message, details).into());
        }
        let positions = positions(error);
        let Some(batch) = self.waiting.front_mut().filter(|_| !positions.is_empty()) else {
            return Err(status_of(error).into());
        };
        let lines = positions.iter().filter_map(|at| batch.lines.get(*at));
        let lines: Vec<_> = lines.map(|line| line.number).collect();
        let Some(first) = lines.first() else {
            return Err(status_of(error).into());
        };
        if progress.is_strict {
            return Err(rejected(progress, *first, &describe(error)));
        }
        for line in &lines {
            progress.reject(*line, describe(error));
        }
        batch.without(&positions);
        Ok(StreamEnd::Changed)
    }
}

async fn next(
    answers: &mut Streaming<AppendStreamResponse>,
) -> Result<AppendStreamResponse, Status> {
    let answer = answers.message().await?;
    answer.ok_or_else(|| Status::unavailable("stream ended before its last acknowledgement"))
}

fn send(
    sender: &mpsc::Sender<AppendStreamRequest>,
    batch: &mut AppendBatch,
    (stream, sent): (&str, &mut u64),
) {
    *sent += 1;
    batch.sends += 1;
    let append = Some(batch.request(stream));
    // Cannot be full: it has room for the whole window. Closed means that the stream broke, which its
    // acknowledgements report.
    let _ = sender.try_send(AppendStreamRequest { append, append_id: *sent });
}

/// The error of an append that ends at a rejected line.
fn rejected(progress: &AppendProgress, line: u64, rule: &str) -> CliError {
    CliError::Rows(format!("{}:{line}: {rule}", progress.file))
}

/// The positions of the records that an error names, such as `records[3].time_unix_nano`, in order.
fn positions(error: &RpcStatus) -> Vec<usize> {
    let details = error.get_error_details();
    let fields = details.bad_request().into_iter().flat_map(|bad| &bad.field_violations);
    let position = |field: &str| {
        let (_, rest) = field.split_once("records[")?;
        rest.split_once(']')?.0.parse().ok()
    };
    let mut found: Vec<usize> = fields.filter_map(|one| position(&one.field)).collect();
    let info = details.error_info();
    found.extend(info.and_then(|info| info.metadata.get("index")?.parse::<usize>().ok()));
    found.sort_unstable();
    found.dedup();
    found
}

#[cfg(test)]
mod tests;
