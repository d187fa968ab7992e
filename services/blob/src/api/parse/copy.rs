//! The source of a copy.

#[cfg(test)]
mod tests;

use std::fmt;

use http::{HeaderMap, Uri};
use trestle_model::fault::{Reason, quoted};
use trestle_model::limits::COPY_SOURCE_BYTES_MAX;
use trestle_model::name::AccountName;
use trestle_proto::blob::v1 as proto;
use uuid::Uuid;

use super::RequestParser;
use crate::{
    blobs::{RequestedRange, StateName},
    conditions::Conditions,
    copy_url::{CopyHosts, CopyUrl, CopyUrlError, OwnUrl},
    names::{BlobName, ContainerName},
    past,
};

/// What to copy.
pub(in crate::api) enum CopySource {
    /// A blob of the account, or a state of it.
    Blob(BlobSource),
    /// Content of another server.
    Url(Uri),
}

/// A blob to copy, or a state of it.
pub(in crate::api) struct BlobSource {
    pub(in crate::api) names: (ContainerName, BlobName),
    pub(in crate::api) state: StateName,
}

/// What a client states of the source of the data of a call.
#[derive(Default)]
pub(in crate::api) struct StatedSource {
    pub(in crate::api) blob: Option<proto::BlobSource>,
    pub(in crate::api) url: String,
    pub(in crate::api) range: Option<proto::ByteRange>,
    pub(in crate::api) conditions: Option<proto::BlobConditions>,
}

/// Data that the server reads itself.
pub(in crate::api) struct DataSource {
    pub(in crate::api) from: CopySource,
    pub(in crate::api) range: Option<RequestedRange>,
    /// The conditions, for another server.
    pub(in crate::api) headers: HeaderMap,
    /// The conditions, within the service.
    pub(in crate::api) required: (Conditions, Option<Uuid>),
}

impl fmt::Display for CopySource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Blob(source) => source.fmt(f),
            // Without the query, which may have a signature.
            Self::Url(uri) => {
                let host = uri.authority().map_or("", |authority| authority.as_str());
                write!(f, "{}://{host}{}", uri.scheme_str().unwrap_or_default(), uri.path())
            }
        }
    }
}

impl fmt::Display for BlobSource {
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
    /// The source of a copy, for the account.
    pub(in crate::api) fn copy_source(
        &mut self,
        (source, url): (Option<proto::BlobSource>, &str),
        (hosts, account): (&CopyHosts, &AccountName),
    ) -> Option<CopySource> {
        match (source, url.is_empty()) {
            (Some(source), true) => self.blob_source(source, |field| format!("source.{field}")),
            (None, false) => self.url_source(url, (hosts, account)),
            (None, true) => {
                self.push(Reason::MissingRequiredHeader, "source", "required: the blob to copy");
                None
            }
            (Some(_), false) => {
                let rule = "must be absent where there is a source";
                self.push(Reason::InvalidHeaderValue, "source_url", rule);
                None
            }
        }
    }

    /// The source of the data of a call, if the client states one.
    pub(in crate::api) fn data_source(
        &mut self,
        stated: StatedSource,
        resolved: (&CopyHosts, &AccountName),
    ) -> Option<DataSource> {
        let StatedSource { blob, url, range, conditions } = stated;
        if blob.is_none() && url.is_empty() && range.is_none() && conditions.is_none() {
            return None;
        }
        let from = self.copy_source((blob, &url), resolved);
        let range = self.range(range, "source_range");
        let is_elsewhere = matches!(from, Some(CopySource::Url(_)));
        let headers = self.condition_headers(conditions.as_ref().filter(|_| is_elsewhere));
        let required = self.source_conditions(conditions, is_elsewhere);
        Some(DataSource { from: from?, range, headers, required })
    }

    /// A source, whose fields have other names in the request.
    fn blob_source(
        &mut self,
        source: proto::BlobSource,
        renamed: impl Fn(&str) -> String,
    ) -> Option<CopySource> {
        let mut parser = Self::default();
        let state = parser.state(&source.snapshot, &source.version_id);
        let names = parser.names(source.container, source.blob);
        match parser.finish(names) {
            Ok(names) => Some(CopySource::Blob(BlobSource { names, state })),
            Err(fault) => {
                self.violations.extend(fault.with_fields(renamed).violations);
                None
            }
        }
    }

    fn url_source(
        &mut self,
        url: &str,
        (hosts, account): (&CopyHosts, &AccountName),
    ) -> Option<CopySource> {
        if url.len() > COPY_SOURCE_BYTES_MAX {
            let rule = format!("must have at most {COPY_SOURCE_BYTES_MAX} bytes");
            self.push(Reason::InvalidHeaderValue, "source_url", rule);
            return None;
        }
        let own = match hosts.resolve(url) {
            Ok(CopyUrl::Own(own)) => own,
            Ok(CopyUrl::Other(uri)) => return Some(CopySource::Url(uri)),
            Err(error) => {
                let reason = match error {
                    CopyUrlError::Malformed => Reason::InvalidHeaderValue,
                    CopyUrlError::NotListed => Reason::CannotVerifyCopySource,
                };
                self.push(reason, "source_url", error.to_string());
                return None;
            }
        };
        if own.account != account.as_str() {
            let rule =
                format!("must be of the account of the call: account=`{}`", quoted(&own.account));
            self.push(Reason::CopyAcrossAccountsNotSupported, "source_url", rule);
            return None;
        }
        let OwnUrl { container, blob, snapshot, version_id, .. } = own;
        let source = proto::BlobSource { container, blob, snapshot, version_id };
        self.blob_source(source, |_| "source_url".to_owned())
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
