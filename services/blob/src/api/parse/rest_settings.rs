//! The settings that only REST uses.

#[cfg(test)]
mod tests;

use trestle_identity::sas::Version;
use trestle_model::fault::{Fault, Reason, quoted};
use trestle_model::limits::BLOB_NAME_CHARS_MAX;
use trestle_model::xml;
use trestle_proto::blob::v1 as proto;

use super::RequestParser;
use crate::record::{RestSettings, Website};

/// Longest name of an index document, in characters. Azure.
const INDEX_CHARS_MAX: usize = 255;

/// The settings to change.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(in crate::api) struct RestSettingsChange {
    default_version: Option<String>,
    website: Option<Website>,
}

impl RestSettingsChange {
    /// Whether nothing is to be changed.
    pub(in crate::api) fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// The settings after the change.
    pub(in crate::api) fn apply(self, current: RestSettings) -> RestSettings {
        RestSettings {
            default_version: self.default_version.unwrap_or(current.default_version),
            website: self.website.unwrap_or(current.website),
        }
    }
}

/// The settings that a request changes.
///
/// # Errors
/// Every violated rule.
pub(in crate::api) fn rest_settings(
    default_version: Option<String>,
    website: Option<proto::StaticWebsite>,
) -> Result<RestSettingsChange, Fault> {
    let mut parser = RequestParser::default();
    if let Some(version) = &default_version
        && !(version.is_empty() || Version::is_version(version))
    {
        let rule = format!("must be a date such as 2021-12-02: value=`{}`", quoted(version));
        parser.push(Reason::InvalidServiceProperty, "default_service_version", rule);
    }
    let website = website.map(|website| parser.website(website));
    parser.finish(Some(RestSettingsChange { default_version, website }))
}

impl RequestParser {
    fn website(&mut self, website: proto::StaticWebsite) -> Website {
        let index = &website.index_document;
        if index.contains('/') || index.chars().count() > INDEX_CHARS_MAX {
            let rule = format!("must be at most {INDEX_CHARS_MAX} characters without `/`");
            self.website_problem("index_document", &rule, index);
        }
        for (field, path) in [
            ("error_document_404_path", &website.error_document_404_path),
            ("default_index_document_path", &website.default_index_document_path),
        ] {
            if path.starts_with('/') || path.chars().count() > BLOB_NAME_CHARS_MAX {
                let rule = format!(
                    "must be at most {BLOB_NAME_CHARS_MAX} characters, without `/` at first"
                );
                self.website_problem(field, &rule, path);
            }
        }
        for (field, text) in [
            ("index_document", index),
            ("error_document_404_path", &website.error_document_404_path),
            ("default_index_document_path", &website.default_index_document_path),
        ] {
            if !text.chars().all(xml::is_allowed) {
                let rule = "must have only characters that XML 1.0 can carry";
                self.website_problem(field, rule, text);
            }
        }
        if !index.is_empty() && !website.default_index_document_path.is_empty() {
            let path = &website.default_index_document_path;
            self.website_problem("default_index_document_path", "excludes index_document", path);
        }
        Website {
            is_enabled: website.enabled,
            index_document: website.index_document,
            error_document: website.error_document_404_path,
            default_index_document: website.default_index_document_path,
        }
    }

    fn website_problem(&mut self, field: &str, rule: &str, value: &str) {
        let rule = format!("{rule}: value=`{}`", quoted(value));
        self.push(Reason::InvalidServiceProperty, &format!("static_website.{field}"), rule);
    }
}
