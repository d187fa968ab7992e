//! Following a stream, as a stream of responses.

use tokio_util::sync::CancellationToken;
use trestle_model::fault::{Fault, Reason, Violations};
use trestle_proto::log::v1::{self as proto, tail_records_request::Start};
use trestle_rpc::response_stream::{self, ResponseStream};

use super::{LogApi, failed, parse, read};
use crate::{authorize::LogAccess, error::LogError, segment::SealedRow, tail::FollowFrom};

/// Most records before the end that a call begins with.
const LAST_MAX: u32 = 10_000;

impl LogApi {
    pub(super) async fn tail(
        &self,
        access: &LogAccess,
        request: proto::TailRecordsRequest,
    ) -> Result<ResponseStream<proto::TailRecordsResponse>, Fault> {
        let name = parse::stream_name(request.stream)?;
        let mut violations = Violations::default();
        let from = from(request.start, &mut violations);
        let predicate = read::predicate(&request.filter, &mut violations);
        let fields = read::fields(request.fields.as_ref(), &mut violations);
        violations.check(())?;
        let stream = self.logs.open(access.account_of(&name)?, &name).await?;
        let mut follower = self.logs.follow(stream, from, predicate, fields).await?;
        let shutdown = self.logs.shutdown.clone();
        Ok(response_stream::spawn(|sender| async move {
            if follower.begins_at_the_end() {
                // A client that loses the connection before the first record continues from here.
                let next_sequence = follower.next_sequence();
                sender
                    .send(proto::TailRecordsResponse { records: Vec::new(), next_sequence })
                    .await?;
            }
            loop {
                let next = unless_shut_down(&shutdown, follower.next());
                let rows = sender.unless_closed(next).await?.map_err(failed)?;
                let records = rows.into_iter().map(|row| row.record).collect();
                let next_sequence = follower.next_sequence();
                sender.send(proto::TailRecordsResponse { records, next_sequence }).await?;
            }
        }))
    }
}

/// The next records, unless the process stops before.
async fn unless_shut_down(
    shutdown: &CancellationToken,
    next: impl Future<Output = Result<Vec<SealedRow>, LogError>>,
) -> Result<Vec<SealedRow>, LogError> {
    tokio::select! {
        biased;
        () = shutdown.cancelled() => Err(LogError::ShuttingDown),
        next = next => next,
    }
}

fn from(start: Option<Start>, violations: &mut Violations) -> FollowFrom {
    match start {
        None => FollowFrom::Last(0),
        Some(Start::FromSequence(sequence)) => FollowFrom::Sequence(sequence),
        Some(Start::Last(count)) => {
            if count > LAST_MAX {
                let rule = format!("must be 0 to 10,000: value=`{count}`");
                violations.push(Reason::OutOfRangeInput, "last", rule);
            }
            FollowFrom::Last(count.into())
        }
    }
}
