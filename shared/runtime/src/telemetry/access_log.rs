//! The access log: how it shows keys, and how many of its lines were dropped.

use std::{io, path::Path};

use opentelemetry::metrics::Meter;
use tracing_appender::non_blocking::ErrorCounter;
use trestle_rpc::access::AccessLog;
use trestle_rpc::{semconv, small_file};

use super::{AccessKeys, AccessOutput, TelemetryError, TelemetrySettings, failed};

/// Shortest salt of hashes, in bytes.
const SALT_BYTES_MIN: usize = 16;

pub(super) fn writer(
    settings: &TelemetrySettings,
    random: fn() -> u128,
) -> Result<AccessLog, TelemetryError> {
    match (&settings.access_log, settings.access_log_keys, &settings.access_log_salt_file) {
        (AccessOutput::Off, _, _) => Ok(AccessLog::off()),
        (_, AccessKeys::Clear, _) => Ok(AccessLog::clear()),
        (_, AccessKeys::Hashed, Some(path)) => {
            salt(path).map(|salt| AccessLog::hashed(&salt)).map_err(|error| failed(&error))
        }
        (_, AccessKeys::Hashed, None) => {
            let salt = [random().to_ne_bytes(), random().to_ne_bytes()];
            Ok(AccessLog::hashed(salt.as_flattened()))
        }
    }
}

/// The problem of the file of the salt, where it is used. Blocks.
#[must_use]
pub fn salt_problem(settings: &TelemetrySettings) -> Option<String> {
    let is_off = matches!(settings.access_log, AccessOutput::Off);
    match (is_off, settings.access_log_keys, &settings.access_log_salt_file) {
        (false, AccessKeys::Hashed, Some(path)) => salt(path).err().map(|error| error.to_string()),
        _ => None,
    }
}

fn salt(path: &Path) -> io::Result<Vec<u8>> {
    let wrong = |kind, what: &dyn std::fmt::Display| {
        let path = path.display();
        io::Error::new(kind, format!("telemetry.access_log_salt_file: path=`{path}`, {what}"))
    };
    let salt = small_file::read(path).map_err(|error| wrong(error.kind(), &error))?;
    if salt.len() < SALT_BYTES_MIN {
        let rule = format!("must have at least {SALT_BYTES_MIN} bytes");
        return Err(wrong(io::ErrorKind::InvalidData, &rule));
    }
    Ok(salt)
}

pub(super) fn observe_dropped(meter: &Meter, errors: ErrorCounter) {
    let metric = semconv::ACCESS_LOG_DROPPED;
    let counter = meter.u64_observable_counter(metric.name).with_unit(metric.unit);
    let counter = counter.with_description(metric.help);
    let _ = counter
        .with_callback(move |observer| observer.observe(errors.dropped_lines() as u64, &[]))
        .build();
}
