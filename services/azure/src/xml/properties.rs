//! The settings of a service: `StorageServiceProperties`.

use prost_types::Duration;
use trestle_model::fault::{Fault, Reason};
use trestle_rpc::service_properties::{
    Cors, CorsRule, DAY_SECONDS, Logging, Metrics, RETENTION_DAYS_MAX, ServiceProperties,
};

use super::{element::Element, write::XmlWriter};

/// Parses the settings to change: absent parts are not changed.
///
/// # Errors
/// A malformed document, or a missing element: its element and rule.
pub fn read_properties(body: &[u8]) -> Result<ServiceProperties, Fault> {
    let mut root = Element::root(body, "StorageServiceProperties")?;
    let properties = read_common(&mut root)?;
    root.finish()?;
    Ok(properties)
}

/// The settings that every service has.
pub(super) fn read_common(root: &mut Element<'_>) -> Result<ServiceProperties, Fault> {
    Ok(ServiceProperties {
        logging: root.optional("Logging").map(read_logging).transpose()?,
        hour_metrics: root.optional("HourMetrics").map(read_metrics).transpose()?,
        minute_metrics: root.optional("MinuteMetrics").map(read_metrics).transpose()?,
        cors: root.optional("Cors").map(read_cors).transpose()?,
    })
}

fn read_logging(mut element: Element<'_>) -> Result<Logging, Fault> {
    let logging = Logging {
        version: element.required("Version")?.into_text()?.into_owned(),
        delete: boolean(element.required("Delete")?)?,
        read: boolean(element.required("Read")?)?,
        write: boolean(element.required("Write")?)?,
        retention: read_retention(element.required("RetentionPolicy")?)?,
    };
    element.finish()?;
    Ok(logging)
}

fn read_metrics(mut element: Element<'_>) -> Result<Metrics, Fault> {
    let version = element.required("Version")?.into_text()?.into_owned();
    let enabled = boolean(element.required("Enabled")?)?;
    let include_apis = if enabled {
        boolean(element.required("IncludeAPIs")?)?
    } else {
        element.optional("IncludeAPIs").map(boolean).transpose()?.unwrap_or_default()
    };
    let retention = read_retention(element.required("RetentionPolicy")?)?;
    element.finish()?;
    Ok(Metrics { version, enabled, include_apis, retention })
}

fn read_retention(mut element: Element<'_>) -> Result<Option<Duration>, Fault> {
    let enabled = boolean(element.required("Enabled")?)?;
    let retention = if enabled {
        let rule = format!("must be a whole number of days, 1 to {RETENTION_DAYS_MAX}");
        let days = element.required("Days")?.value(&rule, |text| text.parse::<u32>().ok())?;
        Some(Duration { seconds: i64::from(days) * DAY_SECONDS, nanos: 0 })
    } else if element.optional("Days").is_some() {
        let rule = format!("must be in {} only when Enabled is true", element.name);
        return Err(Fault::violation(Reason::InvalidXmlDocument, "Days", rule));
    } else {
        None
    };
    element.finish()?;
    Ok(retention)
}

fn read_cors(mut element: Element<'_>) -> Result<Cors, Fault> {
    let mut rules = Vec::new();
    while let Some(rule) = element.optional("CorsRule") {
        rules.push(read_rule(rule)?);
    }
    element.finish()?;
    Ok(Cors { rules })
}

fn read_rule(mut element: Element<'_>) -> Result<CorsRule, Fault> {
    let age = format!("must be a whole number of seconds, 0 to {}", u32::MAX);
    let rule = CorsRule {
        allowed_origins: filled_list(element.required("AllowedOrigins")?)?,
        allowed_methods: filled_list(element.required("AllowedMethods")?)?,
        allowed_headers: list(element.required("AllowedHeaders")?)?,
        exposed_headers: list(element.required("ExposedHeaders")?)?,
        max_age: element
            .required("MaxAgeInSeconds")?
            .value(&age, |text| text.parse::<u32>().ok())
            .map(|seconds| Some(Duration { seconds: i64::from(seconds), nanos: 0 }))?,
    };
    element.finish()?;
    Ok(rule)
}

pub(super) fn boolean(element: Element<'_>) -> Result<bool, Fault> {
    element.value("must be true or false", |text| {
        let is_true = text.eq_ignore_ascii_case("true") || text == "1";
        let is_false = text.eq_ignore_ascii_case("false") || text == "0";
        (is_true || is_false).then_some(is_true)
    })
}

/// The items of a comma-separated list.
fn list(element: Element<'_>) -> Result<Vec<String>, Fault> {
    let text = element.into_text()?;
    let items = text.split(',').map(str::trim_ascii).filter(|item| !item.is_empty());
    Ok(items.map(str::to_owned).collect())
}

/// The same for a required list.
fn filled_list(element: Element<'_>) -> Result<Vec<String>, Fault> {
    let name = element.name.clone();
    let items = list(element)?;
    if items.is_empty() {
        let rule = "must not be empty";
        return Err(Fault::violation(Reason::InvalidXmlNodeValue, name, rule));
    }
    Ok(items)
}

/// The settings of a service; absent parts are omitted.
#[must_use]
pub fn write_properties(properties: &ServiceProperties) -> String {
    XmlWriter::document("StorageServiceProperties", |writer| write_common(writer, properties))
}

/// The settings that every service has.
pub(super) fn write_common(writer: &mut XmlWriter, properties: &ServiceProperties) {
    if let Some(logging) = &properties.logging {
        writer.element("Logging", |writer| write_logging(writer, logging));
    }
    let metrics =
        [("HourMetrics", &properties.hour_metrics), ("MinuteMetrics", &properties.minute_metrics)];
    for (name, metrics) in metrics {
        if let Some(metrics) = metrics {
            writer.element(name, |writer| write_metrics(writer, metrics));
        }
    }
    if let Some(cors) = &properties.cors {
        writer.element("Cors", |writer| {
            for rule in &cors.rules {
                writer.element("CorsRule", |writer| write_rule(writer, rule));
            }
        });
    }
}

fn write_logging(writer: &mut XmlWriter, logging: &Logging) {
    writer.text("Version", &logging.version);
    writer.value("Read", &logging.read);
    writer.value("Write", &logging.write);
    writer.value("Delete", &logging.delete);
    write_retention(writer, logging.retention.as_ref());
}

fn write_metrics(writer: &mut XmlWriter, metrics: &Metrics) {
    writer.text("Version", &metrics.version);
    writer.value("Enabled", &metrics.enabled);
    if metrics.enabled {
        writer.value("IncludeAPIs", &metrics.include_apis);
    }
    write_retention(writer, metrics.retention.as_ref());
}

fn write_retention(writer: &mut XmlWriter, retention: Option<&Duration>) {
    writer.element("RetentionPolicy", |writer| {
        writer.value("Enabled", &retention.is_some());
        if let Some(retention) = retention {
            writer.value("Days", &(retention.seconds / DAY_SECONDS));
        }
    });
}

fn write_rule(writer: &mut XmlWriter, rule: &CorsRule) {
    writer.text("AllowedOrigins", &rule.allowed_origins.join(","));
    writer.text("AllowedMethods", &rule.allowed_methods.join(","));
    writer.value("MaxAgeInSeconds", &rule.max_age.as_ref().map_or(0, |age| age.seconds));
    writer.text("ExposedHeaders", &rule.exposed_headers.join(","));
    writer.text("AllowedHeaders", &rule.allowed_headers.join(","));
}

#[cfg(test)]
mod tests;
