//! Exporters of the SDK whose errors are logged in words, with the endpoint. The SDK would log them in its own form, so
//! none is returned to it.

use std::{sync::Arc, time::Duration};

use opentelemetry::logs::Severity;
use opentelemetry_sdk::{
    Resource,
    error::OTelSdkResult,
    logs::{LogBatch, LogExporter},
    trace::{SpanData, SpanExporter},
};

use super::export_errors::{ExportErrors, cause_of_error};

/// See the module.
#[derive(Debug)]
pub(super) struct LoggedExporter<E> {
    exporter: E,
    errors: Arc<ExportErrors>,
}

impl<E> LoggedExporter<E> {
    pub(super) fn new(exporter: E, errors: Arc<ExportErrors>) -> Self {
        Self { exporter, errors }
    }

    fn log(&self, signal: &'static str, exported: OTelSdkResult) -> OTelSdkResult {
        if let Some(cause) = exported.err().as_ref().and_then(cause_of_error) {
            self.errors.log(signal, &cause);
        }
        Ok(())
    }
}

impl<E: SpanExporter> SpanExporter for LoggedExporter<E> {
    async fn export(&self, batch: Vec<SpanData>) -> OTelSdkResult {
        self.log("traces", self.exporter.export(batch).await)
    }

    fn shutdown_with_timeout(&self, timeout: Duration) -> OTelSdkResult {
        self.exporter.shutdown_with_timeout(timeout)
    }

    fn shutdown(&self) -> OTelSdkResult {
        self.exporter.shutdown()
    }

    fn force_flush(&self) -> OTelSdkResult {
        self.exporter.force_flush()
    }

    fn set_resource(&mut self, resource: &Resource) {
        self.exporter.set_resource(resource);
    }
}

impl<E: LogExporter> LogExporter for LoggedExporter<E> {
    async fn export(&self, batch: LogBatch<'_>) -> OTelSdkResult {
        self.log("logs", self.exporter.export(batch).await)
    }

    fn shutdown_with_timeout(&self, timeout: Duration) -> OTelSdkResult {
        self.exporter.shutdown_with_timeout(timeout)
    }

    fn shutdown(&self) -> OTelSdkResult {
        self.exporter.shutdown()
    }

    fn event_enabled(&self, level: Severity, target: &str, name: Option<&str>) -> bool {
        self.exporter.event_enabled(level, target, name)
    }

    fn set_resource(&mut self, resource: &Resource) {
        self.exporter.set_resource(resource);
    }
}
