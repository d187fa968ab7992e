//! `trestle sas explain`: the content of a signature, its signed text, and the result of each
//! check.

use std::net::{IpAddr, SocketAddr};

use clap::{Args, ValueEnum};
use serde_json::{Map, Value, json};
use trestle_identity::{
    account::Account,
    sas::{Explanation, NamedResource, Outcome, Time, explain},
    spec::{BLOB, QUEUE},
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
        (Some(queue), _) => Some(NamedResource::new(&QUEUE, queue)),
        (_, Some(container)) => Some(NamedResource::new(&BLOB, container)),
        _ => None,
    };
    let account = CredentialArgs { sas_file: None, sas: None, ..credentials.clone() }.account()?;
    let account = account.map(|(name, key)| Account {
        name,
        keys: key.into_iter().collect(),
        is_disabled: false,
        allows_public_access: false,
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
    output.record(["Signature", ""], &record(&explanation))?;
    output.finish()?;
    match explanation.first_failed() {
        None => Ok(()),
        Some(_) => Err(CliError::Rejected),
    }
}

fn record(explanation: &Explanation) -> Value {
    let checks = explanation.findings.iter().map(|finding| {
        let (outcome, reason) = match finding.outcome {
            Outcome::Passed => ("passed", None),
            Outcome::Rejected(reason) => ("rejected", Some(reason_name(reason))),
            Outcome::Open => ("open", None),
        };
        let check = finding.check.as_str();
        json!({ "check": check, "outcome": outcome, "reason": reason, "text": finding.text })
    });
    let terms: Map<_, _> =
        explanation.terms.iter().map(|(name, value)| ((*name).to_owned(), json!(value))).collect();
    json!({
        "terms": terms,
        "string_to_sign": explanation.string_to_sign,
        "checks": checks.collect::<Vec<_>>(),
        "rejected_by": explanation.first_failed().map(|finding| finding.check.as_str()),
    })
}
