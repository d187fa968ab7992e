//! Shared Key and Shared Key Lite: how the services of Azure sign requests of HTTP with a key of
//! the account. What is signed differs between tables and the other services.

pub mod queue;
pub mod table;

use std::time::Duration;

use time::{OffsetDateTime, UtcOffset, format_description::well_known::Rfc2822};

use trestle_service::clock::Ticks;

/// The largest difference between the date of a request and the server's.
pub const DATE_SKEW: Duration = Duration::from_secs(15 * 60);

/// The two schemes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scheme {
    /// `SharedKey`: all that the service signs.
    Full,
    /// `SharedKeyLite`: fewer parts of it.
    Lite,
}

/// Whether a date such as `Sat, 21 Nov 2026 12:00:00 GMT` is within the allowed difference of
/// `now`.
fn is_near(date: &str, now: Ticks) -> bool {
    let read = OffsetDateTime::parse(date, &Rfc2822).ok();
    let utc = read.map(|at| at.to_offset(UtcOffset::UTC));
    let at = utc.and_then(|at| Ticks::from_unix(at.unix_timestamp(), 0));
    let skew = DATE_SKEW.as_nanos() / 100;
    at.is_some_and(|at| u128::from(at.get().abs_diff(now.get())) <= skew)
}
