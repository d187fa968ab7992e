//! A page of the containers of an account.

use trestle_proto::blob::v1::Container;

use super::{
    listing::{Echo, write_metadata, write_page},
    words::{lease_words, public_access},
    write::XmlWriter,
};
use crate::date::http_date;

/// The content of a listing of containers.
#[derive(Debug, Clone, Copy)]
pub struct ContainersDocument<'a> {
    /// What it repeats of the request.
    pub echo: Echo<'a>,
    /// Whether metadata was requested.
    pub has_metadata: bool,
    /// The containers, ordered by name.
    pub containers: &'a [Container],
    /// The continuation token; empty at the end.
    pub next_marker: &'a str,
}

/// The response to a listing of containers.
#[must_use]
pub fn write_containers(listing: &ContainersDocument<'_>) -> String {
    write_page(&listing.echo, listing.next_marker, |writer| {
        writer.element("Containers", |writer| {
            for container in listing.containers {
                writer.element("Container", |writer| {
                    write_container(writer, container, listing.has_metadata);
                });
            }
        });
    })
}

fn write_container(writer: &mut XmlWriter, container: &Container, has_metadata: bool) {
    let is_deleted = container.delete_time.is_some();
    writer.text("Name", &container.name);
    if is_deleted {
        writer.value("Deleted", &true);
        writer.text("Version", &container.version);
    }
    writer.element("Properties", |writer| {
        writer.text("Last-Modified", &http_date(container.last_modified.as_ref()));
        // Quoted, as in a header; the etags of blobs in a listing are not.
        writer.text("Etag", &container.etag);
        let lease = lease_words(container.lease.as_ref());
        writer.text("LeaseStatus", lease.status);
        writer.text("LeaseState", lease.state);
        if let Some(duration) = lease.duration {
            writer.text("LeaseDuration", duration);
        }
        if let Some(access) = public_access(container.public_access()) {
            writer.text("PublicAccess", access);
        }
        writer.text("DefaultEncryptionScope", "$account-encryption-key");
        for name in ["DenyEncryptionScopeOverride", "HasImmutabilityPolicy", "HasLegalHold"] {
            writer.value(name, &false);
        }
        writer.value("ImmutableStorageWithVersioningEnabled", &false);
        if is_deleted {
            writer.text("DeletedTime", &http_date(container.delete_time.as_ref()));
            writer.value("RemainingRetentionDays", &container.remaining_retention_days);
        }
    });
    if has_metadata {
        write_metadata(writer, &container.metadata);
    }
}
