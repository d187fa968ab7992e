//! Conditions of requests.

#[cfg(test)]
mod tests;

use std::time::SystemTime;

use http::{HeaderMap, HeaderValue, header};
use prost_types::Timestamp;
use trestle_model::fault::{Reason, quoted};
use trestle_model::limits::CONDITION_ETAGS_MAX;
use trestle_model::time::Ticks;
use trestle_proto::blob::v1 as proto;
use uuid::Uuid;

use super::RequestParser;
use crate::{
    authorize::BlobNeed,
    conditions::{ConditionField, Conditions},
    etag::ETagPattern,
};

impl RequestParser {
    /// The conditions of a call on a blob, and the id of its lease.
    pub(in crate::api) fn blob_conditions(
        &mut self,
        conditions: Option<proto::BlobConditions>,
    ) -> (Conditions, Option<Uuid>) {
        self.conditions_in("conditions", conditions)
    }

    /// The conditions in a field of a request.
    fn conditions_in(
        &mut self,
        field: &str,
        conditions: Option<proto::BlobConditions>,
    ) -> (Conditions, Option<Uuid>) {
        let Some(conditions) = conditions else { return Default::default() };
        let path = |name: ConditionField| format!("{field}.{}", name.name());
        let unmodified = ConditionField::UnmodifiedSince;
        let parsed = Conditions {
            if_match: self.etags(&conditions.if_match, &path(ConditionField::Match)),
            if_none_match: self.etags(&conditions.if_none_match, &path(ConditionField::NoneMatch)),
            if_modified_since: self
                .time(conditions.if_modified_since, &path(ConditionField::ModifiedSince)),
            if_unmodified_since: self.time(conditions.if_unmodified_since, &path(unmodified)),
            if_tags: self.tag_condition(conditions.if_tags, &path(ConditionField::Tags)),
            creates_only: false,
            shows_current: self.may_one_of([BlobNeed::Read, BlobNeed::Write]),
        };
        (parsed, self.lease_id(&conditions.lease_id, &format!("{field}.lease_id")))
    }

    /// Whether the caller has one of these permissions, and so sees what a condition is compared with.
    fn may_one_of(&self, needs: [BlobNeed; 2]) -> bool {
        let access = self.access.as_ref();
        access.is_some_and(|access| needs.into_iter().any(|need| access.also(need).is_ok()))
    }

    /// The conditions of the source of a copy. The etags of another server may have any form.
    pub(in crate::api) fn source_conditions(
        &mut self,
        conditions: Option<proto::BlobConditions>,
        is_elsewhere: bool,
    ) -> (Conditions, Option<Uuid>) {
        let Some(mut conditions) = conditions else { return Default::default() };
        if conditions.if_none_match.iter().any(|etag| etag == "*") {
            let rule = "must name etags: a source exists: value=`*`";
            self.push(Reason::UnsatisfiableCondition, "source_conditions.if_none_match", rule);
        }
        if is_elsewhere {
            let unchecked = [("if_tags", &conditions.if_tags), ("lease_id", &conditions.lease_id)];
            for (name, _) in unchecked.into_iter().filter(|(_, value)| !value.is_empty()) {
                let rule = "must be empty: another server cannot check it";
                let field = format!("source_conditions.{name}");
                self.push(Reason::InvalidHeaderValue, &field, rule);
            }
            for (etags, field) in [
                (&mut conditions.if_match, "source_conditions.if_match"),
                (&mut conditions.if_none_match, "source_conditions.if_none_match"),
            ] {
                self.count_etags(etags, field);
                etags.clear();
            }
        }
        self.conditions_in("source_conditions", Some(conditions))
    }

    /// The conditions of a source on another server, as headers of HTTP.
    pub(in crate::api) fn condition_headers(
        &mut self,
        conditions: Option<&proto::BlobConditions>,
    ) -> HeaderMap {
        let mut headers = HeaderMap::new();
        let Some(conditions) = conditions else { return headers };
        let modified = ("source_conditions.if_modified_since", conditions.if_modified_since);
        let unmodified = ("source_conditions.if_unmodified_since", conditions.if_unmodified_since);
        for (name, value) in [
            (header::IF_MATCH, conditions.if_match.join(", ")),
            (header::IF_NONE_MATCH, conditions.if_none_match.join(", ")),
            (header::IF_MODIFIED_SINCE, self.http_date(modified)),
            (header::IF_UNMODIFIED_SINCE, self.http_date(unmodified)),
        ] {
            match HeaderValue::from_str(&value) {
                Ok(value) if value.is_empty() => {}
                // Without it other than ASCII would be accepted.
                Ok(value) if value.to_str().is_ok() => drop(headers.insert(name, value)),
                _ => {
                    let rule = "must be printable ASCII";
                    self.push(Reason::InvalidHeaderValue, "source_conditions", rule);
                }
            }
        }
        headers
    }

    /// A time as a header of HTTP; empty if it is absent or rejected.
    fn http_date(&mut self, (field, time): (&str, Option<Timestamp>)) -> String {
        let Some(time) = time else { return String::new() };
        // The years 1970 to 9999: the form has no others.
        let stated = (0..253_402_300_800).contains(&time.seconds).then_some(time);
        let stated = stated.and_then(|time| SystemTime::try_from(time).ok());
        if stated.is_none() {
            let rule = "must be a time of the years 1970 to 9999 where another server reads it";
            let rule = format!("{rule}: seconds=`{}`", time.seconds);
            self.push(Reason::InvalidHeaderValue, field, rule);
        }
        stated.map(httpdate::fmt_http_date).unwrap_or_default()
    }

    /// The conditions of a call on a container, and the id of its lease.
    pub(in crate::api) fn container_conditions(
        &mut self,
        conditions: Option<proto::ContainerConditions>,
    ) -> (Conditions, Option<Uuid>) {
        let Some(conditions) = conditions else { return Default::default() };
        let (modified, unmodified) =
            ("conditions.if_modified_since", "conditions.if_unmodified_since");
        let parsed = Conditions {
            if_modified_since: self.time(conditions.if_modified_since, modified),
            if_unmodified_since: self.time(conditions.if_unmodified_since, unmodified),
            shows_current: self.may_one_of([BlobNeed::ReadContainer, BlobNeed::WriteContainer]),
            ..Conditions::default()
        };
        (parsed, self.lease_id(&conditions.lease_id, "conditions.lease_id"))
    }

    fn etags(&mut self, etags: &[String], field: &str) -> Vec<ETagPattern> {
        if !self.count_etags(etags, field) {
            return Vec::new();
        }
        let mut patterns = Vec::with_capacity(etags.len());
        for etag in etags {
            let pattern = ETagPattern::parse(etag);
            if pattern.is_none() {
                let value = quoted(etag);
                let rule =
                    format!("must be `*` or an etag that a response carried: value=`{value}`");
                self.push(Reason::InvalidHeaderValue, field, rule);
            }
            patterns.extend(pattern);
        }
        patterns
    }

    fn count_etags(&mut self, etags: &[String], field: &str) -> bool {
        if etags.len() > CONDITION_ETAGS_MAX {
            let rule = format!("must have at most {CONDITION_ETAGS_MAX}: count=`{}`", etags.len());
            self.push(Reason::InvalidHeaderValue, field, rule);
        }
        etags.len() <= CONDITION_ETAGS_MAX
    }

    fn time(&mut self, time: Option<Timestamp>, field: &str) -> Option<Ticks> {
        let time = time?;
        // Whole seconds are compared, so what is between two ticks is no matter.
        let nanos = time.nanos.checked_sub(time.nanos.rem_euclid(100));
        let ticks = nanos.and_then(|nanos| Ticks::from_unix(time.seconds, nanos));
        if ticks.is_none() {
            let rule = "must be a time of the years 1 to 9999";
            self.push(Reason::InvalidHeaderValue, field, rule);
        }
        ticks
    }
}
