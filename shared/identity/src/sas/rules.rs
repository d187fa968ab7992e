//! The checks after the signature that need no service: time, protocol, address.

use std::time::Duration;

use super::{Check, Denied, Protocol, Terms, Time};
use trestle_model::{fault::Reason, time::Ticks};
use trestle_rpc::peer::Peer;

/// How much earlier than its start a token is accepted, because of clock skew. Its expiry is exact:
/// a token is never valid longer than it states.
pub const START_SKEW: Duration = Duration::from_secs(5 * 60);

/// The time and the peer of a use of a token.
#[derive(Debug, Clone, Copy)]
pub struct Use<'a> {
    /// The time by the wall clock of the server.
    pub now: Ticks,
    /// The peer of the connection.
    pub peer: &'a Peer,
}

type CheckFn = fn(&Terms, &Use<'_>) -> Result<(), Denied>;

/// The checks after the signature, in their order.
pub(super) const RULES: [(Check, CheckFn); 3] =
    [(Check::Time, time), (Check::Protocol, protocol), (Check::Address, address)];

/// Checks whether a token may be used so.
///
/// # Errors
/// The first check that it fails.
pub(super) fn check_use(terms: &Terms, usage: &Use<'_>) -> Result<(), Denied> {
    RULES.iter().try_for_each(|(_, rule)| rule(terms, usage))
}

fn time(terms: &Terms, usage: &Use<'_>) -> Result<(), Denied> {
    let fails = |message| Err(Denied::new(Check::Time, Reason::AuthenticationFailed, message));
    let skew = u64::try_from(START_SKEW.as_nanos() / 100).unwrap_or(u64::MAX);
    let is_early = |start: &Time| start.ticks().get() > usage.now.get().saturating_add(skew);
    let key = terms.delegation.as_ref().map(|delegation| &delegation.key);
    if let Some(key) = key.filter(|key| is_early(&key.start)) {
        return fails(format!("the user delegation key is not valid yet: skt=`{}`", key.start));
    }
    if let Some(key) = key.filter(|key| key.expiry.ticks() <= usage.now) {
        return fails(format!("the user delegation key has expired: ske=`{}`", key.expiry));
    }
    match (&terms.start, &terms.expiry) {
        (Some(start), _) if is_early(start) => {
            fails(format!("the signature is not valid yet: st=`{start}`"))
        }
        (_, Some(expiry)) if expiry.ticks() <= usage.now => {
            fails(format!("the signature has expired: se=`{expiry}`"))
        }
        _ => Ok(()),
    }
}

fn protocol(terms: &Terms, usage: &Use<'_>) -> Result<(), Denied> {
    if terms.protocol == Some(Protocol::Https) && usage.peer.tls.is_none() {
        let message = "the signature requires an encrypted connection: spr=`https`";
        let reason = Reason::AuthorizationProtocolMismatch;
        return Err(Denied::new(Check::Protocol, reason, message));
    }
    Ok(())
}

fn address(terms: &Terms, usage: &Use<'_>) -> Result<(), Denied> {
    let address = usage.peer.ip();
    match &terms.addresses {
        Some(range) if !range.has(address) => {
            let message = "the signature is not for this address";
            let message = format!("{message}: sip=`{range}`, address=`{address}`");
            Err(Denied::new(Check::Address, Reason::AuthorizationSourceIpMismatch, message))
        }
        _ => Ok(()),
    }
}
