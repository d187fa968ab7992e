//! Batches of OTLP logs: a log record that keeps the rules is stored as it arrived.

use trestle_proto::opentelemetry::proto::logs::v1::ResourceLogs;

use super::{
    export::{ExportEncoder, ExportFields, ItemPlace, ResourceItems},
    repair::{Leniency, admit_record},
};

impl ResourceItems for ResourceLogs {
    const FIELDS: ExportFields =
        ExportFields { resources: "resource_logs", scopes: "scope_logs", items: "log_records" };

    fn count(_: &[u8]) -> u64 {
        1
    }

    fn add<'a>(record: &'a [u8], place: ItemPlace, encoder: &mut ExportEncoder<'a>) {
        let ExportEncoder { checker, batch, rejected, left_out, .. } = encoder;
        let added = admit_record(checker, record, Leniency::InvalidParts, *left_out)
            .and_then(|admitted| batch.add(&admitted));
        if let Err(error) = added {
            rejected.add(1, &place.to_string(), &error);
        }
    }
}
