//! Stored access policies of a table, and the settings of the service for an account: checks and storage.
//!
//! Both are kept in the form of the public contract, whose rules keep old bytes readable.

use std::sync::Arc;

use bytes::Bytes;
use trestle_kv::{Engine, Snapshot, Write, transact};
use trestle_proto::table::v1 as proto;
use trestle_service::{
    access_policy::{self, Stated},
    fault::{Fault, Reason, Violations, quoted},
    limits::CORS_RULES_MAX,
    name::{AccountName, TableName},
};

use crate::{
    error::TableError,
    keys::{self, TableId},
    tables,
};

/// The letters of a permission, in their order.
const PERMISSIONS: &str = "raud";
/// The methods a cross-origin rule may name. Azure, and PATCH, which SDKs use for merges.
const CORS_METHODS: &[&str] =
    &["DELETE", "GET", "HEAD", "MERGE", "POST", "OPTIONS", "PUT", "PATCH"];
/// Most text of all rules together, in characters. Azure.
const CORS_CHARS_MAX: usize = 2048;
/// Most origins of a rule. Azure.
const CORS_ORIGINS_MAX: usize = 64;
/// Longest origin or header name, in characters. Azure.
const CORS_TEXT_CHARS_MAX: usize = 256;
/// Most whole header names of a list. Azure.
const CORS_HEADERS_MAX: usize = 64;
/// Most header prefixes of a list. Azure.
const CORS_HEADER_PREFIXES_MAX: usize = 2;
/// Longest retention. Azure.
const RETENTION_DAYS_MAX: i64 = 365;
const DAY_SECONDS: i64 = 86_400;

/// The settings of tables and accounts.
#[derive(Clone)]
pub(crate) struct Settings {
    engine: Arc<dyn Engine>,
}

impl Settings {
    /// Works on `engine`.
    pub(crate) fn new(engine: Arc<dyn Engine>) -> Self {
        Self { engine }
    }

    /// The access policies of a table.
    ///
    /// # Errors
    /// [`TableError::TableNotFound`], or a failed read.
    pub(crate) async fn access_policies(
        &self,
        account: &AccountName,
        table: &TableName,
    ) -> Result<Vec<proto::AccessPolicy>, TableError> {
        let snapshot = self.engine.snapshot().await?;
        let id = tables::resolve(&*snapshot, account, table).await?;
        stored_policies(&*snapshot, id).await
    }

    /// Replaces the access policies of a table.
    ///
    /// # Errors
    /// A broken rule, [`TableError::TableNotFound`], or a failed commit.
    pub(crate) async fn set_access_policies(
        &self,
        account: &AccountName,
        table: &TableName,
        policies: Vec<proto::AccessPolicy>,
    ) -> Result<(), TableError> {
        check_policies(&policies)?;
        let id = tables::resolve(&*self.engine.snapshot().await?, account, table).await?;
        let key = keys::access_policies(id);
        let write = if policies.is_empty() {
            Write::Delete { key }
        } else {
            let stored = proto::SetTableAccessPoliciesRequest { table: String::new(), policies };
            Write::Put { key, value: keys::encode_message(&stored) }
        };
        let decide = move |_: &[Option<Bytes>]| Ok::<_, TableError>((vec![write.clone()], ()));
        transact(&*self.engine, Vec::new(), decide).await?
    }

    /// The settings of the service, every part set.
    ///
    /// # Errors
    /// A failed read.
    pub(crate) async fn properties(
        &self,
        account: &AccountName,
    ) -> Result<proto::ServiceProperties, TableError> {
        let snapshot = self.engine.snapshot().await?;
        let value = snapshot.get(&keys::service_properties(account)).await?;
        let stored = keys::decode_message(value.as_ref(), "service properties")?;
        Ok(overlay(default_properties(), stored))
    }

    /// Changes the parts of the settings that are given.
    ///
    /// # Errors
    /// A broken rule, or a failed commit.
    pub(crate) async fn set_properties(
        &self,
        account: &AccountName,
        change: proto::ServiceProperties,
    ) -> Result<(), TableError> {
        check_properties(&change)?;
        let key = keys::service_properties(account);
        let target = key.clone();
        transact(&*self.engine, vec![key], move |current| {
            let stored = current.first().and_then(Option::as_ref);
            let stored = keys::decode_message(stored, "service properties")?;
            let value = keys::encode_message(&overlay(stored, change.clone()));
            Ok::<_, TableError>((vec![Write::Put { key: target.clone(), value }], ()))
        })
        .await?
    }
}

/// The access policies of a table in a snapshot.
///
/// # Errors
/// A failed read.
pub(crate) async fn stored_policies(
    snapshot: &dyn Snapshot,
    id: TableId,
) -> Result<Vec<proto::AccessPolicy>, TableError> {
    let value = snapshot.get(&keys::access_policies(id)).await?;
    let stored: proto::SetTableAccessPoliciesRequest =
        keys::decode_message(value.as_ref(), "access policies")?;
    Ok(stored.policies)
}

fn default_properties() -> proto::ServiceProperties {
    let version = || "1.0".to_owned();
    let metrics = || proto::Metrics { version: version(), ..Default::default() };
    proto::ServiceProperties {
        logging: Some(proto::Logging { version: version(), ..Default::default() }),
        hour_metrics: Some(metrics()),
        minute_metrics: Some(metrics()),
        cors: Some(proto::Cors::default()),
    }
}

/// `base` with the parts that `change` has.
fn overlay(
    base: proto::ServiceProperties,
    change: proto::ServiceProperties,
) -> proto::ServiceProperties {
    proto::ServiceProperties {
        logging: change.logging.or(base.logging),
        hour_metrics: change.hour_metrics.or(base.hour_metrics),
        minute_metrics: change.minute_metrics.or(base.minute_metrics),
        cors: change.cors.or(base.cors),
    }
}

fn check_policies(policies: &[proto::AccessPolicy]) -> Result<(), Fault> {
    let stated = policies.iter().map(|policy| Stated {
        id: &policy.id,
        start_time: policy.start_time,
        expiry_time: policy.expiry_time,
        permissions: policy.permissions.as_deref(),
    });
    access_policy::check(&stated.collect::<Vec<_>>(), PERMISSIONS)
}

fn check_properties(change: &proto::ServiceProperties) -> Result<(), Fault> {
    let mut violations = Violations::default();
    if let Some(logging) = &change.logging {
        let field = "properties.logging";
        check_version(&logging.version, field, &mut violations);
        check_retention(logging.retention.as_ref(), field, &mut violations);
    }
    let metrics =
        [("hour_metrics", &change.hour_metrics), ("minute_metrics", &change.minute_metrics)];
    for (name, metrics) in metrics {
        let (Some(metrics), field) = (metrics, format!("properties.{name}")) else {
            continue;
        };
        check_version(&metrics.version, &field, &mut violations);
        check_retention(metrics.retention.as_ref(), &field, &mut violations);
        if metrics.include_apis && !metrics.enabled {
            let rule = "must be false when metrics are not enabled";
            violations.push(Reason::InvalidInput, format!("{field}.include_apis"), rule);
        }
    }
    let rules = change.cors.as_ref().map_or(&[][..], |cors| &cors.rules);
    if rules.len() > CORS_RULES_MAX {
        let rule = format!("must have at most {CORS_RULES_MAX} rules: count=`{}`", rules.len());
        violations.push(Reason::InvalidXmlDocument, "properties.cors.rules", rule);
    }
    let chars: usize = rules.iter().flat_map(texts).map(|text| text.chars().count()).sum();
    if chars > CORS_CHARS_MAX {
        let rule = format!("must have at most {CORS_CHARS_MAX} characters in all: count=`{chars}`");
        violations.push(Reason::InvalidXmlDocument, "properties.cors.rules", rule);
    }
    for (index, rule) in rules.iter().enumerate().take(CORS_RULES_MAX) {
        check_cors_rule(rule, &format!("properties.cors.rules[{index}]"), &mut violations);
    }
    violations.check(())
}

/// Every text of a rule.
fn texts(rule: &proto::CorsRule) -> impl Iterator<Item = &String> {
    let headers = rule.allowed_headers.iter().chain(&rule.exposed_headers);
    rule.allowed_origins.iter().chain(&rule.allowed_methods).chain(headers)
}

fn check_version(version: &str, field: &str, violations: &mut Violations) {
    if version != "1.0" {
        let rule = format!("must be `1.0`: value=`{}`", quoted(version));
        violations.push(Reason::InvalidInput, format!("{field}.version"), rule);
    }
}

fn check_retention(
    retention: Option<&prost_types::Duration>,
    field: &str,
    violations: &mut Violations,
) {
    let Some(retention) = retention else { return };
    let whole_days = retention.seconds % DAY_SECONDS == 0 && retention.nanos == 0;
    let days = retention.seconds / DAY_SECONDS;
    if !whole_days || !(1..=RETENTION_DAYS_MAX).contains(&days) {
        let seconds = retention.seconds;
        let rule = format!("must be 1 to {RETENTION_DAYS_MAX} whole days: seconds=`{seconds}`");
        violations.push(Reason::InvalidInput, format!("{field}.retention"), rule);
    }
}

fn check_cors_rule(rule: &proto::CorsRule, field: &str, violations: &mut Violations) {
    let mut refuse = |name: &str, text: String| {
        violations.push(Reason::InvalidXmlDocument, format!("{field}.{name}"), text);
    };
    let origins = rule.allowed_origins.len();
    if origins == 0 || origins > CORS_ORIGINS_MAX {
        let text = format!("must have 1 to {CORS_ORIGINS_MAX} origins: count=`{origins}`");
        refuse("allowed_origins", text);
    }
    if rule.allowed_methods.is_empty() {
        refuse("allowed_methods", "required: at least one method".to_owned());
    }
    for method in &rule.allowed_methods {
        if !CORS_METHODS.contains(&method.as_str()) {
            let text = format!("must be one of {CORS_METHODS:?}: value=`{}`", quoted(method));
            refuse("allowed_methods", text);
        }
    }
    let headers =
        [("allowed_headers", &rule.allowed_headers), ("exposed_headers", &rule.exposed_headers)];
    for (name, list) in headers {
        let prefixes = list.iter().filter(|header| header.ends_with('*')).count();
        if prefixes > CORS_HEADER_PREFIXES_MAX || list.len() - prefixes > CORS_HEADERS_MAX {
            let text = format!(
                "must have at most {CORS_HEADERS_MAX} whole names and \
                 {CORS_HEADER_PREFIXES_MAX} prefixes: count=`{}`, prefixes=`{prefixes}`",
                list.len()
            );
            refuse(name, text);
        }
    }
    let texts = [
        ("allowed_origins", &rule.allowed_origins),
        ("allowed_headers", &rule.allowed_headers),
        ("exposed_headers", &rule.exposed_headers),
    ];
    for (name, list) in texts {
        let too_long = |text: &&String| text.chars().count() > CORS_TEXT_CHARS_MAX;
        for text in list.iter().filter(too_long) {
            let rule = format!("must have at most {CORS_TEXT_CHARS_MAX} characters each");
            refuse(name, format!("{rule}: value=`{}`", quoted(text)));
        }
    }
    let age_fits = |age: &prost_types::Duration| age.seconds >= 0 && age.nanos == 0;
    if !rule.max_age.as_ref().is_some_and(age_fits) {
        refuse("max_age", "required: 0 or more whole seconds".to_owned());
    }
}
