//! What only the service or the operation decides, as text.

use super::{Finding, Outcome, open, passed};
use crate::{
    sas::{Check, Scope, Terms},
    spec::{SERVICES, ServiceSpec},
};
use trestle_model::fault::Reason;

/// The checks that only the service or the operation decides.
pub(super) fn by_the_service(terms: &Terms) -> Vec<Finding> {
    let mut findings = Vec::new();
    match &terms.scope {
        Scope::Account { services, .. } => findings.push(for_services(services)),
        Scope::Resource(scope) => {
            if let Some(policy) = &terms.policy {
                let container = scope.service.container;
                let text = format!("the {container} must have a stored access policy `{policy}`");
                findings.push(open(Check::Policy, &text));
            }
            if !scope.service.is_served {
                let text = format!("the {} service is not supported yet", scope.service.name);
                findings.push(not_served(text));
            }
        }
    }
    findings.push(open(Check::Operation, &operations(terms)));
    findings
}

fn not_served(text: String) -> Finding {
    let outcome = Outcome::Rejected(Reason::AuthorizationServiceMismatch);
    Finding { check: Check::Service, outcome, text }
}

/// Which of our services an account signature is valid for.
fn for_services(services: &str) -> Finding {
    let granted = served().filter(|service| services.contains(service.letter));
    let granted: Vec<_> = granted.map(|service| service.name).collect();
    if granted.is_empty() {
        return not_served(format!("for no service of this server: ss=`{services}`"));
    }
    passed(Check::Service, &format!("for the {} service", granted.join(" and the ")))
}

fn served() -> impl Iterator<Item = &'static ServiceSpec> {
    SERVICES.into_iter().filter(|service| service.is_served)
}

fn operations(terms: &Terms) -> String {
    let permissions = match terms.permissions.as_str() {
        "" => "what the policy permits".to_owned(),
        letters => letters
            .chars()
            .map(|letter| permission(&terms.scope, letter))
            .collect::<Vec<_>>()
            .join(", "),
    };
    let on = match &terms.scope {
        Scope::Account { resource_types, .. } => {
            let kind = |letter| match letter {
                's' => "the service".to_owned(),
                'c' => nouns(|service| format!("{}s", service.container)),
                _ => nouns(|service| service.objects.to_owned()),
            };
            resource_types.chars().map(kind).collect::<Vec<_>>().join(", ")
        }
        Scope::Resource(scope) => {
            let bounds = (scope.service.describe)(&scope.fields);
            format!("{} of `{}`{bounds}", scope.service.objects, scope.name)
        }
    };
    format!("{permissions}; on {on}")
}

fn nouns(noun: impl Fn(&ServiceSpec) -> String) -> String {
    served().map(noun).collect::<Vec<_>>().join(" and ")
}

/// What a letter permits: as the service declares it, or the first service that has it.
fn permission(scope: &Scope, letter: char) -> &'static str {
    let declared = match scope {
        Scope::Account { .. } => None,
        Scope::Resource(scope) => Some(scope.service),
    };
    let services = declared.into_iter().chain(SERVICES);
    let mut letters = services.flat_map(|service| service.permissions);
    letters.find(|(supported, _)| *supported == letter).map_or("other", |(_, meaning)| meaning)
}
