//! The calls on tags.

use std::collections::HashMap;

use trestle_model::fault::Fault;
use trestle_proto::blob::v1 as proto;

use super::{
    BlobApi,
    parse::{self, RequestParser},
};
use crate::{
    authorize::{BlobAccess, BlobNeed},
    blobs::BlobChange,
    conditions::Freshness,
    find::FoundBlobTags,
    tags::Tags,
};

impl BlobApi {
    pub(super) async fn tags(
        &self,
        access: &BlobAccess,
        request: proto::GetBlobTagsRequest,
    ) -> Result<proto::GetBlobTagsResponse, Fault> {
        let access = &access.to_state(&request.snapshot, &request.version_id);
        let mut parser = RequestParser::of(access);
        let names = parser.names(request.container, request.blob);
        let state = parser.state(&request.snapshot, &request.version_id);
        let (conditions, lease_id) = parser.blob_conditions(request.conditions);
        let names = parser.finish(names)?;
        let key = self.key(access, &names).await?;
        let found = self.blobs.get((&key, state), (&conditions, lease_id)).await?;
        let not_modified = found.freshness == Freshness::NotModified;
        let tags = if not_modified { HashMap::new() } else { shown(found.record.tags) };
        Ok(proto::GetBlobTagsResponse { tags, not_modified })
    }

    pub(super) async fn set_tags(
        &self,
        access: &BlobAccess,
        request: proto::SetBlobTagsRequest,
    ) -> Result<proto::SetBlobTagsResponse, Fault> {
        let mut parser = RequestParser::of(access);
        let names = parser.names(request.container, request.blob);
        let tags = parser.tags(request.tags, "tags");
        let required = parser.blob_conditions(request.conditions);
        let names = parser.finish(names)?;
        let key = self.key(access, &names).await?;
        self.blobs.change(key, BlobChange::Tags(tags), required).await?;
        Ok(proto::SetBlobTagsResponse {})
    }

    pub(super) async fn find(
        &self,
        access: &BlobAccess,
        request: proto::FindBlobsRequest,
    ) -> Result<proto::FindBlobsResponse, Fault> {
        let is_in_container = !request.container.is_empty();
        let find = parse::find_blobs(request)?;
        if let Some(container) = find.container.as_ref().filter(|_| is_in_container) {
            let access = access.also(BlobNeed::FindInContainer)?;
            self.containers.open(&access, container, None).await?;
        } else {
            access.also(BlobNeed::FindInAccount)?;
        }
        let page = self.blobs.find(access.account(), &find).await?;
        let found = |FoundBlobTags { container, name, tags }| proto::FoundBlob {
            container,
            blob: name.as_str().to_owned(),
            tags: shown(tags),
        };
        Ok(proto::FindBlobsResponse {
            blobs: page.blobs.into_iter().map(found).collect(),
            next_page_token: page.next_page_token.unwrap_or_default(),
        })
    }
}

/// Tags in a response.
pub(super) fn shown(tags: Tags) -> HashMap<String, String> {
    tags.into_iter().collect()
}
