//! The calls on containers.

use trestle_identity::{access_policy, spec::BLOB};
use trestle_model::fault::Fault;
use trestle_proto::blob::v1 as proto;
use uuid::Uuid;

use super::{
    BlobApi,
    parse::{self, RequestParser},
    render,
};
use crate::{
    authorize::{BlobAccess, BlobNeed},
    conditions::Conditions,
    containers::{ContainerChange, encode_policies, policies_of},
    error::BlobError,
    lease::LeaseResult,
    names::ContainerName,
    record::{ContainerRecord, PublicAccess},
};

impl BlobApi {
    pub(super) async fn new_container(
        &self,
        access: &BlobAccess,
        request: proto::CreateContainerRequest,
    ) -> Result<proto::CreateContainerResponse, Fault> {
        let new = parse::new_container(request.container)?;
        if new.public_access != PublicAccess::None {
            // As a change of it: a signature could open more than it grants.
            access.also(BlobNeed::AccessPolicies)?;
        }
        let name = new.name.clone();
        let record = self.containers.create(access.account(), new).await?;
        Ok(proto::CreateContainerResponse { container: Some(self.shown(&name, record)) })
    }

    pub(super) async fn container(
        &self,
        access: &BlobAccess,
        request: proto::GetContainerRequest,
    ) -> Result<proto::GetContainerResponse, Fault> {
        let mut parser = RequestParser::default();
        let name = parser.container(request.container, "container");
        let lease_id = parser.lease_id(&request.lease_id, "lease_id");
        let name = parser.finish(name)?;
        let record = self.containers.open(access, &name, None).await?;
        let permitted = record.lease.check_read(lease_id, self.engine.now());
        permitted.map_err(BlobError::ContainerLease)?;
        Ok(proto::GetContainerResponse { container: Some(self.shown(&name, record)) })
    }

    pub(super) async fn set_metadata(
        &self,
        access: &BlobAccess,
        request: proto::UpdateContainerRequest,
    ) -> Result<proto::UpdateContainerResponse, Fault> {
        let mut parser = RequestParser::of(access);
        let name = parser.container(request.container, "container");
        let metadata = parser.metadata(request.metadata, "metadata");
        let required = parser.container_conditions(request.conditions);
        let change = ContainerChange::Metadata(metadata);
        let changed = self.change(access, parser.finish(name)?, change, required).await?;
        Ok(proto::UpdateContainerResponse { container: Some(changed.0) })
    }

    pub(super) async fn drop_container(
        &self,
        access: &BlobAccess,
        request: proto::DeleteContainerRequest,
    ) -> Result<proto::DeleteContainerResponse, Fault> {
        let mut parser = RequestParser::of(access);
        let name = parser.container(request.container, "container");
        let required = parser.container_conditions(request.conditions);
        let name = parser.finish(name)?;
        let kept_for = self.retention(access).await?.containers_deleted_for;
        self.change(access, name, ContainerChange::Delete(kept_for), required).await?;
        Ok(proto::DeleteContainerResponse {})
    }

    pub(super) async fn undelete_container(
        &self,
        access: &BlobAccess,
        request: proto::UndeleteContainerRequest,
    ) -> Result<proto::UndeleteContainerResponse, Fault> {
        let mut parser = RequestParser::default();
        let name = parser.container(request.container, "container");
        let id = parser.container_version(&request.version);
        let (name, id) = parser.finish(name.zip(id))?;
        // Who may not make a container public restores it as a private one.
        let may_open = access.also(BlobNeed::AccessPolicies).is_ok();
        let record =
            self.containers.undelete(access.account(), (name.clone(), id), may_open).await?;
        Ok(proto::UndeleteContainerResponse {
            container: Some(self.changed(access, &name, record)),
        })
    }

    pub(super) async fn containers(
        &self,
        access: &BlobAccess,
        request: proto::ListContainersRequest,
    ) -> Result<proto::ListContainersResponse, Fault> {
        let with_metadata = request.include_metadata;
        let page = self.containers.list(access.account(), parse::list_containers(request)?).await?;
        let now = self.engine.now();
        let containers = page.containers.into_iter().map(|(name, mut record)| {
            if !with_metadata {
                record.metadata.clear();
            }
            (name, record)
        });
        Ok(proto::ListContainersResponse {
            containers: containers.map(|(name, it)| render::container(&name, it, now)).collect(),
            next_page_token: page.next_page_token.unwrap_or_default(),
        })
    }

    pub(super) async fn policies(
        &self,
        access: &BlobAccess,
        request: proto::GetContainerAccessPoliciesRequest,
    ) -> Result<proto::GetContainerAccessPoliciesResponse, Fault> {
        let mut parser = RequestParser::default();
        let name = parser.container(request.container, "container");
        let name = parser.finish(name)?;
        let record = self.containers.open(access, &name, None).await?;
        let policies = policies_of(&record)?;
        let container = Some(self.shown(&name, record));
        Ok(proto::GetContainerAccessPoliciesResponse { container, policies })
    }

    pub(super) async fn set_policies(
        &self,
        access: &BlobAccess,
        request: proto::SetContainerAccessPoliciesRequest,
    ) -> Result<proto::SetContainerAccessPoliciesResponse, Fault> {
        let mut parser = RequestParser::of(access);
        let name = parser.container(request.container, "container");
        let required = parser.container_conditions(request.conditions);
        let name = parser.finish(name)?;
        access_policy::check(&request.policies, &BLOB.letters())?;
        let public_access = parse::public_access(request.public_access)?;
        let policies = encode_policies(request.policies);
        let change = ContainerChange::Policies(policies, public_access);
        let changed = self.change(access, name, change, required).await?;
        Ok(proto::SetContainerAccessPoliciesResponse { container: Some(changed.0) })
    }

    pub(super) async fn container_lease(
        &self,
        access: &BlobAccess,
        request: proto::LeaseContainerRequest,
    ) -> Result<proto::LeaseContainerResponse, Fault> {
        let mut parser = RequestParser::of(access);
        let name = parser.container(request.container, "container");
        let required = parser.container_conditions(request.conditions);
        let action = parser.lease_action(request.action.map(Into::into), (self.random)());
        let (name, action) = parser.finish(name.zip(action))?;
        if !action.is_break() {
            access.also(BlobNeed::WriteContainer)?;
        }
        let change = ContainerChange::Lease(action);
        let (container, result) = self.change(access, name, change, required).await?;
        let (lease_id, remaining) = render::lease_result(result);
        Ok(proto::LeaseContainerResponse { lease_id, remaining, container: Some(container) })
    }

    async fn change(
        &self,
        access: &BlobAccess,
        name: ContainerName,
        change: ContainerChange,
        required: (Conditions, Option<Uuid>),
    ) -> Result<(proto::Container, Option<LeaseResult>), Fault> {
        let changed = self.containers.change(access.account(), name.clone(), change, required);
        let (record, result) = changed.await?;
        let mut shown = self.changed(access, &name, record);
        shown.lease = shown.lease.filter(|_| result.is_some() || reads(access));
        Ok((shown, result))
    }

    /// A container after a change of a part of it: callers who may not read it receive what they
    /// need for the next change.
    fn changed(
        &self,
        access: &BlobAccess,
        name: &ContainerName,
        record: ContainerRecord,
    ) -> proto::Container {
        let shown = self.shown(name, record);
        match reads(access) {
            true => shown,
            false => proto::Container {
                name: shown.name,
                etag: shown.etag,
                last_modified: shown.last_modified,
                lease: shown.lease,
                ..proto::Container::default()
            },
        }
    }

    fn shown(&self, name: &ContainerName, record: ContainerRecord) -> proto::Container {
        render::container(name.as_str(), record, self.engine.now())
    }
}

/// Whether the caller may read containers too.
fn reads(access: &BlobAccess) -> bool {
    access.also(BlobNeed::ReadContainer).is_ok()
}
