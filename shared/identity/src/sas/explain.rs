//! Explains for people the grant of a token, the text of its signature, and which check it fails.

mod scope_text;
mod terms_text;

use self::{
    scope_text::by_the_service,
    terms_text::{described, is_free, stated},
};
use super::{
    Check, Delegation, Denied, Malformed, NamedResource, Token,
    rules::{RULES, Use},
    string_to_sign,
};
use crate::account::Account;
use trestle_model::{fault::Reason, time::Ticks};
use trestle_rpc::peer::Peer;

/// The content of a token and the results of its checks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Explanation {
    /// Its fields: names and values, without the signature.
    pub terms: Vec<(&'static str, String)>,
    /// The string to sign, if the account exists.
    pub string_to_sign: Option<String>,
    /// The checks in the order of a server. A server stops at the first that fails; these are all
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
    Rejected(Reason),
    /// The available information does not decide it.
    Open,
}

impl Explanation {
    /// The first check that the token fails, which a server reports.
    #[must_use]
    pub fn first_failed(&self) -> Option<&Finding> {
        self.findings.iter().find(|finding| matches!(finding.outcome, Outcome::Rejected(_)))
    }
}

/// Explains a token used at `now`: `account` with its keys, if any, and the peer of the
/// connection, if any.
#[must_use]
pub fn explain(
    text: &str,
    resource: Option<NamedResource>,
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
        let outcome = Outcome::Rejected(Reason::AccountIsDisabled);
        findings.push(Finding { check: Check::Account, outcome, text });
    }
    let in_process = Peer::in_process();
    let usage = Use { now, peer: peer.unwrap_or(&in_process) };
    for (check, rule) in RULES {
        findings.push(match rule(terms, &usage) {
            Err(denied) if check == Check::Time || peer.is_some() => rejected(denied),
            Ok(()) if check == Check::Time || peer.is_some() => {
                passed(check, &described(check, terms))
            }
            _ if is_free(check, terms) => passed(check, &described(check, terms)),
            _ => open(check, &described(check, terms)),
        });
    }
    findings.extend(by_the_service(terms));
    findings.sort_by_key(|finding| finding.check);
    let string_to_sign = account.map(|account| string_to_sign(terms, account.name.as_str()));
    Explanation { terms: stated(terms), string_to_sign, findings }
}

fn malformed_token(malformed: Malformed) -> Explanation {
    let findings = vec![rejected(malformed.into())];
    Explanation { terms: Vec::new(), string_to_sign: None, findings }
}

fn passed(check: Check, text: &str) -> Finding {
    Finding { check, outcome: Outcome::Passed, text: text.to_owned() }
}

fn open(check: Check, text: &str) -> Finding {
    Finding { check, outcome: Outcome::Open, text: text.to_owned() }
}

fn rejected(denied: Denied) -> Finding {
    let outcome = Outcome::Rejected(denied.reason);
    Finding { check: denied.check, outcome, text: denied.message }
}

fn delegated(delegation: &Delegation, token: &Token, account: &Account, text: &str) -> Finding {
    let name = account.name.as_str();
    match delegation.key.role((name, Some(account)), text, &token.signature) {
        Some(role) => {
            let text = "made with a user delegation key, which this key of this account derives";
            passed(Check::Signature, &format!("{text}: role=`{role}`"))
        }
        None => {
            let text = "not made with a user delegation key of this account with these fields";
            let outcome = Outcome::Rejected(Reason::AuthenticationFailed);
            Finding { check: Check::Signature, outcome, text: text.to_owned() }
        }
    }
}

fn signature(token: &Token, account: Option<&Account>) -> Finding {
    match account {
        Some(account) if !account.keys.is_empty() => {
            let text = string_to_sign(&token.terms, account.name.as_str());
            if let Some(delegation) = &token.terms.delegation {
                return delegated(delegation, token, account, &text);
            }
            if account.verifies(&text, &token.signature) {
                return passed(Check::Signature, "made with this key of this account");
            }
            let text = "not made with this key for this account, or something was changed since";
            let outcome = Outcome::Rejected(Reason::AuthenticationFailed);
            Finding { check: Check::Signature, outcome, text: text.to_owned() }
        }
        _ => open(Check::Signature, "needs the account and its key"),
    }
}
