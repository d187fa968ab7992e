//! The build that runs.

/// The version of the product.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");
/// `release` or `debug`.
pub const PROFILE: &str = if cfg!(debug_assertions) { "debug" } else { "release" };
/// The revision of its sources, or `unknown`; see `build.rs` of the crate.
pub const REVISION: &str = env!("TRESTLE_BUILD");

/// Version and revision, as commands print them.
pub const DESCRIPTION: &str =
    concat!(env!("CARGO_PKG_VERSION"), " (revision ", env!("TRESTLE_BUILD"), ")");

/// The build as JSON, for the page of the version.
pub(crate) fn json() -> String {
    format!("{{\"version\":\"{VERSION}\",\"profile\":\"{PROFILE}\",\"revision\":\"{REVISION}\"}}\n")
}
