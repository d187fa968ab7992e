//! How large the crates are: lines of files, and lines of tests beside lines of the product.

use std::collections::BTreeMap;

use crate::source::Source;

/// Fewest lines of tests for each 100 lines of the product, in the repository.
pub(crate) const TEST_PERCENT_MIN: usize = 100;

/// The Rust of a crate.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct Size {
    /// Lines of each file.
    files: Vec<usize>,
    /// Lines of tests, which may stand beside the code in the same file.
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
    for source in sources.iter().filter(|source| source.is_script() || source.is_rust()) {
        let size = sizes.entry(crate_of(&source.path)).or_default();
        let lines = source.text.lines().count();
        let test_lines = if source.is_test() { lines } else { lines_of_inner_tests(&source.text) };
        size.test_lines += test_lines;
        size.code_lines += lines - test_lines;
        size.files.push(lines);
    }
    sizes
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
        Source::new("tests/c/d.py", "a\nb\n"),
        Source::new("README.md", "a\n"),
    ];
    let sizes = by_crate(&sources);

    let a = Size { files: vec![5, 3, 1], test_lines: 4, code_lines: 5 };
    let tests = Size { files: vec![2], test_lines: 2, code_lines: 0 };
    assert_eq!(sizes, BTreeMap::from([("shared/a", a.clone()), ("tests", tests)]));
    assert_eq!(a.median(), 3);
}
