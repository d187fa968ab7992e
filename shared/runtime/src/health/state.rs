//! What a process reports of its services, and the status of each that follows from it.

use std::collections::BTreeMap;

use tonic_health::pb::health_check_response::ServingStatus;

/// The name of the process as a whole.
pub(super) const WHOLE: &str = "";

/// The state of every service of a process.
#[derive(Default)]
pub(super) struct HealthState {
    /// Services, and the problem of each.
    pub(super) parts: BTreeMap<&'static str, Option<String>>,
    /// The present limitations by name, and by the part of the process that reports it.
    pub(super) limitations: BTreeMap<&'static str, BTreeMap<&'static str, Option<&'static str>>>,
    /// Whether the process shuts down.
    pub(super) draining: bool,
}

impl HealthState {
    /// The problems, a line each, with the services that have it.
    pub(super) fn problems(&self) -> Vec<String> {
        let draining = self.draining.then(|| "shutting down".to_owned());
        let mut services: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for (name, problem) in &self.parts {
            if let Some(problem) = problem {
                services.entry(problem).or_default().push(name);
            }
        }
        let line = |(problem, names): (&str, Vec<&str>)| format!("{}: {problem}", names.join(", "));
        draining.into_iter().chain(services.into_iter().map(line)).collect()
    }

    /// The status of a service.
    pub(super) fn status(&self, name: &str) -> ServingStatus {
        let serving = if name == WHOLE {
            self.problems().is_empty()
        } else {
            let limitations = self.limitations.get(name);
            let is_limitless = limitations.is_some_and(|parts| parts.values().all(Option::is_none));
            let is_whole = self.parts.get(name).is_some_and(Option::is_none);
            !self.draining && (is_whole || is_limitless)
        };
        if serving { ServingStatus::Serving } else { ServingStatus::NotServing }
    }
}
