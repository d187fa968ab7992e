//! The build that runs.

/// The version of the product.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");
/// `release` or `debug`.
pub const PROFILE: &str = if cfg!(debug_assertions) { "debug" } else { "release" };
/// The revision of its sources, if the build received it.
pub const REVISION: Option<&str> = option_env!("TRESTLE_REVISION");

/// The build as JSON, for the page of the version; a build that received no revision has none there.
pub(crate) fn json() -> String {
    let revision = REVISION.map(|revision| format!(",\"revision\":\"{revision}\""));
    let revision = revision.unwrap_or_default();
    format!("{{\"version\":\"{VERSION}\",\"profile\":\"{PROFILE}\"{revision}}}\n")
}
