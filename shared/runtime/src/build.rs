//! The build that runs.

/// The version of the product.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");
/// `release` or `debug`.
pub const PROFILE: &str = if cfg!(debug_assertions) { "debug" } else { "release" };
/// The revision of its sources, if the build received it.
pub const REVISION: Option<&str> = option_env!("TRESTLE_REVISION");

/// The build as JSON, for the page of the version.
pub(crate) fn json() -> String {
    let revision = REVISION.map_or("null".to_owned(), |revision| format!("\"{revision}\""));
    format!("{{\"version\":\"{VERSION}\",\"profile\":\"{PROFILE}\",\"revision\":{revision}}}\n")
}
