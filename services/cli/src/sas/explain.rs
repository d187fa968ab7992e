//! `trestle sas explain`: the content of a signature, its signed text, and the result of each
//! check.

use std::net::{IpAddr, SocketAddr};

use clap::{Args, ValueEnum};
use serde_json::{Map, Value, json};
use trestle_command::{credentials::CredentialArgs, errors::CliError, output::Output};
use trestle_identity::{
    account::Account,
    caller::{BLOB_HEADER, QUEUE_HEADER},
    sas::{Explanation, NamedResource, Outcome, Time, explain},
    spec::{BLOB, QUEUE},
};
use trestle_model::fault::reason_name;
use trestle_model::time::{Clock as _, SystemClock};
use trestle_rpc::peer::{Peer, PeerTls};

use super::{token_of, usage};

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
    #[arg(long, value_name = "ADDRESS", requires = "over", value_parser = address)]
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

fn address(text: &str) -> Result<IpAddr, String> {
    text.parse().map_err(|_| "must be an IP address, such as 198.51.100.7".to_owned())
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

/// A text with the arguments of this command in place of the headers of a call.
fn with_flags(text: &str) -> String {
    let flags = [(QUEUE_HEADER, "--queue"), (BLOB_HEADER, "--container")];
    flags.iter().fold(text.to_owned(), |text, (header, flag)| text.replace(header, flag))
}

fn record(explanation: &Explanation) -> Value {
    let checks = explanation.findings.iter().map(|finding| {
        let (outcome, reason) = match finding.outcome {
            Outcome::Passed => ("passed", None),
            Outcome::Rejected(reason) => ("rejected", Some(reason_name(reason))),
            Outcome::Open => ("open", None),
        };
        let check = finding.check.as_str();
        json!({ "check": check, "outcome": outcome, "reason": reason, "text": with_flags(&finding.text) })
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_check_names_the_arguments_of_this_command() {
        let text = "one of a queue needs its name in `trestle-queue`; of a blob in `trestle-blob`";

        let expected = "one of a queue needs its name in `--queue`; of a blob in `--container`";
        assert_eq!(with_flags(text), expected);
        assert_eq!(address("banana"), Err("must be an IP address, such as 198.51.100.7".into()));
    }
}
