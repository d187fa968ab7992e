//! The form of the settings that only REST uses.

use prost::Message;

use super::Stored;
use crate::record::{RestSettings, Website};

#[derive(Clone, PartialEq, Message)]
pub(crate) struct RestSettingsForm {
    #[prost(string, tag = "1")]
    default_version: String,
    #[prost(bool, tag = "2")]
    is_website_enabled: bool,
    #[prost(string, tag = "3")]
    index_document: String,
    #[prost(string, tag = "4")]
    error_document: String,
    #[prost(string, tag = "5")]
    default_index_document: String,
}

impl Stored for RestSettings {
    type Form = RestSettingsForm;
    const WHAT: &'static str = "settings of REST";

    fn to_form(&self) -> RestSettingsForm {
        let Self { default_version, website } = self.clone();
        RestSettingsForm {
            default_version,
            is_website_enabled: website.is_enabled,
            index_document: website.index_document,
            error_document: website.error_document,
            default_index_document: website.default_index_document,
        }
    }

    fn of_form(form: RestSettingsForm) -> Option<Self> {
        let website = Website {
            is_enabled: form.is_website_enabled,
            index_document: form.index_document,
            error_document: form.error_document,
            default_index_document: form.default_index_document,
        };
        Some(Self { default_version: form.default_version, website })
    }
}
