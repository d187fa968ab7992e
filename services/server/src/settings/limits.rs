//! The bounds of load.

use serde::{Deserialize, Serialize};
use trestle_model::limits::{EXPORT_BYTES_MAX, MESSAGE_BYTES_MAX};

use super::{NumberRule, outside, wide};

/// Most calls, and most connections, at a time: about as many sockets as Linux allows a process, and
/// far more than its memory holds.
const SLOTS_MAX: u64 = 1_000_000;
/// Most bytes of bodies at a time: a tebibyte.
const BODY_BYTES_MAX: u64 = 1 << 40;
/// Longest setting for the time in which a request, or a piece of a response, has to be transferred:
/// an hour.
const TRANSFER_SECONDS_MAX: u64 = 3600;
/// Longest setting for the time until a response begins: the removal of deleted tables requires that
/// calls end within two minutes.
const ANSWER_WITHIN_SECONDS_MAX: u64 = 110;
/// Longest setting for the age of a connection: a week.
const CONNECTION_AGE_SECONDS_MAX: u64 = 7 * 24 * 3600;
/// Longest keepalive interval, and longest timeout of a silent client: an hour.
const SILENCE_SECONDS_MAX: u64 = 3600;

/// The section `limits`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct LimitSettings {
    /// Most calls at a time; more are rejected at once. Streams may be half of them; calls that may
    /// wait for a message have as many slots of their own. One account has at most three quarters of each, and fewer
    /// as others call too. 1 to 1000000. Default: 1024.
    pub calls_max: usize,
    /// Most bytes that bodies of calls hold at a time, requests without a response and responses
    /// that are not read; calls past it are rejected. At least 16 MiB, and twice the largest export, and
    /// at most 1 TiB. Default: 256 MiB.
    pub body_bytes_max: usize,
    /// Largest export of OpenTelemetry, of logs, metrics or spans, in bytes, after decompression: a
    /// collector drops what is larger. Other messages have up to 8 MiB. 8 MiB to 64 MiB, and at most
    /// half of `body_bytes_max`. Default: 8 MiB.
    pub export_bytes_max: usize,
    /// Most connections of callers at a time, on all listeners; fewer where the process may have few
    /// descriptors. At the limit a connection of the peer with the most is evicted: a peer is an IPv4
    /// address or an IPv6 network of 64 bits. An eighth may be in a TLS handshake. 1 to 1000000.
    /// Default: 4096.
    pub connections_max: usize,
    /// Most calls at a time on one connection; more wait at the client. 1 to 1000000. Default: 256.
    pub calls_per_connection_max: u32,
    /// After about how long a connection is closed with GOAWAY, in seconds, up to a week.
    /// Default: 1800.
    pub connection_age_seconds: u64,
    /// How long calls of such a connection may continue before they are aborted, in seconds, up to a
    /// week. Default: 300.
    pub connection_grace_seconds: u64,
    /// How often a client of HTTP/2 is sent a PING, and how long it may take to acknowledge it before
    /// the connection is closed, in seconds, 1 to 3600. Default: 20.
    pub keepalive_seconds: u64,
    /// How long a client of HTTP/1 may take for the head of a request, from the end of the previous
    /// response, in seconds, 1 to 3600. Default: 60.
    pub head_within_seconds: u64,
    /// Longest time until a request that is one message has arrived, in seconds, 1 to 3600. Default: 20.
    pub request_within_seconds: u64,
    /// How long a client may read nothing of a response that is ready for it, and the time in which
    /// it has to read 64 KiB of it, in seconds, 1 to 3600. Default: 60.
    pub reader_within_seconds: u64,
    /// Longest time until a response begins, in seconds, 1 to 110. Default: 60.
    pub answer_within_seconds: u64,
}

impl Default for LimitSettings {
    fn default() -> Self {
        Self {
            calls_max: 1024,
            body_bytes_max: 256 * 1024 * 1024,
            export_bytes_max: MESSAGE_BYTES_MAX,
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
    /// The problems of the section, each with its key.
    pub(super) fn problems(&self) -> Vec<String> {
        outside("limits", self.numbers())
    }

    /// The numbers of the section.
    pub(super) fn numbers(&self) -> [NumberRule; 12] {
        let (slots, transfer) = (1..=SLOTS_MAX, 1..=TRANSFER_SECONDS_MAX);
        let per_connection = u64::from(self.calls_per_connection_max);
        let (age, silence) = (CONNECTION_AGE_SECONDS_MAX, 1..=SILENCE_SECONDS_MAX);
        let exports = wide(MESSAGE_BYTES_MAX)..=wide(EXPORT_BYTES_MAX);
        let largest = self.export_bytes_max.clamp(MESSAGE_BYTES_MAX, EXPORT_BYTES_MAX);
        let bytes = wide(2 * largest)..=BODY_BYTES_MAX;
        [
            ("calls_max", wide(self.calls_max), slots.clone()),
            ("body_bytes_max", wide(self.body_bytes_max), bytes),
            ("export_bytes_max", wide(self.export_bytes_max), exports),
            ("connections_max", wide(self.connections_max), slots.clone()),
            ("calls_per_connection_max", per_connection, slots),
            ("connection_age_seconds", self.connection_age_seconds, 1..=age),
            ("connection_grace_seconds", self.connection_grace_seconds, 0..=age),
            ("keepalive_seconds", self.keepalive_seconds, silence.clone()),
            ("head_within_seconds", self.head_within_seconds, silence),
            ("request_within_seconds", self.request_within_seconds, transfer.clone()),
            ("reader_within_seconds", self.reader_within_seconds, transfer),
            ("answer_within_seconds", self.answer_within_seconds, 1..=ANSWER_WITHIN_SECONDS_MAX),
        ]
    }
}
