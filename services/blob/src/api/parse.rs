//! From requests to domain types: every violation of a request is collected before it is rejected.

mod conditions;
mod copy;
mod lease;
mod lists;
mod pages;
mod properties;
mod protection;
mod rest_settings;
mod states;
mod tags;
#[cfg(test)]
pub(super) mod tests;

use std::collections::HashMap;

use bytes::Bytes;
use trestle_model::fault::{Fault, Reason, Violations, quoted};
use trestle_model::limits::{BLOCK_ID_BYTES_MAX, BLOCKS_MAX};
use trestle_model::metadata;
use trestle_proto::blob::v1 as proto;
use uuid::Uuid;

pub(super) use self::{
    copy::{CopySource, DataSource, StatedSource},
    lists::{list_blobs, list_containers, verify_blobs},
    pages::sequence_conditions,
    properties::check_digests,
    protection::{RetentionChange, protection},
    rest_settings::{RestSettingsChange, rest_settings},
    tags::find_blobs,
};
use crate::{
    authorize::{BlobAccess, BlobNeed},
    blobs::RequestedRange,
    blocks::{BlockChoice, BlockSource},
    containers::NewContainer,
    names::{BlobName, ContainerName},
    record::{Metadata, PublicAccess},
};

/// Parses the fields of one request, and collects what they violate.
#[derive(Default)]
pub(super) struct RequestParser {
    violations: Violations,
    /// Who calls, where the request may use tags.
    access: Option<BlobAccess>,
    /// Why the caller may not use tags.
    denied: Option<Fault>,
}

impl RequestParser {
    /// For the request of a caller: tags, and conditions on them, need a permission of their own.
    pub(super) fn of(access: &BlobAccess) -> Self {
        Self { access: Some(access.clone()), ..Self::default() }
    }

    /// The request reads or sets tags.
    pub(super) fn use_tags(&mut self) {
        let checked = self.access.as_ref().map(|access| access.also(BlobNeed::Tags));
        self.denied = checked.and_then(Result::err).or(self.denied.take());
    }

    /// The parsed value, unless a rule was violated.
    ///
    /// # Errors
    /// Every violated rule.
    pub(super) fn finish<T>(self, parsed: Option<T>) -> Result<T, Fault> {
        self.violations.check(())?;
        if let Some(denied) = self.denied {
            return Err(denied);
        }
        let message = "a rejected value has no violation";
        parsed.ok_or_else(|| Fault::new(Reason::InternalError, message))
    }

    pub(super) fn push(&mut self, reason: Reason, field: &str, rule: impl Into<String>) {
        self.violations.push(reason, field, rule.into());
    }

    /// The name of a container.
    pub(super) fn container(&mut self, name: String, field: &str) -> Option<ContainerName> {
        ContainerName::parse(name, field, &mut self.violations)
    }

    /// The name of a blob.
    pub(super) fn blob(&mut self, name: String) -> Option<BlobName> {
        BlobName::parse(name, &mut self.violations)
    }

    /// A container and a blob in it.
    pub(super) fn names(
        &mut self,
        container: String,
        blob: String,
    ) -> Option<(ContainerName, BlobName)> {
        let container = self.container(container, "container");
        let blob = self.blob(blob);
        container.zip(blob)
    }

    /// Metadata, by name.
    pub(super) fn metadata(&mut self, pairs: HashMap<String, String>, field: &str) -> Metadata {
        metadata::parse(pairs, field, &mut self.violations)
    }

    /// The id of a lease; none if it is empty or rejected.
    pub(super) fn lease_id(&mut self, text: &str, field: &str) -> Option<Uuid> {
        if text.is_empty() {
            return None;
        }
        let id = Uuid::try_parse(text).ok();
        if id.is_none() {
            let rule = format!("must be a UUID: value=`{}`", quoted(text));
            self.push(Reason::InvalidHeaderValue, field, rule);
        }
        id
    }

    /// A range to read.
    pub(super) fn range(
        &mut self,
        range: Option<proto::ByteRange>,
        field: &str,
    ) -> Option<RequestedRange> {
        let proto::ByteRange { offset, length } = range?;
        if length == Some(0) {
            self.push(Reason::InvalidInput, &format!("{field}.length"), "must be at least 1");
        }
        Some(RequestedRange { offset, length })
    }

    /// The id of a block to stage.
    pub(super) fn block_id(&mut self, id: &Bytes) {
        if !(1..=BLOCK_ID_BYTES_MAX).contains(&id.len()) {
            let rule = format!("must have 1 to {BLOCK_ID_BYTES_MAX} bytes: bytes=`{}`", id.len());
            self.push(Reason::InvalidQueryParameterValue, "block_id", rule);
        }
    }

    /// The blocks of a list.
    pub(super) fn blocks(&mut self, blocks: Vec<proto::BlockRef>) -> Vec<BlockChoice> {
        if blocks.len() > BLOCKS_MAX {
            let rule = format!("must have at most {BLOCKS_MAX} blocks: count=`{}`", blocks.len());
            self.push(Reason::BlockListTooLong, "blocks", rule);
            return Vec::new();
        }
        let choice = |(index, block): (usize, proto::BlockRef)| {
            let source = match proto::BlockSource::try_from(block.source) {
                Ok(proto::BlockSource::Committed) => BlockSource::Committed,
                Ok(proto::BlockSource::Uncommitted) => BlockSource::Uncommitted,
                Ok(proto::BlockSource::Latest | proto::BlockSource::Unspecified) => {
                    BlockSource::Latest
                }
                Err(_) => {
                    let rule = format!("must be a known source: value=`{}`", block.source);
                    self.push(Reason::InvalidInput, &format!("blocks[{index}].source"), rule);
                    BlockSource::Latest
                }
            };
            BlockChoice { id: block.id, source }
        };
        blocks.into_iter().enumerate().map(choice).collect()
    }
}

/// A container to create.
///
/// # Errors
/// Every violated rule.
pub(super) fn new_container(container: Option<proto::Container>) -> Result<NewContainer, Fault> {
    let mut parser = RequestParser::default();
    let Some(container) = container else {
        parser.push(Reason::PropertiesNeedValue, "container", "required: the new container");
        return parser.finish(None);
    };
    let name = parser.container(container.name, "container.name");
    let metadata = parser.metadata(container.metadata, "container.metadata");
    let public_access = parser.public_access(container.public_access, "container.public_access");
    parser.finish(name.map(|name| NewContainer { name, metadata, public_access }))
}

/// A public access level.
///
/// # Errors
/// An unknown one.
pub(super) fn public_access(number: i32) -> Result<PublicAccess, Fault> {
    let mut parser = RequestParser::default();
    let level = parser.public_access(number, "public_access");
    parser.finish(Some(level))
}

impl RequestParser {
    fn public_access(&mut self, number: i32, field: &str) -> PublicAccess {
        match proto::PublicAccess::try_from(number) {
            Ok(proto::PublicAccess::Unspecified) => PublicAccess::None,
            Ok(proto::PublicAccess::Blob) => PublicAccess::Blobs,
            Ok(proto::PublicAccess::Container) => PublicAccess::Container,
            Err(_) => {
                let rule = format!("must be a known level: value=`{number}`");
                self.push(Reason::InvalidHeaderValue, field, rule);
                PublicAccess::None
            }
        }
    }
}
