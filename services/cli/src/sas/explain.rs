//! `trestle sas explain`: the content of a signature, its signed text, and the result of each
//! check.

use std::net::{IpAddr, SocketAddr};

use clap::{Args, ValueEnum};
use serde_json::json;
use trestle_identity::{
    account::Account,
    sas::{Explanation, Outcome, Resource, Time, explain},
};
use trestle_service::{
    clock::{Clock as _, SystemClock},
    fault::reason_name,
    peer::{Peer, PeerTls},
};

use super::{token_of, usage};
use crate::{credentials::CredentialArgs, errors::CliError, output::Output};

/// Arguments of `explain`.
#[derive(Debug, Args)]
pub struct ExplainArgs {
    /// The signature; `-` reads standard input, which keeps it from the eyes of others. Left out:
    /// that of --sas-file
    #[arg(default_value = "", hide_default_value = true)]
    token: String,
    /// The queue that it is for, which is not part of it
    #[arg(long, value_name = "NAME", conflicts_with = "container")]
    queue: Option<String>,
    /// The container that it is for, or container/blob
    #[arg(long, value_name = "NAME")]
    container: Option<String>,
    /// As if used from this address
    #[arg(long, value_name = "ADDRESS", requires = "over")]
    from: Option<IpAddr>,
    /// As if used over this protocol
    #[arg(long, value_enum, requires = "from")]
    over: Option<Over>,
    /// As if used at this time; now when left out
    #[arg(long, value_name = "TIME")]
    at: Option<String>,
}

/// How a client is connected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Over {
    /// Encrypted
    Https,
    /// Plain
    Http,
}

/// Explains.
pub(super) fn run(
    output: &mut Output,
    args: ExplainArgs,
    credentials: &CredentialArgs,
) -> Result<(), CliError> {
    let token = token_of(&args.token, credentials.sas_file.as_ref())?;
    let resource = match (args.queue, args.container) {
        (Some(queue), _) => Some(Resource::Queue(queue)),
        (_, Some(container)) => Some(Resource::Blob(container)),
        _ => None,
    };
    let account = CredentialArgs { sas_file: None, sas: None, ..credentials.clone() }.account()?;
    let account = account.map(|(name, key)| Account {
        name,
        keys: key.into_iter().collect(),
        is_disabled: false,
    });
    let peer = args.from.map(|address| Peer {
        address: SocketAddr::new(address, 0),
        tls: (args.over == Some(Over::Https)).then(PeerTls::default),
    });
    let now = match args.at {
        Some(text) => Time::parse("--at", text).map_err(|error| usage(&error))?.ticks(),
        None => SystemClock.now(),
    };
    let explanation = explain(&token, resource, account.as_ref(), now, peer.as_ref());
    output.either(&text(&explanation), &object(&explanation))?;
    output.flush()?;
    match explanation.refusal() {
        None => Ok(()),
        Some(_) => Err(CliError::Refused),
    }
}

/// The outcome as a word, and the reason of a refusal.
fn outcome(outcome: Outcome) -> (&'static str, Option<&'static str>) {
    match outcome {
        Outcome::Passed => ("passed", None),
        Outcome::Refused(reason) => ("refused", Some(reason_name(reason))),
        Outcome::Open => ("open", None),
    }
}

fn text(explanation: &Explanation) -> String {
    let mut lines = Vec::new();
    for (name, value) in &explanation.terms {
        lines.push(format!("{name:<15} {value}"));
    }
    if let Some(signed) = &explanation.string_to_sign {
        lines.push(format!("{:<15} {}", "string to sign", signed.replace('\n', "\\n")));
    }
    if !lines.is_empty() {
        lines.push(String::new());
    }
    for finding in &explanation.findings {
        let (word, reason) = outcome(finding.outcome);
        let reason = reason.map(|reason| format!(" ({reason})")).unwrap_or_default();
        lines.push(format!("{word:<8} {:<10} {}{reason}", finding.check.as_str(), finding.text));
    }
    lines.push(String::new());
    lines.push(match explanation.refusal() {
        Some(finding) => format!("refused: {}", finding.text),
        None => "not refused by the checks that were possible".to_owned(),
    });
    lines.join("\n")
}

fn object(explanation: &Explanation) -> serde_json::Value {
    let checks = explanation.findings.iter().map(|finding| {
        let (word, reason) = outcome(finding.outcome);
        let check = finding.check.as_str();
        json!({ "check": check, "outcome": word, "reason": reason, "text": finding.text })
    });
    let checks: Vec<_> = checks.collect();
    let terms: serde_json::Map<_, _> =
        explanation.terms.iter().map(|(name, value)| ((*name).to_owned(), json!(value))).collect();
    json!({
        "terms": terms,
        "string_to_sign": explanation.string_to_sign,
        "checks": checks,
        "refused_by": explanation.refusal().map(|finding| finding.check.as_str()),
    })
}
