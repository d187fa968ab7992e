//! The tests that a document names as its proof exist.

use crate::source::{Finding, Source};

/// The document, and where the tests are that it names by the name of their file.
const DOCUMENT: &str = "docs/azure-compatibility.md";
const SUITES: [&str; 2] = ["tests/clients/azure/", "tests/scenarios/azure_"];

/// Names like `file.py::name` of the document that no file has.
pub(crate) fn missing(sources: &[Source]) -> Vec<Finding> {
    let documents = sources.iter().filter(|source| source.path == DOCUMENT);
    documents.flat_map(|document| missing_in(document, sources)).collect()
}

fn missing_in(document: &Source, sources: &[Source]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (index, line) in document.text.lines().enumerate() {
        for (file, name) in named(line) {
            let is_suite = |path: &str| SUITES.iter().any(|suite| path.starts_with(suite));
            let suites = sources.iter().filter(|source| is_suite(&source.path));
            let mut files = suites.filter(|source| source.file_name() == file);
            if !files.any(|source| source.text.contains(&definition(file, name))) {
                findings.push(document.finding(index, format!("no such test: `{file}::{name}`")));
            }
        }
    }
    findings
}

/// Text in backquotes with two colons: a file and a test in it.
fn named(line: &str) -> impl Iterator<Item = (&str, &str)> {
    let quoted = line.split('`').skip(1).step_by(2);
    quoted.filter_map(|quoted| quoted.split_once("::"))
}

/// How a test begins in the language of its file.
fn definition(file: &str, name: &str) -> String {
    match file.rsplit_once('.') {
        Some((_, "js")) => format!("test('{name}'"),
        Some((_, "rs")) => format!("fn {name}("),
        _ => format!("def {name}("),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_a_missing_test() {
        let sources = |document: &str| {
            [
                Source::new(DOCUMENT, document),
                Source::new("tests/clients/azure/python/a.py", "async def test_one(table):"),
                Source::new("tests/clients/azure/javascript/a.test.js", "test('it works', async"),
                Source::new("tests/clients/azure/rust/tests/a.rs", "async fn it_works() {"),
                Source::new("tests/other/b.py", "def test_one():"),
            ]
        };
        let there = "| same | `a.py::test_one` `a.test.js::it works` `a.rs::it_works` | `x` |";
        assert_eq!(missing(&sources(there)), []);
        for absent in ["a.py::test_two", "b.py::test_one", "a.test.js::it fails", "a.rs::it_fails"]
        {
            assert_eq!(missing(&sources(&format!("`{absent}`"))).len(), 1, "{absent}");
        }
    }
}
