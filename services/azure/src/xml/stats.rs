//! The replication statistics of a service.

use prost_types::Timestamp;

use super::write::XmlWriter;
use crate::date::http_date;

/// The statistics of a service: its copy is current up to `last_sync`.
#[must_use]
pub fn write_stats(last_sync: &Timestamp) -> String {
    XmlWriter::document("StorageServiceStats", |writer| {
        writer.element("GeoReplication", |writer| {
            writer.text("Status", "live");
            writer.text("LastSyncTime", &http_date(Some(last_sync)));
        });
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stats_contain_the_time_of_the_last_sync() {
        let text = write_stats(&Timestamp { seconds: 1_763_726_400, nanos: 5 });

        assert!(text.ends_with(
            "<StorageServiceStats><GeoReplication><Status>live</Status>\
             <LastSyncTime>Fri, 21 Nov 2025 12:00:00 GMT</LastSyncTime></GeoReplication>\
             </StorageServiceStats>"
        ));
    }
}
