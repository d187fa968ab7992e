//! The revision of the sources: of the build (`TRESTLE_REVISION`), of a source archive (`REVISION`, which `git archive`
//! fills in), or of the checkout, for builds in release mode; debug builds are not made anew with each commit.

use std::{env, fs, process::Command};

/// Characters of a revision that is not given.
const LENGTH: usize = 12;

#[expect(clippy::disallowed_methods, reason = "Cargo passes settings in variables")]
fn variable(name: &str) -> Option<String> {
    env::var(name).ok().filter(|value| !value.trim().is_empty())
}

fn of_archive() -> Option<String> {
    let text = fs::read_to_string("REVISION").ok()?;
    let text = text.trim();
    let is_hash = text.len() >= LENGTH && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_hash.then(|| text.chars().take(LENGTH).collect())
}

fn of_checkout() -> Option<String> {
    // The repository may be that of a program that has a copy of these sources.
    let top = fs::canonicalize("../..").ok()?;
    if !top.join(".git").exists() {
        return None;
    }
    let length = format!("--short={LENGTH}");
    let output = Command::new("git").args(["rev-parse", &length, "HEAD"]).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    println!("cargo::rerun-if-changed={}", top.join(".git/HEAD").display());
    println!("cargo::rerun-if-changed={}", top.join(".git/logs/HEAD").display());
    output.status.success().then(|| text.trim().to_owned())
}

fn main() {
    println!("cargo::rerun-if-env-changed=TRESTLE_REVISION");
    println!("cargo::rerun-if-changed=REVISION");
    println!("cargo::rerun-if-changed=build.rs");
    let is_release = variable("PROFILE").is_some_and(|profile| profile == "release");
    let revision = variable("TRESTLE_REVISION")
        .or_else(of_archive)
        .or_else(|| is_release.then(of_checkout).flatten());
    println!("cargo::rustc-env=TRESTLE_BUILD={}", revision.as_deref().unwrap_or("unknown"));
}
