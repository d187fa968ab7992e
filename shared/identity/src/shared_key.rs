//! Shared Key and Shared Key Lite: how the services of Azure sign requests of HTTP with a key of
//! the account. What is signed differs between tables and the other services.

pub(crate) mod all_headers;
mod header_text;
mod query;
pub(crate) mod table;

use std::{
    borrow::Cow,
    time::{Duration, UNIX_EPOCH},
};

use http::{HeaderMap, header};
use time::{OffsetDateTime, UtcOffset, format_description::well_known::Rfc2822};

use trestle_model::fault::{Reason, quoted};
use trestle_model::time::Ticks;

use crate::{
    account::{AccountKey, AccountSet, Signature},
    sas::{Check, Denied},
    spec::ServiceSpec,
};

/// The largest difference between the date of a request and the server's.
pub const DATE_SKEW: Duration = Duration::from_secs(15 * 60);
/// The suffix of an account name in the address of its read-only replica.
const SECONDARY: &str = "-secondary";

/// The two schemes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scheme {
    /// `SharedKey`: all that the service signs.
    Full,
    /// `SharedKeyLite`: fewer parts of it.
    Lite,
}

/// The texts that clients may sign for a request to an account, the most likely one first.
pub type SignedTexts =
    for<'a> fn(&'a SignedRequest<'a>, &'a str) -> Box<dyn Iterator<Item = String> + 'a>;

/// What makes a request ambiguous to its signature, and the rule; none for most.
pub type Ambiguity = fn(&SignedRequest<'_>) -> Option<String>;

/// A signed request, each part as it was sent.
#[derive(Debug, Clone, Copy)]
pub struct SignedRequest<'a> {
    /// The service, which determines what is signed.
    pub service: &'static ServiceSpec,
    /// How much of it is signed.
    pub scheme: Scheme,
    /// The method, in upper case.
    pub method: &'a str,
    /// Every header.
    pub headers: &'a HeaderMap,
    /// The path, percent-encoded as it was sent.
    pub path: &'a str,
    /// The query, percent-encoded as it was sent, without `?`; may be empty.
    pub query: &'a str,
}

impl SignedRequest<'_> {
    /// The signed text for `account` in the form of most clients.
    #[must_use]
    pub fn string_to_sign(&self, account: &str) -> String {
        (self.service.signed_texts)(self, account).next().unwrap_or_default()
    }

    /// Signs for `account` with one of its keys.
    #[must_use]
    pub fn sign(&self, account: &str, key: &AccountKey) -> Signature {
        key.sign(&self.string_to_sign(account))
    }

    /// Checks that a key of the account made the signature, and then that the date is within the allowed difference of
    /// `now`. Takes as long for an absent account.
    ///
    /// # Errors
    /// [`Check::Signature`], also for a request that has the signed text of another one; or [`Check::Time`].
    pub fn verify(
        &self,
        account: &str,
        signature: &Signature,
        accounts: &AccountSet,
        now: Ticks,
    ) -> Result<(), Denied> {
        let is_signed = (self.service.signed_texts)(self, account)
            .any(|text| accounts.with_signature(account, &text, signature).is_some());
        if !is_signed {
            return Err(Denied::unknown());
        }
        if let Some(ambiguity) = (self.service.ambiguity)(self) {
            let message =
                format!("the signature of the request covers another one too: {ambiguity}");
            return Err(Denied::new(Check::Signature, Reason::AuthenticationFailed, message));
        }
        let date = self.date();
        let at = read_date(&date);
        if at.is_some_and(|at| is_near(at, now)) {
            return Ok(());
        }
        let minutes = DATE_SKEW.as_secs() / 60;
        let rule = match (at, date.is_empty()) {
            (Some(_), _) => {
                format!("must be at most {minutes} minutes from the time of the server")
            }
            (None, true) => "required, or the header Date".to_owned(),
            (None, false) => "must be a date of HTTP".to_owned(),
        };
        let (date, now) = (quoted(&date), http_date(now));
        let message = format!("x-ms-date: {rule}: value=`{date}`, now=`{now}`");
        Err(Denied::new(Check::Time, Reason::AuthenticationFailed, message))
    }

    /// The header x-ms-date or, if absent, Date, which is compared with the current time.
    fn date(&self) -> Cow<'_, str> {
        let date = self.headers.get("x-ms-date").or_else(|| self.headers.get(header::DATE));
        date.map(|value| header_text::text_of(value.as_bytes())).unwrap_or_default()
    }

    /// The path without the suffix of a read-only replica, if it begins with such an account.
    fn path_of_primary(&self, account: &str) -> Option<String> {
        let rest = self.path.strip_prefix('/')?.strip_prefix(account)?.strip_prefix(SECONDARY)?;
        let is_whole = rest.is_empty() || rest.starts_with('/');
        is_whole.then(|| format!("/{account}{rest}"))
    }

    /// The path behind the name of a read-only replica, if it begins with the account again. A client
    /// puts the replica before the path of the account after it has signed that. Only for
    /// operations on the service: others would be signed for another resource.
    fn path_behind_replica(&self, account: &str) -> Option<&str> {
        let parameters = query::parameters(self.query);
        let (name, value) = OF_SERVICE;
        let is_of_service = parameters.get(name).is_some_and(|values| *values == [value]);
        let rest = self.path.strip_prefix('/')?.strip_prefix(account)?.strip_prefix(SECONDARY)?;
        let behind = rest.strip_prefix('/')?.strip_prefix(account)?;
        (is_of_service && matches!(behind, "" | "/")).then_some(rest)
    }
}

/// The parameter of operations on a service.
const OF_SERVICE: (&str, &str) = ("restype", "service");

/// A time in the form of the header.
fn http_date(at: Ticks) -> String {
    let since_epoch = Duration::from_secs(u64::try_from(at.to_unix().0).unwrap_or_default());
    httpdate::fmt_http_date(UNIX_EPOCH + since_epoch)
}

/// The time of a date such as `Sat, 21 Nov 2026 12:00:00 GMT`.
fn read_date(date: &str) -> Option<Ticks> {
    let utc = OffsetDateTime::parse(date, &Rfc2822).ok()?.to_offset(UtcOffset::UTC);
    Ticks::from_unix(utc.unix_timestamp(), 0)
}

/// Whether a time is within the allowed difference of `now`.
fn is_near(at: Ticks, now: Ticks) -> bool {
    u128::from(at.get().abs_diff(now.get())) <= DATE_SKEW.as_nanos() / 100
}
