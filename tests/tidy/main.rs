//! Hygiene of the repository: what no compiler checks and no reviewer should have to.
//!
//! Each rule is a function from files to findings, with a test of its own that shows it can fail.
//! These tests run every rule over the files that git tracks or would add. A wrong rule is changed,
//! never silenced at a finding.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "tests")]

mod benchmarks;
mod clocks;
mod compatibility;
mod configuration;
mod layers;
mod named_tests;
mod proto;
mod rust;
mod sizes;
mod source;
mod telemetry;
mod text;
mod tokens;
mod types;

use source::{Finding, Source, all};

/// Runs a rule over every file.
fn check(rule: impl Fn(&Source) -> Vec<Finding>) {
    report(&all().iter().flat_map(rule).collect::<Vec<_>>());
}

fn report(findings: &[Finding]) {
    let lines: Vec<String> = findings.iter().map(ToString::to_string).collect();
    assert!(lines.is_empty(), "\n{}\n", lines.join("\n"));
}

#[test]
fn the_walk_finds_the_repository() {
    let sources = all();
    let has = |path: &str| sources.iter().any(|source| source.path == path);

    assert!(has("Cargo.toml") && has("tests/tidy/main.rs") && has("proto/build.rs"));
    assert!(!sources.iter().any(|source| source.path.starts_with("target/")));
}

#[test]
fn no_file_is_longer_than_500_lines() {
    check(text::long_files);
}

#[test]
fn no_line_is_longer_than_120_columns() {
    check(text::long_lines);
}

#[test]
fn every_test_that_a_document_names_exists() {
    report(&named_tests::missing(&all()));
}

#[test]
fn the_configuration_reference_is_what_the_settings_say() {
    configuration::check(&all());
}

#[test]
fn every_operation_of_azure_storage_is_in_the_document_on_compatibility() {
    check(compatibility::missing_operations);
}

#[test]
fn every_claim_of_compatibility_has_a_test() {
    check(compatibility::unproven);
}

#[test]
fn every_recorded_figure_has_its_day() {
    check(benchmarks::undated);
}

#[test]
fn every_unfinished_mark_names_an_issue() {
    check(text::open_ends);
}

#[test]
fn no_file_names_the_host_of_a_package_registry() {
    check(text::registry_hosts);
}

#[test]
fn no_module_has_an_empty_name() {
    check(text::empty_names);
}

#[test]
fn telemetry_names_are_in_their_module() {
    check(telemetry::stray_names);
}

#[test]
fn no_function_is_longer_than_70_lines() {
    check(rust::long_functions);
}

#[test]
fn no_test_is_ignored() {
    check(rust::ignored_tests);
}

#[test]
fn no_result_of_matches_is_unused() {
    check(rust::bare_matches);
}

#[test]
fn no_debug_print_is_left() {
    check(rust::debug_prints);
}

#[test]
fn no_service_deletes_or_refuses_data_by_the_wall_clock() {
    check(clocks::wall_clock);
}

#[test]
fn every_file_has_a_purpose_comment() {
    check(rust::missing_docs);
}

#[test]
fn every_file_is_part_of_a_crate() {
    report(&rust::orphans(&all()));
}

#[test]
fn every_element_of_a_contract_has_a_comment() {
    check(proto::uncommented);
}

#[test]
fn crates_depend_only_on_the_layers_below() {
    report(&layers::misplaced(&all()));
}

#[test]
fn every_dependency_has_its_version_in_the_workspace() {
    check(layers::own_versions);
}

#[test]
fn files_are_named_like_their_modules() {
    check(rust::unnamed_modules);
}

#[test]
fn every_dependency_has_a_reason() {
    report(&layers::unlisted(&all()));
}

/// The names that several files define, each with the reason.
const SHARED_TYPE_NAMES: [(&str, &str); 1] =
    [("Version", "of a change in the store, and of a signature, as Azure names both fields")];

#[test]
fn a_type_name_is_defined_once() {
    let sources = all();
    let found = types::defined_twice(&sources);
    let lines = found.iter().map(|(name, files)| format!("{name}: {}", files.join(" ")));
    let lines: Vec<String> = lines.collect();
    let listed = SHARED_TYPE_NAMES.iter().map(|(name, _)| *name);
    assert!(found.keys().map(String::as_str).eq(listed), "\n{}\n", lines.join("\n"));
}

/// `just sizes` shows what this prints.
#[test]
fn there_are_as_many_lines_of_tests_as_of_code() {
    let sources = all();
    let sizes = sizes::by_crate(&sources);
    println!("crate                  median   code  tests");
    for (name, size) in &sizes {
        let (median, code, tests) = (size.median(), size.code_lines, size.test_lines);
        println!("{name:<22} {median:>6} {code:>6} {tests:>6}");
    }
    let sum = |lines: fn(&sizes::Size) -> usize| sizes.values().map(lines).sum::<usize>();
    let percent = sum(|size| size.test_lines) * 100 / sum(|size| size.code_lines);
    println!("lines of tests for each 100 of code: {percent}");

    assert!(percent >= sizes::TEST_PERCENT_MIN, "too few tests: {percent} lines for each 100");
}
