//! The source of a copy.

use std::fmt;

use trestle_proto::blob::v1 as proto;
use trestle_service::{fault::Reason, limits::COPY_SOURCE_BYTES_MAX};

use super::RequestParser;
use crate::{
    blobs::StateName,
    names::{BlobName, ContainerName},
    past,
};

/// A blob to copy, or a state of it.
pub(in crate::api) struct CopySource {
    pub(in crate::api) names: (ContainerName, BlobName),
    pub(in crate::api) state: StateName,
}

impl fmt::Display for CopySource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (container, blob) = &self.names;
        match self.state {
            StateName::Current => write!(f, "{container}/{blob}"),
            StateName::Version(id) => write!(f, "{container}/{blob}?versionid={}", past::name(id)),
            StateName::Snapshot(at) => write!(f, "{container}/{blob}?snapshot={}", past::name(at)),
        }
    }
}

impl RequestParser {
    /// The source of a copy.
    pub(in crate::api) fn copy_source(
        &mut self,
        source: Option<proto::BlobSource>,
    ) -> Option<CopySource> {
        let Some(source) = source else {
            self.push(Reason::MissingRequiredHeader, "source", "required: the blob to copy");
            return None;
        };
        let state = self.state(&source.snapshot, &source.version_id);
        let names = self.names(source.container, source.blob)?;
        Some(CopySource { names, state })
    }

    /// How the client names the source, if it does.
    pub(in crate::api) fn copy_source_text(&mut self, text: String) -> Option<String> {
        if text.len() > COPY_SOURCE_BYTES_MAX {
            let rule = format!("must have at most {COPY_SOURCE_BYTES_MAX} bytes");
            self.push(Reason::InvalidHeaderValue, "source_text", rule);
        }
        Some(text).filter(|text| !text.is_empty())
    }
}
