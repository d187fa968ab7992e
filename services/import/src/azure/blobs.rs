//! Blobs of an account: listed page by page, and read in ranges of the listed version.

use bytes::Bytes;
use futures::{StreamExt as _, TryStreamExt as _};
use http::StatusCode;
use tokio::sync::Semaphore;
use trestle_command::errors::CliError;

use super::{
    blob_pages::{BlobElement, BlobsPage, ContainersPage, PageList},
    connection::AzureAuthority,
    http::{AzureRequest, Http, HttpError, Service, encoded},
    policies, xml,
};
use crate::{
    ImportTarget,
    blobs::{self, BATCH_MAX, BlobFailure, BlobStates, BlobTarget, ImportedContent, PagesWithData},
    containers,
    plan::{self, ImportPlan, PlannedContainer},
    progress::{BlobPosition, Skipped},
};

/// Most containers that are copied at once, which share the windows.
const CONTAINERS_AT_ONCE: usize = 4;

fn parsed<T: serde::de::DeserializeOwned>(body: &[u8], what: &str) -> Result<T, CliError> {
    xml::parse(body).map_err(|why| {
        let text = format!("the source answers {what} with XML that {why}");
        CliError::Source { text, busy: false }
    })
}

/// Adds every container of the account to the plan.
pub(super) async fn list(http: &Http, plan: &mut ImportPlan) -> Result<(), CliError> {
    let (mut marker, what) = (String::new(), "the list of containers");
    loop {
        let query = format!("comp=list&include=metadata{}", continued(&marker));
        let request = AzureRequest::get(Service::Blobs, "/".to_owned(), query);
        let page: ContainersPage = parsed(http.send(&request, what).await?.body(), what)?;
        marker.clone_from(&page.next_marker);
        for found in page.into_containers() {
            let (path, whose) =
                (format!("/{}", encoded(&found.name)), containers::whose(&found.name));
            let policies = policies::read(http, Service::Blobs, path, &whose, plan).await?;
            plan.containers.push(PlannedContainer {
                name: found.name,
                metadata: found.metadata,
                public_access: plan::public_access(&found.properties.public_access),
                policies,
            });
        }
        if marker.is_empty() {
            return Ok(());
        }
    }
}

/// The parameter that continues a list.
fn continued(marker: &str) -> String {
    if marker.is_empty() { String::new() } else { format!("&marker={}", encoded(marker)) }
}

/// The blobs of an account, and where they are copied to.
#[derive(Clone, Copy)]
pub(super) struct AccountBlobs<'a> {
    pub(super) http: &'a Http,
    pub(super) target: ImportTarget<'a>,
    /// Whether snapshots are copied.
    pub(super) snapshots: bool,
    /// Most blobs of a container that are copied at once.
    pub(super) parallel: usize,
}

impl AccountBlobs<'_> {
    /// Copies the blobs of every container of the plan that the target has.
    pub(super) async fn copy(&self, plan: &ImportPlan) -> Result<(), CliError> {
        let windows = blobs::windows();
        let containers = futures::stream::iter(&plan.containers).map(Ok);
        let copy = |container: &PlannedContainer| {
            let (name, windows) = (container.name.clone(), &windows);
            async move { self.copy_container(&name, windows).await }
        };
        containers.try_for_each_concurrent(CONTAINERS_AT_ONCE, copy).await
    }

    async fn copy_container(&self, container: &str, windows: &Semaphore) -> Result<(), CliError> {
        let (target, parallel) = (self.target, self.parallel);
        let into = BlobTarget { target, container, windows, parallel };
        let mut marker = match into.position() {
            Some(BlobPosition::Start) => String::new(),
            Some(BlobPosition::Marker(marker)) => marker,
            _ => return Ok(()),
        };
        let mut list = BlobList { http: self.http, container, with_tags: true };
        loop {
            let query = format!("&maxresults={BATCH_MAX}{}", continued(&marker));
            let page = list.page("metadata", &query, self.target).await?;
            marker.clone_from(&page.next_marker);
            let next = match marker.is_empty() {
                true => BlobPosition::End,
                false => BlobPosition::Marker(marker.clone()),
            };
            let mut batch = Vec::new();
            for blob in page.into_blobs() {
                let name = blob.name().map_err(|text| CliError::Source { text, busy: false })?;
                batch.push((name, blob));
            }
            let listed = list;
            let load = async |name: &str, blob: BlobElement| match self.snapshots {
                true => listed.load_with_snapshots(name, blob, self.target).await,
                false => listed.states(vec![blob]),
            };
            into.copy_batch(batch, next, load).await?;
            if marker.is_empty() {
                return Ok(());
            }
        }
    }
}

/// The list of the blobs of a container.
#[derive(Clone, Copy)]
struct BlobList<'a> {
    http: &'a Http,
    container: &'a str,
    /// False once a signature may not read tags.
    with_tags: bool,
}

impl<'a> BlobList<'a> {
    async fn page(
        &mut self,
        include: &str,
        query: &str,
        target: ImportTarget<'_>,
    ) -> Result<BlobsPage, CliError> {
        let what = format!("the list of {}", containers::whose(self.container));
        loop {
            let tags = if self.with_tags { ",tags" } else { "" };
            let path = format!("/{}", encoded(self.container));
            let query = format!("restype=container&comp=list&include={include}{tags}{query}");
            let request = AzureRequest::get(Service::Blobs, path, query);
            let is_signature =
                matches!(self.http.connection.authority, AzureAuthority::Signature(_));
            match self.http.try_send(&request).await {
                Ok(page) => return parsed(page.body(), &what),
                Err(HttpError::Rejected { status: StatusCode::FORBIDDEN, .. })
                    if self.with_tags && is_signature =>
                {
                    self.with_tags = false;
                    let why = "the signature may not read them".to_owned();
                    let skipped = Skipped::new(containers::whose(self.container), "tags", why);
                    target.tracker.change(|progress| progress.skip(skipped));
                }
                Err(failure) => return Err(failure.of(&what)),
            }
        }
    }

    /// The snapshots of a blob, and the blob as it was listed.
    async fn load_with_snapshots(
        mut self,
        name: &str,
        blob: BlobElement,
        target: ImportTarget<'_>,
    ) -> Result<BlobStates<RangedContent<'a>>, BlobFailure> {
        let (mut states, mut marker) = (Vec::new(), String::new());
        loop {
            // A name comes before all others that begin with it.
            let query = format!("&prefix={}{}", encoded(name), continued(&marker));
            let page = self.page("snapshots,metadata", &query, target).await?;
            marker.clone_from(&page.next_marker);
            let mut has_others = false;
            for found in page.into_blobs() {
                match found.name().map_err(BlobFailure::Item)? == name {
                    true if !found.snapshot.is_empty() => states.push(found),
                    true => {}
                    false => has_others = true,
                }
            }
            if marker.is_empty() || has_others {
                states.sort_by(|first, second| first.snapshot.cmp(&second.snapshot));
                states.push(blob);
                return self.states(states);
            }
        }
    }

    fn states(self, found: Vec<BlobElement>) -> Result<BlobStates<RangedContent<'a>>, BlobFailure> {
        let states = found.into_iter().map(|found| {
            let blob = found.described()?;
            let content = RangedContent {
                http: self.http,
                path: format!("/{}/{}", encoded(self.container), encoded(&blob.name)),
                snapshot: found.snapshot.clone(),
                etag: found.etag(),
            };
            Ok((blob, content))
        });
        states.collect::<Result<_, String>>().map_err(BlobFailure::Item)
    }
}

/// The content of one version of a blob.
struct RangedContent<'a> {
    http: &'a Http,
    path: String,
    snapshot: String,
    etag: String,
}

impl RangedContent<'_> {
    /// A part of what a query returns.
    async fn get(&self, query: &str, offset: u64, length: u64) -> Result<Bytes, BlobFailure> {
        let Some(last) = length.checked_sub(1).map(|more| offset.saturating_add(more)) else {
            return Ok(Bytes::new());
        };
        let snapshot = match self.snapshot.as_str() {
            "" => String::new(),
            snapshot => format!("snapshot={}", encoded(snapshot)),
        };
        let query: Vec<_> = [query, &snapshot].into_iter().filter(|it| !it.is_empty()).collect();
        let mut request = AzureRequest::get(Service::Blobs, self.path.clone(), query.join("&"));
        let range = ("x-ms-range", format!("bytes={offset}-{last}"));
        request.headers = vec![range, ("if-match", self.etag.clone())];
        match self.http.try_send(&request).await {
            Ok(answer) => Ok(answer.into_body()),
            Err(HttpError::Rejected { status, code, .. }) if is_of_one_blob(status) => {
                let why = match status {
                    StatusCode::PRECONDITION_FAILED => "it changed while it was copied".to_owned(),
                    StatusCode::NOT_FOUND => "it was deleted while it was copied".to_owned(),
                    _ => format!("the source rejects it: {code} ({})", status.as_u16()),
                };
                Err(BlobFailure::Item(why))
            }
            Err(failure) => Err(failure.of("the content of a blob").into()),
        }
    }
}

/// Whether an error of the source is of one blob: it changed, it was deleted, or it is archived.
fn is_of_one_blob(status: StatusCode) -> bool {
    matches!(
        status,
        StatusCode::NOT_FOUND
            | StatusCode::CONFLICT
            | StatusCode::PRECONDITION_FAILED
            | StatusCode::RANGE_NOT_SATISFIABLE
    )
}

impl ImportedContent for RangedContent<'_> {
    async fn read(&self, offset: u64, length: u64) -> Result<Bytes, BlobFailure> {
        self.get("", offset, length).await
    }

    async fn pages(&self, offset: u64, length: u64) -> Result<Vec<PagesWithData>, BlobFailure> {
        let list = self.get("comp=pagelist", offset, length).await?;
        let list: PageList = parsed(&list, "the pages of a blob")?;
        list.within(offset, length).map_err(BlobFailure::Item)
    }
}

#[cfg(test)]
mod tests;
