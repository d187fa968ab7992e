//! Conditions of requests.

use std::time::SystemTime;

use http::{HeaderMap, HeaderValue, header};
use prost_types::Timestamp;
use trestle_proto::blob::v1 as proto;
use trestle_service::{clock::Ticks, fault::Reason, limits::CONDITION_ETAGS_MAX};
use uuid::Uuid;

use super::RequestParser;
use crate::{conditions::Conditions, etag::ETagPattern};

impl RequestParser {
    /// The conditions of a call on a blob, and the id of its lease.
    pub(in crate::api) fn blob_conditions(
        &mut self,
        conditions: Option<proto::BlobConditions>,
    ) -> (Conditions, Option<Uuid>) {
        let conditions = conditions.unwrap_or_default();
        let parsed = Conditions {
            if_match: self.etags(&conditions.if_match, "conditions.if_match"),
            if_none_match: self.etags(&conditions.if_none_match, "conditions.if_none_match"),
            if_modified_since: self.modified_since(conditions.if_modified_since),
            if_unmodified_since: self.unmodified_since(conditions.if_unmodified_since),
            if_tags: self.tag_condition(&conditions.if_tags, "conditions.if_tags"),
            creates_only: false,
        };
        (parsed, self.lease_id(&conditions.lease_id, "conditions.lease_id"))
    }

    /// The conditions of the source of a copy.
    pub(in crate::api) fn source_conditions(
        &mut self,
        conditions: Option<proto::BlobConditions>,
    ) -> (Conditions, Option<Uuid>) {
        let parsed = self.blob_conditions(conditions);
        if parsed.0.if_none_match.contains(&ETagPattern::Any) {
            let rule = "must name etags: a source exists";
            self.push(Reason::UnsatisfiableCondition, "source_conditions.if_none_match", rule);
        }
        parsed
    }

    /// The conditions of a source on another server, as headers of HTTP.
    pub(in crate::api) fn condition_headers(
        &mut self,
        conditions: Option<&proto::BlobConditions>,
    ) -> HeaderMap {
        let mut headers = HeaderMap::new();
        let Some(conditions) = conditions else { return headers };
        let time = |time: &Option<Timestamp>| {
            let time = time.and_then(|time| SystemTime::try_from(time).ok());
            time.map(httpdate::fmt_http_date).unwrap_or_default()
        };
        for (name, value) in [
            (header::IF_MATCH, conditions.if_match.join(", ")),
            (header::IF_NONE_MATCH, conditions.if_none_match.join(", ")),
            (header::IF_MODIFIED_SINCE, time(&conditions.if_modified_since)),
            (header::IF_UNMODIFIED_SINCE, time(&conditions.if_unmodified_since)),
        ] {
            match HeaderValue::from_str(&value) {
                Ok(value) if !value.is_empty() => drop(headers.insert(name, value)),
                Ok(_) => {}
                Err(_) => {
                    let rule = "must be printable ASCII";
                    self.push(Reason::InvalidHeaderValue, "source_conditions", rule);
                }
            }
        }
        headers
    }

    /// The conditions of a call on a container, and the id of its lease.
    pub(in crate::api) fn container_conditions(
        &mut self,
        conditions: Option<proto::ContainerConditions>,
    ) -> (Conditions, Option<Uuid>) {
        let conditions = conditions.unwrap_or_default();
        let parsed = Conditions {
            if_modified_since: self.modified_since(conditions.if_modified_since),
            if_unmodified_since: self.unmodified_since(conditions.if_unmodified_since),
            ..Conditions::default()
        };
        (parsed, self.lease_id(&conditions.lease_id, "conditions.lease_id"))
    }

    fn etags(&mut self, etags: &[String], field: &str) -> Vec<ETagPattern> {
        if etags.len() > CONDITION_ETAGS_MAX {
            let rule = format!("must have at most {CONDITION_ETAGS_MAX}: count=`{}`", etags.len());
            self.push(Reason::InvalidHeaderValue, field, rule);
            return Vec::new();
        }
        etags.iter().map(|etag| ETagPattern::parse(etag)).collect()
    }

    fn modified_since(&mut self, time: Option<Timestamp>) -> Option<Ticks> {
        self.time(time, "conditions.if_modified_since")
    }

    fn unmodified_since(&mut self, time: Option<Timestamp>) -> Option<Ticks> {
        self.time(time, "conditions.if_unmodified_since")
    }

    fn time(&mut self, time: Option<Timestamp>, field: &str) -> Option<Ticks> {
        let time = time?;
        // Whole seconds are compared, so what is between two ticks is no matter.
        let nanos = time.nanos - time.nanos.rem_euclid(100);
        let ticks = Ticks::from_unix(time.seconds, nanos);
        if ticks.is_none() {
            let rule = "must be a time of the years 1 to 9999";
            self.push(Reason::InvalidHeaderValue, field, rule);
        }
        ticks
    }
}
