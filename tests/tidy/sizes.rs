//! How large the crates are: lines of files, and lines of tests beside lines of the product.

use std::collections::BTreeMap;

use crate::source::Source;

/// Fewest lines of tests for each 100 lines of the product, in the repository. An engine brings fewer of its own: the
/// contract that it is tested by is one text for all engines.
pub(crate) const TEST_PERCENT_MIN: usize = 105;

/// Attributes of modules that no build of the product has.
const TEST_ONLY: [&str; 2] = ["#[cfg(test)]", "#[cfg(feature = \"testing\")]"];

/// The Rust of a crate.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct Size {
    /// Lines of each file.
    files: Vec<usize>,
    /// Lines of tests, which may be in the file of the code.
    pub(crate) test_lines: usize,
    /// All other lines.
    pub(crate) code_lines: usize,
}

impl Size {
    /// Lines of the file in the middle.
    pub(crate) fn median(&self) -> usize {
        let mut files = self.files.clone();
        files.sort_unstable();
        files.get(files.len() / 2).copied().unwrap_or_default()
    }
}

/// The sizes of the crates by their folders. The suites in other languages count as one.
pub(crate) fn by_crate(sources: &[Source]) -> BTreeMap<&str, Size> {
    let mut sizes: BTreeMap<&str, Size> = BTreeMap::new();
    let only_tests = modules_of_tests(sources);
    let is_test = |source: &Source| {
        source.is_test() || only_tests.iter().any(|module| is_within(&source.path, module))
    };
    for source in sources.iter().filter(|source| source.is_script() || source.is_rust()) {
        let size = sizes.entry(crate_of(&source.path)).or_default();
        let lines = source.text.lines().count();
        let test_lines = if is_test(source) { lines } else { lines_of_inner_tests(&source.text) };
        size.test_lines += test_lines;
        size.code_lines += lines - test_lines;
        size.files.push(lines);
    }
    sizes
}

/// The paths, without an ending, of the modules that are compiled for tests only.
pub(crate) fn modules_of_tests(sources: &[Source]) -> Vec<String> {
    let mut modules = Vec::new();
    for source in sources.iter().filter(|source| source.is_rust()) {
        let path = source.path.trim_end_matches(".rs");
        let is_root = matches!(source.file_name(), "lib.rs" | "main.rs");
        let folder = if is_root { path.rsplit_once('/').map_or("", |parts| parts.0) } else { path };
        let lines: Vec<&str> = source.text.lines().map(str::trim).collect();
        for pair in lines.windows(2).filter(|pair| TEST_ONLY.contains(&pair[0])) {
            let name = pair[1].split_once("mod ").and_then(|parts| parts.1.strip_suffix(';'));
            modules.extend(name.map(|name| format!("{folder}/{name}")));
        }
    }
    modules
}

/// Whether a file is the module, or lies below it.
pub(crate) fn is_within(path: &str, module: &str) -> bool {
    path.strip_prefix(module).is_some_and(|rest| rest == ".rs" || rest.starts_with('/'))
}

/// The folder of the crate: two levels deep in `shared` and `services`, else one.
fn crate_of(path: &str) -> &str {
    let levels = if path.starts_with("shared/") || path.starts_with("services/") { 2 } else { 1 };
    let ends = path.match_indices('/').map(|(at, _)| at);
    ends.take(levels).last().map_or("", |end| &path[..end])
}

/// Lines from the attribute of a module of tests on: by convention it is at the end of its file.
fn lines_of_inner_tests(text: &str) -> usize {
    let lines: Vec<&str> = text.lines().collect();
    let begins = |pair: &[&str]| pair[0] == "#[cfg(test)]" && pair[1].ends_with("mod tests {");
    lines.windows(2).position(begins).map_or(0, |at| lines.len() - at)
}

#[test]
fn lines_are_counted_by_crate_and_kind() {
    let sources = [
        Source::new("shared/a/src/lib.rs", "a\nb\n#[cfg(test)]\nmod tests {\n}\n"),
        Source::new("shared/a/src/b.rs", "a\n#[cfg(test)]\nmod tests;\n"),
        Source::new("shared/a/src/b/tests.rs", "a\n"),
        Source::new("shared/b/src/lib.rs", "a\n#[cfg(feature = \"testing\")]\npub mod rules;\n"),
        Source::new("shared/b/src/rules.rs", "a\nb\n"),
        Source::new("shared/b/src/rules/keys.rs", "a\n"),
        Source::new("shared/b/src/rules_of_names.rs", "a\n"),
        Source::new("tests/c/d.py", "a\nb\n"),
        Source::new("README.md", "a\n"),
    ];
    let sizes = by_crate(&sources);

    let a = Size { files: vec![5, 3, 1], test_lines: 4, code_lines: 5 };
    let b = Size { files: vec![3, 2, 1, 1], test_lines: 3, code_lines: 4 };
    let tests = Size { files: vec![2], test_lines: 2, code_lines: 0 };
    assert_eq!(sizes, BTreeMap::from([("shared/a", a.clone()), ("shared/b", b), ("tests", tests)]));
    assert_eq!(a.median(), 3);
}
