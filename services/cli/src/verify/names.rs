//! What an account has.

use trestle_command::{client::Session, errors::CliError, retry::repeated};
use trestle_proto::{
    blob::v1::ListContainersRequest, log::v1::ListStreamsRequest, queue::v1::ListQueuesRequest,
    table::v1::ListTablesRequest,
};

use super::VerifiedKind;

/// Adds the names of one kind.
///
/// # Errors
/// An error that retries did not end. The names before it are there.
pub(super) async fn list(
    session: &Session,
    kind: VerifiedKind,
    names: &mut Vec<String>,
) -> Result<(), CliError> {
    let mut page_token = String::new();
    loop {
        let (page, next) = repeated(async || page(session, kind, page_token.clone()).await).await?;
        names.extend(page);
        page_token = next;
        if page_token.is_empty() {
            return Ok(());
        }
    }
}

/// The names of a page, and where the next one begins.
async fn page(
    session: &Session,
    kind: VerifiedKind,
    page_token: String,
) -> Result<(Vec<String>, String), CliError> {
    Ok(match kind {
        VerifiedKind::Table => {
            let request = ListTablesRequest { page_token, ..Default::default() };
            let page = session.table().list_tables(request).await?.into_inner();
            (page.tables.into_iter().map(|table| table.name).collect(), page.next_page_token)
        }
        VerifiedKind::Queue => {
            let request = ListQueuesRequest { page_token, ..Default::default() };
            let page = session.queues().list_queues(request).await?.into_inner();
            (page.queues.into_iter().map(|queue| queue.name).collect(), page.next_page_token)
        }
        VerifiedKind::Blob => {
            let request = ListContainersRequest { page_token, ..Default::default() };
            let page = session.blobs().list_containers(request).await?.into_inner();
            (page.containers.into_iter().map(|it| it.name).collect(), page.next_page_token)
        }
        VerifiedKind::Log => {
            let request = ListStreamsRequest { page_token, ..Default::default() };
            let page = session.logs().list_streams(request).await?.into_inner();
            (page.streams.into_iter().map(|stream| stream.name).collect(), page.next_page_token)
        }
    })
}
