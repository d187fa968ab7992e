//! Reading one table, queue, container or stream to its end.

use prost::Message as _;
use tonic::Code;
use trestle_command::{
    client::Session,
    errors::CliError,
    retry::repeated,
    scan::{TableScan, decoded},
};
use trestle_proto::{
    log::v1::{GetStreamRequest, TailRecordsRequest, tail_records_request::Start},
    queue::v1::PeekMessagesRequest,
    table::v1::StreamEntitiesRequest,
};

use super::{DamagedItem, VerifiedItems, VerifiedKind, VerifiedName};
use crate::{blob, log};

/// What a page of messages has at most.
const PEEK_MAX: u32 = 32;

/// Has the server read everything in it. `found` is called with each damage, and the rest is read.
///
/// # Errors
/// What ends the reading: a connection that retries did not restore, or an error of the server about the whole.
pub(super) async fn read(
    session: &Session,
    VerifiedName { kind, name }: &VerifiedName,
    parallel: u8,
    verified: &mut VerifiedItems,
    found: &mut impl FnMut(DamagedItem) -> Result<(), CliError>,
) -> Result<(), CliError> {
    match kind {
        VerifiedKind::Table => entities(session, name, verified).await,
        VerifiedKind::Queue => messages(session, name, verified).await,
        VerifiedKind::Blob => {
            let blobs = (name.clone(), String::new());
            blob::verify::read(session, blobs, parallel, verified, &mut |damaged| {
                found(blob::verify::damage(damaged))
            })
            .await
        }
        VerifiedKind::Log => {
            log::verify::read(session, name, verified, &mut |damaged| {
                found(log::verify::damage(&damaged))
            })
            .await?;
            match unsealed(session, name).await {
                Err(CliError::Call(status)) if status.code() == Code::DataLoss => {
                    verified.damaged += 1;
                    let (item, error) =
                        ("unsealed records".to_owned(), status.message().to_owned());
                    found(DamagedItem { item, error })
                }
                read => read,
            }
        }
    }
}

async fn entities(
    session: &Session,
    table: &str,
    verified: &mut VerifiedItems,
) -> Result<(), CliError> {
    let request = StreamEntitiesRequest { table: table.to_owned(), ..Default::default() };
    let mut scan = TableScan::new(session, request);
    while let Some(message) = scan.next().await? {
        let entities = decoded(&message)?;
        let bytes = message.entities.iter().map(|it| it.len() as u64).sum::<u64>();
        verified.add(entities.len() as u64, bytes, "entity");
        if let Some(last) = entities.last() {
            verified.behind = Some(format!("{}, {}", last.partition_key, last.row_key));
        }
    }
    Ok(())
}

async fn messages(
    session: &Session,
    queue: &str,
    verified: &mut VerifiedItems,
) -> Result<(), CliError> {
    let mut request = PeekMessagesRequest {
        queue: queue.to_owned(),
        max_messages: Some(PEEK_MAX),
        include_invisible: true,
        page_token: String::new(),
    };
    loop {
        let peek = async || Ok(session.queues().peek_messages(request.clone()).await?);
        let page = repeated::<_, CliError>(peek).await?.into_inner();
        let bytes = page.messages.iter().map(|it| it.encoded_len() as u64).sum::<u64>();
        verified.add(page.messages.len() as u64, bytes, "message");
        if let Some(last) = page.messages.last() {
            verified.behind = Some(last.message_id.clone());
        }
        request.page_token = page.next_page_token;
        if request.page_token.is_empty() {
            return Ok(());
        }
    }
}

/// Reads the records of a stream that are in no segment.
async fn unsealed(session: &Session, stream: &str) -> Result<(), CliError> {
    let get = GetStreamRequest { stream: stream.to_owned() };
    let get = async || Ok(session.logs().get_stream(get.clone()).await?);
    let found = repeated::<_, CliError>(get).await?.into_inner();
    let stats = found.stats.unwrap_or_default();
    if stats.unsealed_records == 0 {
        return Ok(());
    }
    let end = stats.next_sequence;
    let request = TailRecordsRequest {
        stream: stream.to_owned(),
        start: Some(Start::FromSequence(end.saturating_sub(stats.unsealed_records))),
        // The server reads whole records.
        fields: Some(prost_types::FieldMask { paths: vec!["sequence".to_owned()] }),
        ..Default::default()
    };
    let read = async || {
        let mut responses = session.logs().tail_records(request.clone()).await?.into_inner();
        while responses.message().await?.is_some_and(|read| read.next_sequence < end) {}
        Ok::<_, CliError>(())
    };
    repeated(read).await
}
