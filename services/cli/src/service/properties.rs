//! `properties`: the settings of a service for the account, as one JSON object both ways.

use std::path::{Path, PathBuf};

use clap::Subcommand;
use prost_types::Duration;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use trestle_command::{errors::CliError, files, output::Context};
use trestle_model::json_error::json_problem;
use trestle_proto::{queue::v1 as queue, service::v1 as service, table::v1 as table};
use trestle_rpc::service_properties::{DAY_SECONDS, RETENTION_DAYS_MAX};

use super::DataService;

const PROPERTIES_HELP: &str = "\
Such as {\"logging\":{\"read\":true,\"write\":true,\"delete\":true,\"retention_days\":7},
  \"hour_metrics\":{\"enabled\":true,\"include_apis\":true},
  \"cors\":[{\"allowed_origins\":[\"https://app.example\"],\"allowed_methods\":[\"GET\",\"POST\"],
            \"allowed_headers\":[\"content-type\"],\"exposed_headers\":[],\"max_age_seconds\":600}]}";

/// Commands on the settings of a service.
#[derive(Debug, Subcommand)]
pub enum PropertiesCommand {
    /// Print them as a JSON object
    Get,
    /// Change them to a JSON object such as `get` prints; parts that it does not have are kept
    #[command(after_help = PROPERTIES_HELP)]
    Set {
        /// The file; `-` reads standard input
        file: PathBuf,
    },
}

/// Largest file of settings, in bytes: many times the limit of the server.
const FILE_BYTES_MAX: u64 = 256 * 1024;
/// Version of the formats of logs and metrics; only one exists.
const VERSION: &str = "1.0";

/// The settings. Absent ones are not changed.
#[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Properties {
    #[serde(skip_serializing_if = "Option::is_none")]
    logging: Option<Logging>,
    #[serde(skip_serializing_if = "Option::is_none")]
    hour_metrics: Option<Metrics>,
    #[serde(skip_serializing_if = "Option::is_none")]
    minute_metrics: Option<Metrics>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cors: Option<Vec<CorsRule>>,
}

/// Which requests are logged.
#[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Logging {
    read: bool,
    write: bool,
    delete: bool,
    /// None: no expiry.
    retention_days: Option<i64>,
}

/// Request metrics of one resolution.
#[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Metrics {
    enabled: bool,
    include_apis: bool,
    /// None: no expiry.
    retention_days: Option<i64>,
}

/// One cross-origin rule.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct CorsRule {
    allowed_origins: Vec<String>,
    allowed_methods: Vec<String>,
    #[serde(default)]
    allowed_headers: Vec<String>,
    #[serde(default)]
    exposed_headers: Vec<String>,
    max_age_seconds: i64,
}

/// Shows or changes the settings of a service.
pub(crate) async fn run(
    context: &mut Context,
    of: DataService,
    command: PropertiesCommand,
) -> Result<(), CliError> {
    let (mut tables, mut queues) = (context.session.table(), context.session.queues());
    let PropertiesCommand::Set { file } = command else {
        let properties = match of {
            DataService::Table => {
                let request = table::GetServicePropertiesRequest {};
                tables.get_service_properties(request).await?.into_inner().properties
            }
            DataService::Queue => {
                let request = queue::GetServicePropertiesRequest {};
                queues.get_service_properties(request).await?.into_inner().properties
            }
        };
        let object = serde_json::to_value(Properties::from(properties.unwrap_or_default()));
        let object = object.map_err(|error| CliError::Protocol(error.to_string()))?;
        return context.output.either(&format!("{object:#}"), &object);
    };
    let properties = Some(read(&file)?.into());
    let name = match of {
        DataService::Table => {
            let request = table::SetServicePropertiesRequest { properties };
            tables.set_service_properties(request).await?;
            "table"
        }
        DataService::Queue => {
            let request = queue::SetServicePropertiesRequest { properties };
            queues.set_service_properties(request).await?;
            "queue"
        }
    };
    let text = format!("changed the properties of the {name} service");
    context.output.either(&text, &json!({ "set": true }))
}

/// Reads a file; `-` is standard input.
fn read(file: &Path) -> Result<Properties, CliError> {
    let text = files::read_small(file, FILE_BYTES_MAX)?;
    let parsed: Result<Value, _> = serde_json::from_str(&text);
    let is_other = parsed.as_ref().is_ok_and(|value| !value.is_object());
    let rejected = |problem: String| {
        let rule = "properties must be an object as `get` prints it";
        CliError::Usage(format!("{rule}: `{}`{problem}", file.display()))
    };
    // The library reads a list as an object without names.
    if is_other {
        return Err(rejected(String::new()));
    }
    let properties: Properties = serde_json::from_str(&text)
        .map_err(|error| rejected(format!(": {}", json_problem(&text, &error))))?;
    let problems = retention_problems(&properties);
    match problems.is_empty() {
        true => Ok(properties),
        false => Err(rejected(format!(": {}", problems.join("; ")))),
    }
}

/// The retentions that are out of range. The server has another name and unit for them.
fn retention_problems(properties: &Properties) -> Vec<String> {
    let Properties { logging, hour_metrics, minute_metrics, .. } = properties;
    let of_metrics = |metrics: &Option<Metrics>| metrics.as_ref().and_then(|it| it.retention_days);
    let parts = [
        ("logging", logging.as_ref().and_then(|it| it.retention_days)),
        ("hour_metrics", of_metrics(hour_metrics)),
        ("minute_metrics", of_metrics(minute_metrics)),
    ];
    let problems = parts.into_iter().filter_map(|(part, days)| {
        let days = days.filter(|days| !(1..=RETENTION_DAYS_MAX).contains(days))?;
        let rule = format!("must be 1 to {RETENTION_DAYS_MAX}");
        Some(format!("{part}.retention_days: {rule}: value=`{days}`"))
    });
    problems.collect()
}

fn days(retention: Option<Duration>) -> Option<i64> {
    retention.map(|retention| retention.seconds / DAY_SECONDS)
}

fn retention(days: Option<i64>) -> Option<Duration> {
    days.map(|days| Duration { seconds: days.saturating_mul(DAY_SECONDS), nanos: 0 })
}

impl From<service::ServiceProperties> for Properties {
    fn from(properties: service::ServiceProperties) -> Self {
        let logging = |logging: service::Logging| {
            let service::Logging { read, write, delete, retention, .. } = logging;
            Logging { read, write, delete, retention_days: days(retention) }
        };
        let metrics = |metrics: service::Metrics| {
            let service::Metrics { enabled, include_apis, retention, .. } = metrics;
            Metrics { enabled, include_apis, retention_days: days(retention) }
        };
        let rule = |rule: service::CorsRule| CorsRule {
            allowed_origins: rule.allowed_origins,
            allowed_methods: rule.allowed_methods,
            allowed_headers: rule.allowed_headers,
            exposed_headers: rule.exposed_headers,
            max_age_seconds: rule.max_age.unwrap_or_default().seconds,
        };
        Self {
            logging: properties.logging.map(logging),
            hour_metrics: properties.hour_metrics.map(metrics),
            minute_metrics: properties.minute_metrics.map(metrics),
            cors: properties.cors.map(|cors| cors.rules.into_iter().map(rule).collect()),
        }
    }
}

impl From<Properties> for service::ServiceProperties {
    fn from(properties: Properties) -> Self {
        let version = || VERSION.to_owned();
        let logging = |logging: Logging| {
            let Logging { read, write, delete, retention_days } = logging;
            let retention = retention(retention_days);
            service::Logging { version: version(), read, write, delete, retention }
        };
        let metrics = |metrics: Metrics| {
            let Metrics { enabled, include_apis, retention_days } = metrics;
            let retention = retention(retention_days);
            service::Metrics { version: version(), enabled, include_apis, retention }
        };
        let rule = |rule: CorsRule| service::CorsRule {
            allowed_origins: rule.allowed_origins,
            allowed_methods: rule.allowed_methods,
            allowed_headers: rule.allowed_headers,
            exposed_headers: rule.exposed_headers,
            max_age: Some(Duration { seconds: rule.max_age_seconds, nanos: 0 }),
        };
        Self {
            logging: properties.logging.map(logging),
            hour_metrics: properties.hour_metrics.map(metrics),
            minute_metrics: properties.minute_metrics.map(metrics),
            cors: properties
                .cors
                .map(|rules| service::Cors { rules: rules.into_iter().map(rule).collect() }),
        }
    }
}

#[cfg(test)]
mod tests;
