//! Messages of queues as they are sent by more than one command.

use std::time::Duration;

use trestle_proto::queue::v1::{SendMessagesRequest, SendResult, send_result::Outcome};

use crate::{client::Session, errors::CliError};

/// Sends messages; the outcome of each.
///
/// # Errors
/// The error of the call, or an answer without an outcome for each message.
pub async fn send_messages(
    session: &Session,
    request: SendMessagesRequest,
) -> Result<Vec<Outcome>, CliError> {
    let count = request.messages.len();
    let answer = session.queues().send_messages(request).await?;
    outcomes(answer.into_inner().results, count)
}

fn outcomes(results: Vec<SendResult>, count: usize) -> Result<Vec<Outcome>, CliError> {
    // Fewer outcomes must not pass for all of them.
    let answered = results.len();
    let outcomes: Vec<_> = results.into_iter().filter_map(|result| result.outcome).collect();
    match outcomes.len() == count && answered == count {
        true => Ok(outcomes),
        false => Err(CliError::Protocol(format!(
            "{count} messages were answered with {} outcomes in {answered} results",
            outcomes.len()
        ))),
    }
}

/// A duration as a message; zero beyond 292 billion years.
#[must_use]
pub fn proto_duration(duration: Duration) -> prost_types::Duration {
    prost_types::Duration::try_from(duration).unwrap_or_default()
}

#[cfg(test)]
mod tests;
