//! Batches of OTLP logs: a log record is stored as it arrived.

use trestle_proto::opentelemetry::proto::logs::v1::ResourceLogs;

use super::{
    encode::FRAME_BYTES_MAX,
    export::{ExportEncoder, ExportFields, ItemPlace, ResourceItems},
};

impl ResourceItems for ResourceLogs {
    const FIELDS: ExportFields =
        ExportFields { resources: "resource_logs", scopes: "scope_logs", items: "log_records" };

    fn count(_: &[u8]) -> u64 {
        1
    }

    fn add<'a>(record: &'a [u8], place: ItemPlace, encoder: &mut ExportEncoder<'a>) {
        let ExportEncoder { checker, batch, rejected, .. } = encoder;
        let admitted = checker.check(record).and_then(|time| {
            batch.admit(&[time], record.len() + FRAME_BYTES_MAX)?;
            Ok(time)
        });
        match admitted {
            Ok(time) => batch.push(record, time),
            Err(error) => rejected.add(1, &place.to_string(), &error),
        }
    }
}
