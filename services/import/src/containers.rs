//! Containers of the target: created, inspected, listed.

use tonic::{Code, Status};
use trestle_command::{errors::CliError, retry::repeated};
use trestle_proto::blob::v1::{
    Container, CreateContainerRequest, ListBlobsRequest, PublicAccess,
    SetContainerAccessPoliciesRequest, UpdateContainerRequest, listed_blob::Item,
};

use super::{ImportTarget, args::CopyArgs, plan::PlannedContainer, progress::Skipped};
use crate::digest::{self, Digest};

/// The container of a name, for people.
pub(super) fn whose(name: &str) -> String {
    format!("container `{name}`")
}

impl ImportTarget<'_> {
    /// Whether a container exists and is not empty.
    pub(super) async fn has_blobs(&self, name: &str) -> Result<bool, CliError> {
        let request = ListBlobsRequest {
            container: name.to_owned(),
            page_size: Some(1),
            include_uncommitted: true,
            include_snapshots: true,
            ..Default::default()
        };
        let session = self.session;
        match repeated(async || session.blobs().list_blobs(request.clone()).await).await {
            Ok(page) => {
                let page = page.into_inner();
                // A page may end early, before it contains a blob.
                Ok(!page.items.is_empty() || !page.next_page_token.is_empty())
            }
            Err(status) if matches!(status.code(), Code::NotFound | Code::InvalidArgument) => {
                Ok(false)
            }
            Err(status) => Err(status.into()),
        }
    }

    /// Creates a container with metadata, public access and policies; returns what the server rejects.
    pub(super) async fn open_container(
        &self,
        container: &PlannedContainer,
    ) -> Result<Option<Skipped>, CliError> {
        let name = &container.name;
        let created = self.create_container(container).await;
        let codes = [Code::InvalidArgument, Code::OutOfRange];
        let rejected = Skipped::rejected(created, &codes, whose(name), "")?;
        // Those of an existing container are replaced, as its metadata is.
        let is_private = container.public_access == PublicAccess::Unspecified;
        if rejected.is_some() || (container.policies.is_empty() && is_private) {
            return Ok(rejected);
        }
        let request = SetContainerAccessPoliciesRequest {
            container: name.clone(),
            policies: container.policies.clone(),
            public_access: container.public_access.into(),
            ..Default::default()
        };
        let session = self.session;
        let set =
            repeated(async || session.blobs().set_container_access_policies(request.clone()).await);
        let codes = [Code::InvalidArgument, Code::PermissionDenied];
        Skipped::rejected(set.await, &codes, whose(name), "access policies")
    }

    /// Creates a container; an existing one has its metadata replaced.
    async fn create_container(&self, container: &PlannedContainer) -> Result<(), Status> {
        let PlannedContainer { name, metadata, public_access, .. } = container;
        let requested = Container {
            name: name.clone(),
            metadata: metadata.clone(),
            public_access: (*public_access).into(),
            ..Default::default()
        };
        let request = CreateContainerRequest { container: Some(requested) };
        let session = self.session;
        let created = repeated(async || session.blobs().create_container(request.clone()).await);
        match created.await {
            Err(status) if status.code() == Code::AlreadyExists => {}
            created => return created.map(drop),
        }
        let (container, metadata) = (name.clone(), metadata.clone());
        let request = UpdateContainerRequest { container, metadata, ..Default::default() };
        repeated(async || session.blobs().update_container(request.clone()).await).await.map(drop)
    }

    /// The blobs of a container now.
    pub(super) async fn list_back(&self, name: &str, args: &CopyArgs) -> Result<Digest, CliError> {
        let (mut digest, mut page_token) = (Digest::default(), String::new());
        loop {
            let request = ListBlobsRequest {
                container: name.to_owned(),
                page_token: page_token.clone(),
                include_snapshots: args.snapshots,
                ..Default::default()
            };
            let session = self.session;
            let page = repeated(async || session.blobs().list_blobs(request.clone()).await).await?;
            let page = page.into_inner();
            for listed in page.items {
                if let Some(Item::Blob(blob)) = listed.item {
                    digest.add(digest::of_blob(&blob));
                }
            }
            page_token = page.next_page_token;
            if page_token.is_empty() {
                return Ok(digest);
            }
        }
    }
}
