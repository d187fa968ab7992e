//! Get User Delegation Key: a key with which a user signs tokens of a service, instead of with a key of the account.
//!
//! The gateway derives it and stores nothing. Every role may request one; what it signs permits at most what the role
//! does.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use bytes::Bytes;
use http::{Response, header};
use tonic::body::Body;
use trestle_identity::{
    authorize::not_authorized,
    caller::{Authority, Caller},
    credentials::Identity,
    sas::{DelegationTerms, START_SKEW, Time, Version},
    spec::ServiceSpec,
};
use trestle_model::fault::{Fault, Reason, quoted};
use trestle_model::time::Ticks;

use crate::{
    auth::bearer_token,
    error::RestError,
    grpc_call::GrpcCall,
    head::RequestHead,
    reply,
    version::{self, VERSION},
    xml::{self, KeyInfo},
};

/// Longest time to the expiry of a key, in seconds: seven days, as Azure has it.
const SECONDS_MAX: i64 = 7 * 24 * 60 * 60;

/// Derives a key for the tokens of `service`.
///
/// # Errors
/// A caller without a bearer token, a malformed body, a version before such keys, or times out of range.
pub(crate) fn get_key(
    head: &RequestHead,
    body: &Bytes,
    call: &GrpcCall,
    identity: &Identity,
    service: &ServiceSpec,
) -> Result<Response<Body>, RestError> {
    let caller = Caller::in_process(&call.extensions);
    let role = caller.as_ref().and_then(|caller| match caller.authority {
        Authority::Role(role) => Some(role),
        _ => None,
    });
    let header = head.header(header::AUTHORIZATION).unwrap_or_default();
    let (Some(caller), Some(role), Some(token)) = (caller, role, bearer_token(header)) else {
        let why = "a user delegation key is for a caller with a bearer token";
        return Err(not_authorized(why).into());
    };
    let accounts = identity.accounts.now();
    let user = accounts.issuers().user(token).map_err(Fault::from)?;
    let version = version(head, service)?;
    let [start, expiry] = times(&xml::read_key_info(body)?, identity.clock.now())?;
    let (issuer, user) = (user.issuer, user.id);
    let service = service.letter.to_string();
    let key = DelegationTerms { user, issuer, start, expiry, service, version };
    let account = accounts.get(caller.account.as_str());
    let value = account.and_then(|account| key.value(account, role));
    let value = value.ok_or_else(|| not_authorized("the account has no key"))?;
    let document = xml::write_delegation_key(&xml::DelegationKeyDocument {
        user: &key.user,
        issuer: &key.issuer,
        start: key.start.as_str(),
        expiry: key.expiry.as_str(),
        service: &key.service,
        version: key.version.as_str(),
        value: &STANDARD.encode(value.reveal()),
    });
    Ok(reply::xml(document))
}

/// The version of the request, which tokens repeat.
fn version(head: &RequestHead, service: &ServiceSpec) -> Result<Version, Fault> {
    let since = service.delegation.map(|form| form.since).unwrap_or_default();
    let value = version::negotiated(&head.headers, Some(&head.params));
    let text = value.to_str().unwrap_or_default();
    Version::parse(text.to_owned()).ok().filter(|_| text >= since).ok_or_else(|| {
        let rule = format!("must be {since} or newer for this operation: value=`{}`", quoted(text));
        Fault::violation(Reason::InvalidHeaderValue, VERSION.as_str(), rule)
    })
}

/// Start and expiry of a key, in whole seconds.
fn times(info: &KeyInfo, now: Ticks) -> Result<[Time; 2], Fault> {
    let fails = |field: &str, rule: &str, time: &Time| {
        let rule = format!("{rule}: value=`{time}`");
        Err(Fault::violation(Reason::InvalidXmlNodeValue, field, rule))
    };
    let unsupported = |field: &str| {
        let rule = "must be in the years 1 to 9999";
        Fault::violation(Reason::InvalidXmlNodeValue, field, rule)
    };
    let at = |field: &str, ticks: Option<Ticks>| {
        ticks.and_then(Time::at).ok_or_else(|| unsupported(field))
    };
    let start = info.start.map_or(Some(now), |start| Ticks::from_unix(start.seconds, start.nanos));
    let start = at("Start", start)?;
    let expiry = at("Expiry", Ticks::from_unix(info.expiry.seconds, info.expiry.nanos))?;
    let seconds = |time: &Time| time.ticks().to_unix().0;
    let now = now.to_unix().0;
    // The clock of a client that requests the longest time may be fast.
    let skew = i64::try_from(START_SKEW.as_secs()).unwrap_or_default();
    if seconds(&expiry) <= now {
        return fails("Expiry", "must be in the future", &expiry);
    }
    if seconds(&expiry) > now + SECONDS_MAX + skew {
        return fails("Expiry", "must be at most seven days from now", &expiry);
    }
    if seconds(&start) < now - SECONDS_MAX - skew {
        return fails("Start", "must be at most seven days ago", &start);
    }
    if start.ticks() >= expiry.ticks() {
        return fails("Expiry", "must be after Start, by a second or more", &expiry);
    }
    Ok([start, expiry])
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: i64 = 1_795_262_400;
    const DAY: i64 = 24 * 60 * 60;

    /// The times of a key in seconds from now, or the field that is rejected.
    fn of(start: Option<i64>, expiry: i64) -> Result<[i64; 2], String> {
        let at = |seconds| prost_types::Timestamp { seconds: NOW + seconds, nanos: 900_000_000 };
        let info = KeyInfo { start: start.map(at), expiry: at(expiry) };
        let now = Ticks::from_unix(NOW, 5_000).expect("in range");
        let times = times(&info, now);
        times.map(|times| times.map(|time| time.ticks().to_unix().0 - NOW)).map_err(|fault| {
            assert_eq!(fault.reason, Reason::InvalidXmlNodeValue);
            fault.message.split(':').next().unwrap_or_default().to_owned()
        })
    }

    #[test]
    fn a_key_lasts_for_seven_days_at_most_and_begins_before_it_ends() {
        let fails = |field: &str| Err(field.to_owned());
        for (start, expiry, expected) in [
            (None, 60, Ok([0, 60])),
            (None, 7 * DAY + 300, Ok([0, 7 * DAY + 300])),
            (None, 7 * DAY + 301, fails("Expiry")),
            (Some(DAY), 8 * DAY, fails("Expiry")),
            (None, 0, fails("Expiry")),
            (Some(-60), -1, fails("Expiry")),
            (Some(-7 * DAY - 300), 1, Ok([-7 * DAY - 300, 1])),
            (Some(-7 * DAY - 301), 1, fails("Start")),
            (Some(60), 61, Ok([60, 61])),
            (Some(60), 60, fails("Expiry")),
            (Some(61), 60, fails("Expiry")),
        ] {
            assert_eq!(of(start, expiry), expected, "{start:?} {expiry}");
        }
    }
}
