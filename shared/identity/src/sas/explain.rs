//! Explains for people the grant of a token, the text of its signature, and which check it fails.

use super::{
    Check, Denial, Malformed, Resource, Scope, Terms, Token,
    check::{RULES, Use},
    string_to_sign,
};
use crate::{account::Account, caller::KeyRange};
use trestle_service::{clock::Ticks, fault::Reason, peer::Peer};

/// The content of a token and the results of its checks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Explanation {
    /// Its fields: names and values, without the signature.
    pub terms: Vec<(&'static str, String)>,
    /// The signed text, if the account is known.
    pub string_to_sign: Option<String>,
    /// The checks in the order of a server. A server stops at the first refusal; here all are
    /// evaluated.
    pub findings: Vec<Finding>,
}

/// The result of a check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The check.
    pub check: Check,
    /// Its outcome.
    pub outcome: Outcome,
    /// The reason.
    pub text: String,
}

/// The outcome of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// The token passes.
    Passed,
    /// It does not, and calls fail for this reason.
    Refused(Reason),
    /// The available information does not decide it.
    Open,
}

impl Explanation {
    /// The first refusal, which a server returns.
    #[must_use]
    pub fn refusal(&self) -> Option<&Finding> {
        self.findings.iter().find(|finding| matches!(finding.outcome, Outcome::Refused(_)))
    }
}

/// Explains a token used at `now`: `account` with the known keys, if any, and the peer of the
/// connection, if known.
#[must_use]
pub fn explain(
    text: &str,
    resource: Option<Resource>,
    account: Option<&Account>,
    now: Ticks,
    peer: Option<&Peer>,
) -> Explanation {
    let token = match Token::parse(text, resource) {
        Ok(token) => token,
        Err(malformed) => return malformed_token(malformed),
    };
    let terms = &token.terms;
    let mut findings = vec![passed(Check::Form, "every field is well formed")];
    findings.push(signature(&token, account));
    if account.is_some_and(|account| account.is_disabled) {
        let text = "the account is disabled".to_owned();
        let outcome = Outcome::Refused(Reason::AccountIsDisabled);
        findings.push(Finding { check: Check::Account, outcome, text });
    }
    let in_process = Peer::in_process();
    let usage = Use { now, peer: peer.unwrap_or(&in_process) };
    for (check, rule) in RULES {
        findings.push(match rule(terms, &usage) {
            Err(denial) if check == Check::Time || peer.is_some() => refused(denial),
            Ok(()) if check == Check::Time || peer.is_some() => passed(check, &says(check, terms)),
            _ if is_free(check, terms) => passed(check, &says(check, terms)),
            _ => open(check, &says(check, terms)),
        });
    }
    findings.extend(by_the_service(terms));
    findings.sort_by_key(|finding| finding.check);
    let string_to_sign = account.map(|account| string_to_sign(terms, account.name.as_str()));
    Explanation { terms: stated(terms), string_to_sign, findings }
}

fn malformed_token(malformed: Malformed) -> Explanation {
    let findings = vec![refused(malformed.into())];
    Explanation { terms: Vec::new(), string_to_sign: None, findings }
}

fn passed(check: Check, text: &str) -> Finding {
    Finding { check, outcome: Outcome::Passed, text: text.to_owned() }
}

fn open(check: Check, text: &str) -> Finding {
    Finding { check, outcome: Outcome::Open, text: text.to_owned() }
}

fn refused(denial: Denial) -> Finding {
    let outcome = Outcome::Refused(denial.reason);
    Finding { check: denial.check, outcome, text: denial.message }
}

fn signature(token: &Token, account: Option<&Account>) -> Finding {
    match account {
        Some(account) if !account.keys.is_empty() => {
            let text = string_to_sign(&token.terms, account.name.as_str());
            if account.verifies(&text, &token.signature) {
                return passed(Check::Signature, "made with this key of this account");
            }
            let text = "not made with this key for this account, or something was changed since";
            let outcome = Outcome::Refused(Reason::AuthenticationFailed);
            Finding { check: Check::Signature, outcome, text: text.to_owned() }
        }
        _ => open(Check::Signature, "needs the account and its key"),
    }
}

/// Whether a check passes for every connection.
fn is_free(check: Check, terms: &Terms) -> bool {
    match check {
        Check::Protocol => terms.protocol != Some(super::Protocol::Https),
        Check::Address => terms.addresses.is_none(),
        _ => false,
    }
}

fn says(check: Check, terms: &Terms) -> String {
    match check {
        Check::Protocol if is_free(check, terms) => "over every connection".to_owned(),
        Check::Protocol => "over encrypted connections only".to_owned(),
        Check::Address => match &terms.addresses {
            Some(addresses) => format!("from {addresses} only"),
            None => "from every address".to_owned(),
        },
        _ => {
            let start = terms.start.as_ref().map_or("at once".to_owned(), |at| format!("at {at}"));
            let end = terms.expiry.as_ref();
            let end = end.map_or("when the policy says".to_owned(), |at| format!("at {at}"));
            format!("begins {start}, ends {end}")
        }
    }
}

/// The checks that only the service or the operation decides.
fn by_the_service(terms: &Terms) -> Vec<Finding> {
    let mut findings = Vec::new();
    if let Some(policy) = &terms.policy {
        let resource = match &terms.scope {
            Scope::Queue { .. } => "queue",
            Scope::Blob(_) => "container",
            Scope::Table { .. } | Scope::Account { .. } => "table",
        };
        let text = format!("the {resource} must have a stored access policy `{policy}`");
        findings.push(open(Check::Policy, &text));
    }
    match &terms.scope {
        Scope::Account { services, .. } => findings.push(for_services(services)),
        Scope::Blob(_) => {
            let text = "there is no blob service yet".to_owned();
            let outcome = Outcome::Refused(Reason::AuthorizationServiceMismatch);
            findings.push(Finding { check: Check::Service, outcome, text });
        }
        Scope::Table { .. } | Scope::Queue { .. } => {}
    }
    findings.push(open(Check::Operation, &operations(terms)));
    findings
}

/// Which of our services an account signature is valid for.
fn for_services(services: &str) -> Finding {
    let ours = [('t', "table"), ('q', "queue")];
    let ours = ours.into_iter().filter(|(letter, _)| services.contains(*letter));
    let ours: Vec<_> = ours.map(|(_, name)| name).collect();
    if ours.is_empty() {
        let text = format!("for no service that there is here: ss=`{services}`");
        let outcome = Outcome::Refused(Reason::AuthorizationServiceMismatch);
        return Finding { check: Check::Service, outcome, text };
    }
    passed(Check::Service, &format!("for the {} service", ours.join(" and the ")))
}

fn operations(terms: &Terms) -> String {
    let permissions = match terms.permissions.as_str() {
        "" => "what the policy permits".to_owned(),
        letters => letters.chars().map(permission).collect::<Vec<_>>().join(", "),
    };
    let on = match &terms.scope {
        Scope::Account { resource_types, .. } => {
            let kind = |letter| match letter {
                's' => "the service",
                'c' => "tables and queues",
                _ => "entities and messages",
            };
            resource_types.chars().map(kind).collect::<Vec<_>>().join(", ")
        }
        Scope::Table { name, range } => format!("entities of `{name}`{}", covers(range)),
        Scope::Queue { name } => format!("messages of `{name}`"),
        Scope::Blob(blob) => format!("`{}`", blob.path),
    };
    format!("{permissions}; on {on}")
}

fn permission(letter: char) -> &'static str {
    match letter {
        'r' => "read",
        'a' => "add",
        'u' => "update",
        'd' => "delete",
        'w' => "write",
        'l' => "list",
        'c' => "create",
        'p' => "process",
        'x' => "delete versions",
        'y' => "delete permanently",
        't' => "tags",
        'f' => "find",
        'm' => "move",
        'e' => "execute",
        'i' => "immutability",
        _ => "other",
    }
}

fn covers(range: &KeyRange) -> String {
    let end = |partition: &Option<String>, row: &Option<String>, word: &str| {
        let partition = partition.as_ref()?;
        let row = row.as_ref().map(|row| format!(" / `{row}`")).unwrap_or_default();
        Some(format!(" {word} `{partition}`{row}"))
    };
    let from = end(&range.start_partition_key, &range.start_row_key, "from");
    let to = end(&range.end_partition_key, &range.end_row_key, "up to");
    [from, to].into_iter().flatten().collect()
}

fn stated(terms: &Terms) -> Vec<(&'static str, String)> {
    let mut stated = vec![("version", terms.version.to_string())];
    let mut add = |name, value: Option<String>| {
        stated.extend(value.filter(|value| !value.is_empty()).map(|value| (name, value)));
    };
    match &terms.scope {
        Scope::Account { services, resource_types, .. } => {
            add("services", Some(services.clone()));
            add("resource types", Some(resource_types.clone()));
        }
        Scope::Table { name, range } => {
            add("table", Some(name.clone()));
            add("range", Some(covers(range).trim_start().to_owned()));
        }
        Scope::Queue { name } => add("queue", Some(name.clone())),
        Scope::Blob(blob) => add("blob", Some(blob.path.clone())),
    }
    add("permissions", Some(terms.permissions.clone()));
    add("start", terms.start.as_ref().map(ToString::to_string));
    add("expiry", terms.expiry.as_ref().map(ToString::to_string));
    add("policy", terms.policy.clone());
    add("addresses", terms.addresses.as_ref().map(ToString::to_string));
    add("protocol", terms.protocol.map(|protocol| protocol.as_str().to_owned()));
    stated
}
