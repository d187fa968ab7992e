//! The settings of the service of blobs: those of every service, and its own.

use trestle_model::fault::Fault;
use trestle_proto::blob::v1::{DeleteRetentionPolicy, StaticWebsite};
use trestle_rpc::service_properties::ServiceProperties;

use super::{
    element::Element,
    properties::{boolean, read_common, write_common},
    write::XmlWriter,
};

/// The settings that a document has.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct BlobSettings {
    /// Those of every service.
    pub properties: ServiceProperties,
    /// The version of the protocol for requests that have none.
    pub default_version: Option<String>,
    /// How long deleted blobs can be restored.
    pub delete_retention: Option<DeleteRetentionPolicy>,
    /// The website.
    pub website: Option<StaticWebsite>,
}

/// Parses the settings to change: absent parts are not changed.
///
/// # Errors
/// A malformed document, or a missing element: its element and rule.
pub fn read_blob_settings(body: &[u8]) -> Result<BlobSettings, Fault> {
    let mut root = Element::root(body, "StorageServiceProperties")?;
    let settings = BlobSettings {
        properties: read_common(&mut root)?,
        default_version: root.optional("DefaultServiceVersion").map(text).transpose()?,
        delete_retention: root.optional("DeleteRetentionPolicy").map(read_retention).transpose()?,
        website: root.optional("StaticWebsite").map(read_website).transpose()?,
    };
    root.finish()?;
    Ok(settings)
}

fn text(element: Element<'_>) -> Result<String, Fault> {
    Ok(element.into_text()?.trim_ascii().to_owned())
}

fn read_retention(mut element: Element<'_>) -> Result<DeleteRetentionPolicy, Fault> {
    let enabled = boolean(element.required("Enabled")?)?;
    let days = element.optional("Days").filter(|_| enabled);
    let rule = "must be a whole number of days, 1 to 365";
    let days = days.map(|days| days.value(rule, |text| text.parse().ok())).transpose()?;
    // Nothing is deleted for good before its time here, whatever a client allows.
    element.optional("AllowPermanentDelete").map(boolean).transpose()?;
    element.finish()?;
    Ok(DeleteRetentionPolicy { enabled, days: days.unwrap_or_default() })
}

fn read_website(mut element: Element<'_>) -> Result<StaticWebsite, Fault> {
    let enabled = boolean(element.required("Enabled")?)?;
    let mut part = |name| element.optional(name).map(text).transpose();
    let website = StaticWebsite {
        enabled,
        index_document: part("IndexDocument")?.unwrap_or_default(),
        error_document_404_path: part("ErrorDocument404Path")?.unwrap_or_default(),
        default_index_document_path: part("DefaultIndexDocumentPath")?.unwrap_or_default(),
    };
    element.finish()?;
    Ok(website)
}

/// The settings as a document. Clients expect the parts of blobs also where they are off.
#[must_use]
pub fn write_blob_settings(settings: &BlobSettings) -> String {
    XmlWriter::document("StorageServiceProperties", |writer| {
        write_common(writer, &settings.properties);
        if let Some(version) = settings.default_version.as_ref().filter(|text| !text.is_empty()) {
            writer.text("DefaultServiceVersion", version);
        }
        writer.element("DeleteRetentionPolicy", |writer| {
            let policy = settings.delete_retention.unwrap_or_default();
            writer.value("Enabled", &policy.enabled);
            if policy.enabled {
                writer.value("Days", &policy.days);
            }
        });
        writer.element("StaticWebsite", |writer| {
            let website = settings.website.clone().unwrap_or_default();
            writer.value("Enabled", &website.enabled);
            for (name, value) in [
                ("IndexDocument", &website.index_document),
                ("ErrorDocument404Path", &website.error_document_404_path),
                ("DefaultIndexDocumentPath", &website.default_index_document_path),
            ] {
                if !value.is_empty() {
                    writer.text(name, value);
                }
            }
        });
    })
}
