#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod grammar;
mod naive;
mod pruning;
mod semantics;

use std::{borrow::Cow, collections::BTreeMap};

use super::*;
use crate::row::ValueRef;

/// A record.
#[derive(Debug, Clone, Default)]
struct SampleRow {
    time: u64,
    sequence: u64,
    severity: i32,
    severity_text: String,
    body: Option<String>,
    event_name: String,
    value: Option<f64>,
    trace_id: Vec<u8>,
    span_id: Vec<u8>,
    attributes: BTreeMap<String, ValueRef<'static>>,
    resource: BTreeMap<String, ValueRef<'static>>,
    scope: String,
    temporality: String,
    is_monotonic: Option<bool>,
    unit: String,
}

impl RowFields for SampleRow {
    fn time(&self) -> u64 {
        self.time
    }

    fn sequence(&self) -> u64 {
        self.sequence
    }

    fn severity(&self) -> i32 {
        self.severity
    }

    fn severity_text(&self) -> &str {
        &self.severity_text
    }

    fn body(&self) -> Option<&str> {
        self.body.as_deref()
    }

    fn event_name(&self) -> &str {
        &self.event_name
    }

    fn value(&self) -> Option<f64> {
        self.value
    }

    fn temporality(&self) -> &str {
        &self.temporality
    }

    fn is_monotonic(&self) -> Option<bool> {
        self.is_monotonic
    }

    fn unit(&self) -> &str {
        &self.unit
    }

    fn trace_id(&self) -> &[u8] {
        &self.trace_id
    }

    fn span_id(&self) -> &[u8] {
        &self.span_id
    }

    fn attribute(&self, key: &str) -> Option<ValueRef<'_>> {
        self.attributes.get(key).cloned()
    }

    fn resource(&self, key: &str) -> Option<ValueRef<'_>> {
        self.resource.get(key).cloned()
    }

    fn scope_name(&self) -> Cow<'_, str> {
        self.scope.as_str().into()
    }
}

fn filter(text: &str) -> LogFilter {
    LogFilter::parse(text).unwrap().unwrap()
}

fn text(text: &str) -> ValueRef<'static> {
    ValueRef::Str(text.to_owned().into())
}
