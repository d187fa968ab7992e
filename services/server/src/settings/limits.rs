//! The bounds of load.

use serde::{Deserialize, Serialize};
use trestle_service::limits::MESSAGE_BYTES_MAX;

use super::at_least_one;

/// Longest setting for the time until an answer begins: the removal of deleted tables counts on
/// calls being over within two minutes.
const ANSWER_WITHIN_SECONDS_MAX: u64 = 110;
/// Longest setting for the age of a connection: a week.
const CONNECTION_AGE_SECONDS_MAX: u64 = 7 * 24 * 3600;
/// Longest setting for the time between questions to a silent client, and for one that cannot be
/// asked: an hour.
const SILENCE_SECONDS_MAX: u64 = 3600;

/// The section `limits`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct LimitSettings {
    /// Most calls at a time; more are refused at once. Streams may be half of them; calls that may
    /// wait for a message have as many places of their own. Default: 1024.
    pub calls_max: usize,
    /// Most bytes that bodies of calls hold at a time, requests that are not answered and answers
    /// that are not taken; calls past it are refused. At least 16 MiB, twice the largest message.
    /// Default: 256 MiB.
    pub body_bytes_max: usize,
    /// Most connections at a time; more are closed at once. Default: 4096.
    pub connections_max: usize,
    /// Most calls at a time on one connection; more wait at the client. Default: 256.
    pub calls_per_connection_max: u32,
    /// After about how long a connection is asked to be made anew, in seconds, up to a week.
    /// Default: 1800.
    pub connection_age_seconds: u64,
    /// How long calls of such a connection may go on before they are cut off, in seconds. Default:
    /// 300.
    pub connection_grace_seconds: u64,
    /// How often the client of a connection of HTTP/2 is asked whether it is still there, and how
    /// long it may take to say so before the connection is cut, in seconds, 1 to 3600. Default: 20.
    pub keepalive_seconds: u64,
    /// How long a client of HTTP/1 may take for the head of a request, from the end of the answer
    /// before it on, in seconds, 1 to 3600. Default: 60.
    pub head_within_seconds: u64,
    /// Longest time until a request that is one message is here, in seconds. Default: 20.
    pub request_within_seconds: u64,
    /// How long a client may take nothing of an answer that is there for it, and the time in which
    /// it has to take 64 KiB of it, in seconds. Default: 60.
    pub reader_within_seconds: u64,
    /// Longest time until an answer begins, in seconds, 1 to 110. Default: 60.
    pub answer_within_seconds: u64,
}

impl Default for LimitSettings {
    fn default() -> Self {
        Self {
            calls_max: 1024,
            body_bytes_max: 256 * 1024 * 1024,
            connections_max: 4096,
            calls_per_connection_max: 256,
            connection_age_seconds: 30 * 60,
            connection_grace_seconds: 5 * 60,
            keepalive_seconds: 20,
            head_within_seconds: 60,
            request_within_seconds: 20,
            reader_within_seconds: 60,
            answer_within_seconds: 60,
        }
    }
}

impl LimitSettings {
    /// What is wrong with the section, each with its key.
    pub(super) fn problems(&self) -> Vec<String> {
        let counts = [
            at_least_one("limits.calls_max", self.calls_max > 0),
            at_least_one("limits.connections_max", self.connections_max > 0),
            at_least_one("limits.calls_per_connection_max", self.calls_per_connection_max > 0),
            at_least_one("limits.request_within_seconds", self.request_within_seconds > 0),
            at_least_one("limits.reader_within_seconds", self.reader_within_seconds > 0),
        ];
        let mut problems = Vec::from_iter(counts.into_iter().flatten());
        let (bytes, least) = (self.body_bytes_max, 2 * MESSAGE_BYTES_MAX);
        if bytes < least {
            let rule = format!("must be at least {least}: value=`{bytes}`");
            problems.push(format!("limits.body_bytes_max: {rule}"));
        }
        let seconds = [
            ("answer_within_seconds", self.answer_within_seconds, ANSWER_WITHIN_SECONDS_MAX),
            ("connection_age_seconds", self.connection_age_seconds, CONNECTION_AGE_SECONDS_MAX),
            ("keepalive_seconds", self.keepalive_seconds, SILENCE_SECONDS_MAX),
            ("head_within_seconds", self.head_within_seconds, SILENCE_SECONDS_MAX),
        ];
        for (key, seconds, most) in seconds {
            if !(1..=most).contains(&seconds) {
                problems.push(format!("limits.{key}: must be 1 to {most}: value=`{seconds}`"));
            }
        }
        problems
    }
}
