//! The settings of logs, traces and metrics.

use std::{path::PathBuf, str::FromStr};

use serde::{Deserialize, Serialize};
use tracing::level_filters::{LevelFilter, STATIC_MAX_LEVEL};
use tracing_subscriber::EnvFilter;

use crate::config::{choice, shown};

/// The section `telemetry`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TelemetrySettings {
    /// What is logged, as `level` or `target=level`, separated by commas. Default: `info`.
    pub log_filter: String,
    /// Form of the log on standard error, and of the access log: `text` or `json`. Default: `text`.
    #[serde(deserialize_with = "choice")]
    pub log_format: LogFormat,
    /// Output of a line about each call: `off`, `stderr`, or a path with a `/` of a file that is
    /// appended to. A gateway writes it. Default: `off`, since a line costs a fifth of the cached
    /// reads that a server can do.
    pub access_log: AccessOutput,
    /// How the access log shows keys of entities: `hashed` or `clear`. Default: `hashed`.
    #[serde(deserialize_with = "choice")]
    pub access_log_keys: AccessKeys,
    /// A file whose content salts the hashes, so that they are the same after a restart and in all
    /// processes; at least 16 bytes. Default: a random salt for each start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub access_log_salt_file: Option<PathBuf>,
    /// Whether metrics are recorded. Default: yes.
    pub metrics: bool,
    /// Whether the histograms of calls have buckets for each method, and not only for each service: about eight times
    /// the series. Default: no.
    #[serde(default)]
    pub metrics_by_method: bool,
    /// Where traces, metrics and logs are sent by OTLP over gRPC, such as `http://collector:4317`.
    /// Default: the variable `OTEL_EXPORTER_OTLP_ENDPOINT`; without it they are not sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub otlp_endpoint: Option<String>,
    /// Share of the traces started by this process that are sent, 0 to 1; others follow their caller. Exports by OTLP
    /// start none.
    /// Default: 1.
    pub trace_sample_ratio: f64,
    /// How often metrics are sent, in seconds, at least 1. Default: 60.
    pub metrics_every_seconds: u64,
    /// Name of the process in telemetry. Default: the variable `OTEL_SERVICE_NAME`, or `trestle`.
    pub service_name: String,
}

/// The form of log lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LogFormat {
    /// For people.
    Text,
    /// One object a line, for programs.
    Json,
}

/// Output of the access log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum AccessOutput {
    /// Nowhere.
    Off,
    /// To standard error.
    Stderr,
    /// To the end of a file.
    File(PathBuf),
}

/// How the access log shows keys of entities.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AccessKeys {
    /// As keyed hashes.
    Hashed,
    /// As they are.
    Clear,
}

impl FromStr for AccessOutput {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "off" => Ok(Self::Off),
            "stderr" => Ok(Self::Stderr),
            // A word alone is more likely a misspelt `off` than the name of a file.
            path if path.contains('/') => Ok(Self::File(path.into())),
            other => {
                let value = shown("telemetry.access_log", other);
                Err(format!("must be `off`, `stderr`, or a path with a `/`{value}"))
            }
        }
    }
}

impl TryFrom<String> for AccessOutput {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl From<AccessOutput> for String {
    fn from(output: AccessOutput) -> Self {
        match output {
            AccessOutput::Off => "off".to_owned(),
            AccessOutput::Stderr => "stderr".to_owned(),
            AccessOutput::File(path) => path.to_string_lossy().into_owned(),
        }
    }
}

impl Default for TelemetrySettings {
    fn default() -> Self {
        Self {
            log_filter: "info".to_owned(),
            log_format: LogFormat::Text,
            access_log: AccessOutput::Off,
            access_log_keys: AccessKeys::Hashed,
            access_log_salt_file: None,
            metrics: true,
            metrics_by_method: false,
            otlp_endpoint: None,
            trace_sample_ratio: 1.0,
            metrics_every_seconds: 60,
            service_name: "trestle".to_owned(),
        }
    }
}

impl TelemetrySettings {
    /// The filter, without the levels that this build does not contain: the subscriber would warn about them, outside
    /// the log and in colours.
    pub(super) fn directives(&self) -> String {
        at_most(&self.log_filter, STATIC_MAX_LEVEL)
    }

    /// The invalid values of the section, each with its key.
    #[must_use]
    pub fn problems(&self) -> Vec<String> {
        let mut problems = Vec::new();
        let filter = &self.log_filter;
        let is_word = |part: &&str| !part.contains(['=', '[', ']', '{', '}']);
        let mut words = filter.split(',').map(str::trim).filter(is_word);
        // The filter would parse any other word as a target of which every level is logged.
        let are_levels = words.all(|word| word.parse::<LevelFilter>().is_ok());
        if !are_levels || EnvFilter::try_new(self.directives()).is_err() {
            let rule = "must be `level` or `target=level`, separated by commas, where a level is \
                        off, error, warn, info, debug or trace";
            let value = shown("telemetry.log_filter", filter);
            problems.push(format!("telemetry.log_filter: {rule}{value}"));
        }
        if !(0.0..=1.0).contains(&self.trace_sample_ratio) {
            let ratio = self.trace_sample_ratio;
            problems.push(format!("telemetry.trace_sample_ratio: must be 0 to 1: value=`{ratio}`"));
        }
        if self.metrics_every_seconds == 0 {
            problems
                .push("telemetry.metrics_every_seconds: must be at least 1: value=`0`".to_owned());
        }
        problems.extend(self.otlp_endpoint.as_deref().and_then(endpoint_problem));
        problems
    }
}

/// The problem of the address of a collector, never with a password.
fn endpoint_problem(endpoint: &str) -> Option<String> {
    const KEY: &str = "telemetry.otlp_endpoint";
    if endpoint.contains('@') {
        let rule = "must have no user or password before an `@`, which would not be sent";
        return Some(format!("{KEY}: {rule}; a collector on this machine can add credentials"));
    }
    let is_valid = endpoint.starts_with("http://");
    (!is_valid).then(|| format!("{KEY}: must begin with http://{}", shown(KEY, endpoint)))
}

/// A filter whose levels are at most `most`.
fn at_most(filter: &str, most: LevelFilter) -> String {
    let lowered = |part: &str| {
        let (target, level) = part.rsplit_once('=').unwrap_or(("", part));
        let is_more = level.trim().parse::<LevelFilter>().is_ok_and(|level| level > most);
        match (is_more, part.contains('=')) {
            (false, _) => part.to_owned(),
            (true, true) => format!("{target}={most}"),
            (true, false) => most.to_string(),
        }
    };
    filter.split(',').map(lowered).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problems(filter: &str) -> Vec<String> {
        TelemetrySettings { log_filter: filter.to_owned(), ..Default::default() }.problems()
    }

    #[test]
    fn a_filter_consists_of_levels_and_of_targets_with_levels() {
        for fine in ["info", "WARN", "off", "warn,trestle_kv=debug", "a[b{c=1}]=info"] {
            assert_eq!(problems(fine), Vec::<String>::new(), "{fine}");
        }
        for wrong in ["loud", "warn,trestle_kv", "trestle_kv=loud", "info;debug"] {
            let problems = problems(wrong).join("");
            assert!(problems.starts_with("telemetry.log_filter: must be `level`"), "{problems}");
            assert!(problems.ends_with(&format!("value=`{wrong}`")), "{problems}");
        }
    }

    #[test]
    fn lowers_levels_that_the_build_does_not_contain() {
        for (filter, lowered) in [
            ("trace", "debug"),
            ("info,h2=trace", "info,h2=debug"),
            ("debug,h2=off", "debug,h2=off"),
            ("a[b{c=1,d=2}]=trace", "a[b{c=1,d=2}]=debug"),
        ] {
            assert_eq!(at_most(filter, LevelFilter::DEBUG), lowered);
            assert_eq!(at_most(filter, LevelFilter::TRACE), filter);
        }
    }
}
