//! The bounds of the connections of a listener.

use std::time::Duration;

/// See the module.
#[derive(Debug, Clone, Copy)]
pub struct Bounds {
    /// Most calls at a time on one connection; more wait at the client.
    pub streams_max: u32,
    /// After about how long a connection is closed, so that its client opens another.
    pub age_max: Duration,
    /// How long its calls may continue then.
    pub age_grace: Duration,
    /// How often a client of HTTP/2 is sent a PING, and how long it may take to acknowledge it before
    /// the connection is cut.
    pub keepalive: Duration,
    /// How long a client of HTTP/1, which has no PING, may take for the head of a request, from the end
    /// of the previous response on.
    pub head_within: Duration,
    /// Most headers of a request of HTTP/1. `None` is 100, which costs least: room for more is made
    /// for each request.
    pub headers_max: Option<usize>,
    /// Whether the names of headers of HTTP/1 keep their case, in an extension of hyper, of requests and of
    /// responses.
    pub keeps_header_case: bool,
    /// How long a client may receive nothing while bytes wait for it, and the time in which it has to
    /// receive 64 KiB of them.
    pub reader_within: Duration,
    /// How long calls may continue after the listener was stopped.
    pub drain_within: Duration,
}
