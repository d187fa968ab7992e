//! The form of containers.

use bytes::Bytes;
use prost::Message;
use trestle_model::time::Ticks;

use super::{
    LeaseForm, MetadataForm, Stored, deletion_of, lease_form, lease_of, metadata_form, metadata_of,
};
use crate::{
    etag::ETag,
    record::{ContainerId, ContainerRecord, PublicAccess},
};

#[derive(Clone, PartialEq, Message)]
pub(crate) struct ContainerForm {
    #[prost(uint64, tag = "1")]
    id: u64,
    #[prost(uint64, tag = "2")]
    etag: u64,
    #[prost(uint64, tag = "3")]
    created_at: u64,
    #[prost(message, repeated, tag = "4")]
    metadata: Vec<MetadataForm>,
    #[prost(bytes = "bytes", tag = "5")]
    policies: Bytes,
    #[prost(message, optional, tag = "6")]
    lease: Option<LeaseForm>,
    #[prost(uint64, optional, tag = "20")]
    deleted_at: Option<u64>,
    #[prost(uint64, tag = "21")]
    deleted_until: u64,
    /// 0: nothing, 1: blobs, 2: the container.
    #[prost(uint32, tag = "22")]
    public_access: u32,
}

impl Stored for ContainerRecord {
    type Form = ContainerForm;
    const WHAT: &'static str = "record of a container";

    fn to_form(&self) -> ContainerForm {
        ContainerForm {
            id: self.id.0,
            etag: self.etag.0.get(),
            created_at: self.created_at.get(),
            metadata: metadata_form(&self.metadata),
            policies: self.policies.clone(),
            lease: lease_form(&self.lease),
            deleted_at: self.deletion.map(|it| it.at.get()),
            deleted_until: self.deletion.map_or(0, |it| it.until.get()),
            public_access: match self.public_access {
                PublicAccess::None => 0,
                PublicAccess::Blobs => 1,
                PublicAccess::Container => 2,
            },
        }
    }

    fn of_form(form: ContainerForm) -> Option<Self> {
        Some(Self {
            id: ContainerId(form.id),
            etag: ETag(Ticks::new(form.etag)?),
            created_at: Ticks::new(form.created_at)?,
            metadata: metadata_of(form.metadata),
            policies: form.policies,
            lease: lease_of(form.lease)?,
            deletion: deletion_of(form.deleted_at, form.deleted_until)?,
            public_access: match form.public_access {
                0 => PublicAccess::None,
                1 => PublicAccess::Blobs,
                2 => PublicAccess::Container,
                _ => return None,
            },
        })
    }
}
