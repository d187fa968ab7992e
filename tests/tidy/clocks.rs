//! Rules on the clocks that services read.

use crate::{
    rust::in_sequences,
    source::{Finding, Source},
    tokens::{is_punct, is_word},
};

/// Services that store data: what they delete, expire or refuse is by the service time of the engine.
const SERVICES: [&str; 4] =
    ["services/table/src/", "services/queue/src/", "services/blob/src/", "services/log/src/"];

/// The files that may read the wall clock: they check stored access policies, whose times people wrote by it, or report
/// when a service was started. Fixtures and models move the clock.
const READERS: [&str; 9] = [
    "services/table/src/api.rs",
    "services/table/src/tables.rs",
    "services/table/src/read.rs",
    "services/table/src/read/page.rs",
    "services/queue/src/api.rs",
    "services/queue/src/queues.rs",
    "services/blob/src/api.rs",
    "services/blob/src/containers.rs",
    "services/log/src/fixture.rs",
];

/// Reads of the wall clock, which steps: a sweep that deleted by it would delete everything in the second in which it
/// is wrong.
pub(crate) fn wall_clock(source: &Source) -> Vec<Finding> {
    let path = source.path.as_str();
    let is_of_service = SERVICES.iter().any(|folder| path.starts_with(folder));
    if !is_of_service || source.is_test() || READERS.contains(&path) {
        return Vec::new();
    }
    in_sequences(source, "clock", |tokens| {
        let [clock, dot, now, ..] = tokens else { return None };
        let is_read = is_word(clock, "clock") && is_punct(dot, '.') && is_word(now, "now");
        is_read.then(|| "the wall clock is read, which steps: use `Engine::now`".to_owned())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_a_wall_clock_in_a_sweep() {
        let text = "fn tick(&self) {\n    let now = self.clock.now();\n}";
        for (path, findings) in [
            ("services/log/src/sweep/retention.rs", 1),
            ("services/table/src/sweep.rs", 1),
            ("services/blob/src/containers.rs", 0),
            ("services/blob/src/sweep/tests.rs", 0),
            ("shared/kv-fjall/src/housekeeping.rs", 0),
        ] {
            assert_eq!(wall_clock(&Source::new(path, text)).len(), findings, "{path}");
        }
        let service_time = Source::new("services/log/src/sweep.rs", "let now = engine.now();");
        assert_eq!(wall_clock(&service_time), []);
    }

    #[test]
    fn every_listed_reader_exists() {
        let sources = crate::source::all();
        for path in READERS {
            assert!(sources.iter().any(|source| source.path == path), "{path}");
        }
    }
}
