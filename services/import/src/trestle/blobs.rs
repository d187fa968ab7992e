//! Blobs of a server: listed page by page, and read in ranges of the listed version.

use bytes::{Bytes, BytesMut};
use futures::{StreamExt as _, TryStreamExt as _};
use tokio::sync::Semaphore;
use tonic::{Code, Status};
use trestle_command::{errors::CliError, retry::repeated, selection::Renamed};
use trestle_proto::blob::v1::{
    AccessTier, Blob, BlobConditions, BlobType, ByteRange, Container,
    GetContainerAccessPoliciesRequest, GetContainerRequest, ListBlobsRequest,
    ListContainersRequest, ListPageRangesRequest, ReadBlobRequest, listed_blob::Item,
};

use super::TrestleSource;
use crate::{
    ImportTarget,
    blobs::{
        self, BATCH_MAX, BlobFailure, BlobStates, BlobTarget, ImportedBlob, ImportedContent,
        ImportedKind, PagesWithData, reason,
    },
    containers,
    plan::{ImportPlan, PlannedContainer},
    progress::{BlobPosition, Skipped},
};

/// Most containers that are copied at once, which share the windows.
const CONTAINERS_AT_ONCE: usize = 4;
/// Most snapshots of a page of the list of one name.
const SNAPSHOTS_PAGE: i32 = 100;

/// Adds the selected containers, or every container, to the plan; their names.
pub(super) async fn plan(
    server: &TrestleSource,
    selected: Option<&[Renamed]>,
    plan: &mut ImportPlan,
) -> Result<Vec<Renamed>, CliError> {
    let found = match selected {
        Some(selected) => find(server, selected).await?,
        None => list(server).await?,
    };
    let mut all = Vec::new();
    for (name, container) in found {
        let request = GetContainerAccessPoliciesRequest { container: name.from.clone() };
        let session = &server.session;
        let read = async || session.blobs().get_container_access_policies(request.clone()).await;
        let whose = containers::whose(&name.to);
        let policies = server.policies(read, &whose, |read| read.policies, plan).await?;
        plan.containers.push(PlannedContainer {
            name: name.to.clone(),
            public_access: container.public_access(),
            metadata: container.metadata,
            policies,
        });
        all.push(name);
    }
    Ok(all)
}

async fn find(
    server: &TrestleSource,
    selected: &[Renamed],
) -> Result<Vec<(Renamed, Container)>, CliError> {
    let mut found = Vec::new();
    for name in selected {
        let request = GetContainerRequest { container: name.from.clone(), ..Default::default() };
        let get = async || server.session.blobs().get_container(request.clone()).await;
        let answer = server.find(get, "--container", name).await?;
        found.push((name.clone(), answer.container.unwrap_or_default()));
    }
    Ok(found)
}

async fn list(server: &TrestleSource) -> Result<Vec<(Renamed, Container)>, CliError> {
    let (mut found, mut page_token) = (Vec::new(), String::new());
    loop {
        let request =
            ListContainersRequest { page_token, include_metadata: true, ..Default::default() };
        let list = async || server.session.blobs().list_containers(request.clone()).await;
        let page = server.call(list, "the list of containers").await?;
        found.extend(page.containers.into_iter().map(|it| (Renamed::kept(it.name.clone()), it)));
        page_token = page.next_page_token;
        if page_token.is_empty() {
            return Ok(found);
        }
    }
}

/// The blobs of a server, and where they are copied to.
#[derive(Clone, Copy)]
pub(super) struct ServerBlobs<'a> {
    pub(super) server: &'a TrestleSource,
    pub(super) target: ImportTarget<'a>,
    /// Whether snapshots are copied.
    pub(super) snapshots: bool,
    /// Most blobs of a container that are copied at once.
    pub(super) parallel: usize,
}

impl ServerBlobs<'_> {
    /// Copies the blobs of the containers that the target has.
    pub(super) async fn copy(&self, names: &[Renamed]) -> Result<(), CliError> {
        let windows = &blobs::windows();
        let copies = futures::stream::iter(names).map(Ok);
        let copy = |name| async move { self.copy_container(name, windows).await };
        copies.try_for_each_concurrent(CONTAINERS_AT_ONCE, copy).await
    }

    async fn copy_container(&self, name: &Renamed, windows: &Semaphore) -> Result<(), CliError> {
        let (target, parallel) = (self.target, self.parallel);
        let into = BlobTarget { target, container: &name.to, windows, parallel };
        let mut page_token = match into.position() {
            Some(BlobPosition::Start) => String::new(),
            Some(BlobPosition::Marker(token)) => token,
            _ => return Ok(()),
        };
        let mut list = ServerBlobList { server: self.server, name, with_tags: true };
        loop {
            let page_size = i32::try_from(BATCH_MAX).ok();
            let request = ListBlobsRequest { page_size, page_token, ..Default::default() };
            let (found, next) = list.page(request, target).await?;
            page_token = next;
            let next = match page_token.is_empty() {
                true => BlobPosition::End,
                false => BlobPosition::Marker(page_token.clone()),
            };
            let batch = found.into_iter().map(|blob| (blob.name.clone(), blob)).collect();
            let listed = list;
            let load = async |_: &str, blob: Blob| match self.snapshots {
                true => listed.load_with_snapshots(blob, target).await,
                false => listed.states(vec![blob]),
            };
            into.copy_batch(batch, next, load).await?;
            if page_token.is_empty() {
                return Ok(());
            }
        }
    }
}

/// The list of the blobs of a container.
#[derive(Clone, Copy)]
struct ServerBlobList<'a> {
    server: &'a TrestleSource,
    name: &'a Renamed,
    /// False once the source rejects a list with tags.
    with_tags: bool,
}

impl<'a> ServerBlobList<'a> {
    /// The blobs of a page, and the token of the next one.
    async fn page(
        &mut self,
        request: ListBlobsRequest,
        target: ImportTarget<'_>,
    ) -> Result<(Vec<Blob>, String), CliError> {
        let session = &self.server.session;
        loop {
            let request = ListBlobsRequest {
                container: self.name.from.clone(),
                include_metadata: true,
                include_tags: self.with_tags,
                ..request.clone()
            };
            match repeated(async || session.blobs().list_blobs(request.clone()).await).await {
                Ok(page) => {
                    let page = page.into_inner();
                    let blobs = page.items.into_iter().filter_map(|listed| match listed.item? {
                        Item::Blob(blob) => Some(blob),
                        Item::Prefix(_) => None,
                    });
                    return Ok((blobs.collect(), page.next_page_token));
                }
                Err(status) if self.with_tags && status.code() == Code::PermissionDenied => {
                    self.with_tags = false;
                    let (whose, why) = (containers::whose(&self.name.to), status.message());
                    let skipped = Skipped::new(whose, "tags", why.to_owned());
                    target.tracker.change(|progress| progress.skip(skipped));
                }
                Err(status) => {
                    let what = format!("the list of {}", containers::whose(&self.name.from));
                    return Err(self.server.failed(status, &what));
                }
            }
        }
    }

    /// The snapshots of a blob, and the blob as it was listed.
    async fn load_with_snapshots(
        mut self,
        blob: Blob,
        target: ImportTarget<'_>,
    ) -> Result<BlobStates<ServerContent<'a>>, BlobFailure> {
        let (mut states, mut page_token) = (Vec::new(), String::new());
        loop {
            let request = ListBlobsRequest {
                prefix: blob.name.clone(),
                page_size: Some(SNAPSHOTS_PAGE),
                page_token,
                include_snapshots: true,
                ..Default::default()
            };
            let (found, next) = self.page(request, target).await?;
            page_token = next;
            // A name comes before all others that begin with it.
            let has_others = found.iter().any(|it| it.name != blob.name);
            let is_state = |it: &Blob| it.name == blob.name && !it.snapshot.is_empty();
            states.extend(found.into_iter().filter(is_state));
            if page_token.is_empty() || has_others {
                states.push(blob);
                return self.states(states);
            }
        }
    }

    fn states(self, found: Vec<Blob>) -> Result<BlobStates<ServerContent<'a>>, BlobFailure> {
        let states = found.into_iter().map(|blob| {
            let content = ServerContent {
                server: self.server,
                container: &self.name.from,
                blob: blob.name.clone(),
                snapshot: blob.snapshot.clone(),
                etag: blob.etag.clone(),
            };
            Ok((described(blob)?, content))
        });
        states.collect::<Result<_, String>>().map_err(BlobFailure::Item)
    }
}

/// What a blob is.
fn described(blob: Blob) -> Result<ImportedBlob, String> {
    let kind = match blob.r#type() {
        BlobType::Block => ImportedKind::Block,
        BlobType::Append => ImportedKind::Append { is_sealed: blob.is_sealed },
        BlobType::Page => ImportedKind::Page { sequence_number: blob.sequence_number },
        BlobType::Unspecified => return Err("it has an unknown type".to_owned()),
    };
    let tier = match blob.is_access_tier_inferred {
        true => AccessTier::Unspecified,
        false => blob.access_tier(),
    };
    Ok(ImportedBlob {
        is_snapshot: !blob.snapshot.is_empty(),
        kind,
        size: blob.size,
        properties: blob.properties.unwrap_or_default(),
        metadata: blob.metadata,
        tags: blob.tags,
        tier,
        name: blob.name,
    })
}

/// The content of one version of a blob.
struct ServerContent<'a> {
    server: &'a TrestleSource,
    container: &'a str,
    blob: String,
    snapshot: String,
    etag: String,
}

impl ServerContent<'_> {
    fn conditions(&self) -> Option<BlobConditions> {
        Some(BlobConditions { if_match: vec![self.etag.clone()], ..Default::default() })
    }

    async fn try_read(&self, range: ByteRange) -> Result<Bytes, Status> {
        let request = ReadBlobRequest {
            container: self.container.to_owned(),
            blob: self.blob.clone(),
            range: Some(range),
            conditions: self.conditions(),
            snapshot: self.snapshot.clone(),
            ..Default::default()
        };
        let length = range.length.and_then(|length| usize::try_from(length).ok());
        let mut content = BytesMut::with_capacity(length.unwrap_or_default());
        let mut messages = self.server.session.blobs().read_blob(request).await?.into_inner();
        while let Some(message) = messages.message().await? {
            content.extend_from_slice(&message.data);
        }
        Ok(content.freeze())
    }

    fn failed(&self, status: Status) -> BlobFailure {
        match reason(&status).as_deref() {
            Some("CONDITION_NOT_MET") => {
                BlobFailure::Item("it changed while it was copied".to_owned())
            }
            Some("BLOB_NOT_FOUND") => {
                BlobFailure::Item("it was deleted while it was copied".to_owned())
            }
            _ => match BlobFailure::from(status) {
                BlobFailure::Item(why) => {
                    BlobFailure::Item(format!("the source rejects it: {why}"))
                }
                BlobFailure::Fatal(error) => {
                    BlobFailure::Fatal(self.server.failed(error, "the content of a blob"))
                }
            },
        }
    }
}

impl ImportedContent for ServerContent<'_> {
    async fn read(&self, offset: u64, length: u64) -> Result<Bytes, BlobFailure> {
        if length == 0 {
            return Ok(Bytes::new());
        }
        let range = ByteRange { offset, length: Some(length) };
        repeated(async || self.try_read(range).await).await.map_err(|status| self.failed(status))
    }

    async fn pages(&self, offset: u64, length: u64) -> Result<Vec<PagesWithData>, BlobFailure> {
        let (mut all, mut page_token) = (Vec::new(), String::new());
        let end = offset.saturating_add(length);
        loop {
            let request = ListPageRangesRequest {
                container: self.container.to_owned(),
                blob: self.blob.clone(),
                range: Some(ByteRange { offset, length: Some(length) }),
                page_token,
                conditions: self.conditions(),
                snapshot: self.snapshot.clone(),
                ..Default::default()
            };
            let session = &self.server.session;
            let listed =
                repeated(async || session.blobs().list_page_ranges(request.clone()).await).await;
            let page = listed.map_err(|status| self.failed(status))?.into_inner();
            all.extend(page.ranges.into_iter().filter_map(|pages| {
                let from = pages.offset.max(offset);
                let length =
                    pages.offset.saturating_add(pages.length).min(end).checked_sub(from)?;
                (length > 0).then_some(PagesWithData { offset: from, length })
            }));
            page_token = page.next_page_token;
            if page_token.is_empty() {
                return Ok(all);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use tonic_types::{ErrorDetails, StatusExt as _};

    use super::*;
    use crate::trestle::tests::unused_server;

    fn blob(r#type: BlobType) -> Blob {
        Blob { name: "b".to_owned(), r#type: r#type.into(), size: 7, ..Default::default() }
    }

    #[test]
    fn a_blob_is_described_with_its_type_and_a_tier_that_was_set() {
        let sealed = Blob { is_sealed: true, ..blob(BlobType::Append) };
        assert_eq!(described(sealed).unwrap().kind, ImportedKind::Append { is_sealed: true });
        let pages = Blob { sequence_number: 3, ..blob(BlobType::Page) };
        assert_eq!(described(pages).unwrap().kind, ImportedKind::Page { sequence_number: 3 });
        for (is_access_tier_inferred, tier) in
            [(true, AccessTier::Unspecified), (false, AccessTier::Hot)]
        {
            let access_tier = AccessTier::Hot.into();
            let found = Blob { is_access_tier_inferred, access_tier, ..blob(BlobType::Block) };
            assert_eq!(described(found).unwrap().tier, tier);
        }
        let snapshot = Blob { snapshot: "2026".to_owned(), ..blob(BlobType::Block) };
        assert!(described(snapshot).unwrap().is_snapshot);
        assert_eq!(described(Blob::default()).unwrap_err(), "it has an unknown type");
    }

    fn of_reason(code: Code, reason: &str) -> Status {
        let details = ErrorDetails::with_error_info(reason, "trestle", HashMap::new());
        Status::with_error_details(code, "rule", details)
    }

    #[tokio::test]
    async fn a_blob_that_changed_or_is_absent_does_not_end_the_import() {
        let server = unused_server();
        let content = ServerContent {
            server: &server,
            container: "docs",
            blob: "a".to_owned(),
            snapshot: String::new(),
            etag: "\"1\"".to_owned(),
        };
        for (status, expected) in [
            (of_reason(Code::Aborted, "CONDITION_NOT_MET"), "it changed while it was copied"),
            (of_reason(Code::NotFound, "BLOB_NOT_FOUND"), "it was deleted while it was copied"),
            (of_reason(Code::FailedPrecondition, "BLOB_ARCHIVED"), "the source rejects it: rule"),
        ] {
            match content.failed(status) {
                BlobFailure::Item(why) => assert_eq!(why, expected),
                BlobFailure::Fatal(error) => panic!("{expected}: {error}"),
            }
        }

        let failed = content.failed(of_reason(Code::NotFound, "CONTAINER_NOT_FOUND"));

        let BlobFailure::Fatal(error) = failed else { panic!("the container is absent") };
        let text = "the source rejects the content of a blob: rule: endpoint=`http://there:1`";
        assert_eq!(error.to_string(), text);
        assert!(content.read(0, 0).await.unwrap().is_empty(), "no call is needed");
        assert_eq!(content.conditions().unwrap().if_match, ["\"1\""]);
    }
}
