//! The calls on blobs that carry no content.

use trestle_identity::authorize::anonymous;
use trestle_model::fault::{Fault, Reason, quoted};
use trestle_proto::blob::v1 as proto;

use super::{
    BlobApi,
    parse::{self, RequestParser},
    render::{self, Included},
};
use crate::{
    authorize::{BlobAccess, BlobNeed},
    blobs::{BlobChange, BlobKey, BlobState, DeleteScope, ListedItem, PutCommand, StateName},
    conditions::{Conditions, Freshness, WriteKind},
    error::BlobError,
    names::{BlobName, ContainerName},
    record::{BlobKind, BlobRecord},
};

impl BlobApi {
    /// The blob that a request names, for a caller with the permission on it.
    pub(super) async fn key(
        &self,
        access: &BlobAccess,
        (container, name): &(ContainerName, BlobName),
    ) -> Result<BlobKey, Fault> {
        let found = self.containers.open(access, container, Some(name)).await?;
        Ok(BlobKey { container: found.id, name: name.clone() })
    }

    /// As [`BlobApi::key`], for a call that creates the blob: it must be new where the caller may not overwrite it.
    pub(super) async fn key_to_create(
        &self,
        access: &BlobAccess,
        names: &(ContainerName, BlobName),
        conditions: &mut Conditions,
    ) -> Result<BlobKey, Fault> {
        let key = self.key(access, names).await?;
        conditions.creates_only = access.also(BlobNeed::Write).is_err();
        Ok(key)
    }

    /// A blob as a response has it: without its tags, and how many there are for callers who may read them.
    pub(super) fn show(
        &self,
        access: &BlobAccess,
        (container, name): &(ContainerName, BlobName),
        record: BlobRecord,
    ) -> proto::Blob {
        let blob = render::blob(container.as_str(), name.as_str(), record, self.blobs.now());
        let tag_count = if access.also(BlobNeed::Tags).is_ok() { blob.tag_count } else { 0 };
        proto::Blob { tags: Default::default(), tag_count, ..blob }
    }

    /// A blob after a change of a part of it: callers who may not read it receive what they
    /// need for the next change.
    pub(super) fn show_changed(
        &self,
        access: &BlobAccess,
        names: &(ContainerName, BlobName),
        record: BlobRecord,
    ) -> proto::Blob {
        let blob = self.show(access, names, record);
        match access.also(BlobNeed::Read) {
            Ok(_) => blob,
            Err(_) => render::unreadable(blob),
        }
    }

    pub(super) fn show_state(
        &self,
        access: &BlobAccess,
        names: &(ContainerName, BlobName),
        state: BlobState,
        record: BlobRecord,
    ) -> proto::Blob {
        render::with_state(self.show(access, names, record), state)
    }

    pub(super) async fn blob(
        &self,
        access: &BlobAccess,
        request: proto::GetBlobRequest,
    ) -> Result<proto::GetBlobResponse, Fault> {
        let access = &access.to_state(&request.snapshot, &request.version_id);
        let mut parser = RequestParser::of(access);
        let names = parser.names(request.container, request.blob);
        let state = parser.state(&request.snapshot, &request.version_id);
        let (conditions, lease_id) = parser.blob_conditions(request.conditions);
        let names = parser.finish(names)?;
        let key = self.key(access, &names).await?;
        let found = self.blobs.get((&key, state), (&conditions, lease_id)).await?;
        Ok(proto::GetBlobResponse {
            blob: Some(self.show_state(access, &names, found.state, found.record)),
            not_modified: found.freshness == Freshness::NotModified,
        })
    }

    pub(super) async fn update(
        &self,
        access: &BlobAccess,
        request: proto::UpdateBlobRequest,
    ) -> Result<proto::UpdateBlobResponse, Fault> {
        let mut parser = RequestParser::of(access);
        let names = parser.names(request.container, request.blob);
        let required = parser.blob_conditions(request.conditions);
        let new_properties = parser.properties(request.properties);
        let new_metadata = parser.metadata(request.metadata, "metadata");
        let (mut properties, mut metadata) = (None, None);
        for path in request.update_mask.unwrap_or_default().paths {
            match path.as_str() {
                "properties" => properties = Some(new_properties.clone()),
                "metadata" => metadata = Some(new_metadata.clone()),
                other => {
                    let rule =
                        format!("must be of properties, metadata: value=`{}`", quoted(other));
                    return Err(Fault::violation(Reason::InvalidInput, "update_mask", rule));
                }
            }
        }
        if properties.is_none() && metadata.is_none() {
            let rule = "required: what to replace";
            return Err(Fault::violation(Reason::InvalidInput, "update_mask", rule));
        }
        let names = parser.finish(names)?;
        let key = self.key(access, &names).await?;
        let versions = metadata.is_some() && self.retention(access).await?.versions;
        let change = BlobChange::Update { properties, metadata, versions };
        let changed = self.blobs.change(key, change, required).await?;
        Ok(proto::UpdateBlobResponse {
            blob: Some(self.show_changed(access, &names, changed.record)),
        })
    }

    pub(super) async fn delete(
        &self,
        access: &BlobAccess,
        request: proto::DeleteBlobRequest,
    ) -> Result<proto::DeleteBlobResponse, Fault> {
        let (snapshot, version_id) = (request.snapshot.clone(), request.version_id.clone());
        let mut parser = RequestParser::of(access);
        let scope = parser.delete_scope(&request);
        let names = parser.names(request.container, request.blob);
        let required = parser.blob_conditions(request.conditions);
        let names = parser.finish(names)?;
        let need = match scope {
            DeleteScope::Version(_) => BlobNeed::DeleteVersion,
            _ => BlobNeed::Delete,
        };
        let deletable = access.also(need)?.to_state(&snapshot, &version_id);
        let key = self.key(&deletable, &names).await?;
        let retention = self.retention(access).await?;
        self.blobs.delete(key, scope, required, retention).await?;
        Ok(proto::DeleteBlobResponse {})
    }

    pub(super) async fn list(
        &self,
        access: &BlobAccess,
        request: proto::ListBlobsRequest,
    ) -> Result<proto::ListBlobsResponse, Fault> {
        let tag_access = access.also(BlobNeed::ListTags);
        let included = Included {
            metadata: request.include_metadata,
            tags: request.include_tags,
            tag_count: tag_access.is_ok(),
        };
        if included.tags {
            tag_access?;
        }
        let (name, list) = parse::list_blobs(request)?;
        // What is not readable at the name of a blob is not public.
        if access.is_anonymous()
            && (list.with_uncommitted || list.past.deleted || list.past.versions)
        {
            return Err(anonymous());
        }
        let container = self.containers.open(access, &name, None).await?;
        let page = self.blobs.list(container.id, &list).await?;
        let now = self.blobs.now();
        let item = |item: ListedItem| render::listed(name.as_str(), item, included, now);
        Ok(proto::ListBlobsResponse {
            items: page.items.into_iter().map(item).collect(),
            next_page_token: page.next_page_token.unwrap_or_default(),
        })
    }

    pub(super) async fn blob_lease(
        &self,
        access: &BlobAccess,
        request: proto::LeaseBlobRequest,
    ) -> Result<proto::LeaseBlobResponse, Fault> {
        let mut parser = RequestParser::of(access);
        let names = parser.names(request.container, request.blob);
        let required = parser.blob_conditions(request.conditions);
        let action = parser.lease_action(request.action.map(Into::into), (self.random)());
        let (names, action) = parser.finish(names.zip(action))?;
        let need = if action.is_break() { BlobNeed::BreakLease } else { BlobNeed::Write };
        let key = self.key(&access.also(need)?, &names).await?;
        let changed = self.blobs.change(key, BlobChange::Lease(action), required).await?;
        let (lease_id, remaining) = render::lease_result(changed.lease);
        let lease = render::lease(&changed.record.lease, self.blobs.now());
        let blob = self.show_changed(access, &names, changed.record);
        let blob = Some(proto::Blob { lease: Some(lease), ..blob });
        Ok(proto::LeaseBlobResponse { lease_id, remaining, blob })
    }

    pub(super) async fn commit(
        &self,
        access: &BlobAccess,
        request: proto::CommitBlocksRequest,
    ) -> Result<proto::CommitBlocksResponse, Fault> {
        let mut parser = RequestParser::of(access);
        let names = parser.names(request.container, request.blob);
        let blocks = parser.blocks(request.blocks);
        let tier = parser.tier_of(request.access_tier, BlobKind::Block);
        let (conditions, lease_id) = parser.blob_conditions(request.conditions);
        let properties = parser.properties(request.properties);
        let metadata = parser.metadata(request.metadata, "metadata");
        let tags = parser.tags(request.tags, "tags");
        let names = parser.finish(names)?;
        let key = self.key(access, &names).await?;
        let retention = self.retention(access).await?;
        let origin = None;
        let command = PutCommand {
            properties,
            metadata,
            tags,
            conditions,
            lease_id,
            tier,
            origin,
            retention,
        };
        let record = self.blobs_for(access).commit_blocks(key, &blocks, command).await?;
        Ok(proto::CommitBlocksResponse { blob: Some(self.show(access, &names, record)) })
    }

    pub(super) async fn block_list(
        &self,
        access: &BlobAccess,
        request: proto::GetBlockListRequest,
    ) -> Result<proto::GetBlockListResponse, Fault> {
        let access = &access.to_state(&request.snapshot, &request.version_id);
        let mut parser = RequestParser::of(access);
        let names = parser.names(request.container, request.blob);
        let lease_id = parser.lease_id(&request.lease_id, "lease_id");
        let state = parser.state(&request.snapshot, &request.version_id);
        let if_tags = parser.tag_condition(request.if_tags, "if_tags");
        let names = parser.finish(names)?;
        let key = self.key(access, &names).await?;
        let blobs = self.blobs_for(access);
        let (state, blocks) = match state {
            StateName::Current => (BlobState::Current, blobs.blocks(&key, lease_id).await?),
            past => blobs.past_blocks(&key, past).await?,
        };
        // The tags of a blob that is not committed are none, which no condition holds for.
        let conditions = Conditions { if_tags, ..Conditions::default() };
        let tagged = conditions.check_write(blocks.record.as_ref(), WriteKind::Change);
        tagged.map_err(BlobError::from)?;
        // What is staged is not public.
        let staged = if access.is_anonymous() { Vec::new() } else { blocks.staged };
        let blob = match blocks.record {
            Some(record) => self.show_state(access, &names, state, record),
            None if access.is_anonymous() => return Err(key.not_found().into()),
            None => {
                let named = render::named(names.0.as_str(), names.1.as_str());
                proto::Blob { is_uncommitted: true, ..named }
            }
        };
        Ok(proto::GetBlockListResponse {
            blob: Some(blob),
            committed: render::blocks(blocks.committed),
            uncommitted: render::blocks(staged),
        })
    }
}
