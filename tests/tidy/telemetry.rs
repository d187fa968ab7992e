//! The rule that one module owns the names of telemetry, so that two files never spell one name
//! in two ways.

use crate::source::{Finding, Source};

/// Where the names are.
const OWNER: [&str; 2] = ["shared/rpc/src/semconv.rs", "shared/rpc/src/semconv/"];
/// How literals of names begin. `trestle.` also begins names of services, which are not telemetry.
const NAMES: [&str; 7] = [
    "\"rpc.server",
    "\"rpc.system",
    "\"rpc.method",
    "\"rpc.response",
    "\"db.",
    "\"network.peer",
    "\"otel.",
];
/// How metrics are made from a literal.
const METRICS: [&str; 3] = ["_counter(\"", "_histogram(\"", "_gauge(\""];

/// Lines of the product that spell a name of telemetry themselves.
pub(crate) fn stray_names(source: &Source) -> Vec<Finding> {
    let is_product = source.path.starts_with("shared/") || source.path.starts_with("services/");
    let is_test = source.path.contains("/tests") || source.path.contains("/benches/");
    let is_within = |owner: &&str| source.path.starts_with(owner);
    if !source.is_rust() || !is_product || is_test || OWNER.iter().any(is_within) {
        return Vec::new();
    }
    let strays = source.text.lines().enumerate().filter(|(_, line)| is_stray(line));
    let what = "a name of telemetry outside of `trestle_rpc::semconv`";
    strays.map(|(index, _)| source.finding(index, what)).collect()
}

fn is_stray(line: &str) -> bool {
    let mut literals = NAMES.iter().chain(&METRICS);
    !line.trim_start().starts_with("//") && literals.any(|literal| line.contains(literal))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_a_telemetry_name_outside_its_module() {
        let found = |path: &str, text: &str| stray_names(&Source::new(path, text)).len();
        let path = "shared/rpc/src/layer/trace.rs";

        for line in [
            "    span.record(\"otel.status_code\", \"ERROR\");",
            "let labels = [KeyValue::new(\"rpc.method\", method)];",
            "meter.u64_counter(\"things\")",
        ] {
            assert_eq!(found(path, line), 1, "{line}");
            assert_eq!(found("shared/rpc/src/semconv.rs", line), 0, "{line}");
            assert_eq!(found("services/server/tests/it/serving.rs", line), 0, "{line}");
        }
        for line in
            ["// \"rpc.method\"", "\"trestle.table.v1.TableService\"", "(\"server.listen\", x)"]
        {
            assert_eq!(found(path, line), 0, "{line}");
        }
    }
}
