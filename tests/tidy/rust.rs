//! Rules on Rust files.

use std::collections::BTreeSet;

use crate::source::{Finding, Source};

const FUNCTION_LINES_MAX: usize = 70;

/// Functions of more than 70 lines, blank lines and comments not counted.
///
/// Relies on the format that `rustfmt` gives: a function ends with a brace in the column where its
/// first line starts. The compiler's own lint does not see functions inside of macros.
pub(crate) fn long_functions(source: &Source) -> Vec<Finding> {
    if !source.is_rust() {
        return Vec::new();
    }
    let code = source.code();
    let lines: Vec<&str> = code.lines().collect();
    let mut findings = Vec::new();
    for (index, _) in lines.iter().enumerate().filter(|(_, line)| starts_function(line)) {
        let length = function_len(&lines[index..]);
        if length > FUNCTION_LINES_MAX {
            let max = FUNCTION_LINES_MAX;
            let what = format!("function is too long: lines=`{length}`, max=`{max}`");
            findings.push(source.finding(index, what));
        }
    }
    findings
}

/// Lines of code in the body of the function that starts with the first line; 0 without a body.
fn function_len(lines: &[&str]) -> usize {
    let indent = |line: &str| line.len() - line.trim_start().len();
    let own = lines.first().map_or(0, |line| indent(line));
    let is_end = |line: &&&str| line.trim_end().ends_with(['{', '}', ';']);
    let signature = lines.iter().take_while(|line| !is_end(line)).count();
    if lines.get(signature).is_none_or(|line| !line.trim_end().ends_with('{')) {
        return 0;
    }
    let rest = lines.iter().skip(signature + 1).map(|line| line.trim_end());
    let body = rest.take_while(|line| indent(line) != own || !line.trim_start().starts_with('}'));
    body.filter(|line| !line.is_empty()).count()
}

fn starts_function(line: &str) -> bool {
    let mut words = line.split_whitespace();
    let is_before = |word: &&str| {
        word.starts_with("pub") || matches!(*word, "async" | "const" | "unsafe" | "extern")
    };
    words.find(|word| !is_before(word)) == Some("fn")
}

/// Tests that do not run.
pub(crate) fn ignored_tests(source: &Source) -> Vec<Finding> {
    code_lines(source, |line| line.contains("#[ignore"), "a test that does not run")
}

/// Prints that someone forgot.
pub(crate) fn debug_prints(source: &Source) -> Vec<Finding> {
    code_lines(source, |line| line.contains("dbg!("), "a print for debugging")
}

/// A comparison as a statement, which asserts nothing and compiles.
pub(crate) fn bare_matches(source: &Source) -> Vec<Finding> {
    if !source.is_rust() {
        return Vec::new();
    }
    let code = source.code();
    let mut findings = Vec::new();
    for (at, call) in code.match_indices("matches!(") {
        let before = code[..at].trim_end();
        let is_statement = before.is_empty() || before.ends_with([';', '{', '}']);
        let after = after_parentheses(&code[at + call.len()..]);
        if is_statement && after.trim_start().starts_with(';') {
            let index = code[..at].matches('\n').count();
            findings.push(source.finding(index, "the outcome of `matches!` is thrown away"));
        }
    }
    findings
}

/// What follows the parenthesis that closes the one opened before `text`.
fn after_parentheses(text: &str) -> &str {
    let mut depth = 1;
    for (at, c) in text.char_indices() {
        match c {
            '(' => depth += 1,
            ')' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return &text[at + 1..];
        }
    }
    ""
}

/// Files without a comment on what they are for. A file `tests.rs` belongs to the file it tests.
pub(crate) fn missing_docs(source: &Source) -> Vec<Finding> {
    let first = source.text.lines().find(|line| !line.is_empty());
    let is_documented = first.is_none_or(|line| line.starts_with("//! "));
    if !source.is_rust() || source.file_name() == "tests.rs" || is_documented {
        return Vec::new();
    }
    vec![source.finding(0, "the file does not begin with what it is for")]
}

/// Files that no other file of their crate names as a module, so that they are not compiled.
pub(crate) fn orphans(sources: &[Source]) -> Vec<Finding> {
    let manifests = || sources.iter().filter(|source| source.file_name() == "Cargo.toml");
    let crates: Vec<&str> = manifests().map(|manifest| folder(&manifest.path)).collect();
    // The innermost crate that has the file.
    let crate_of = |path: &str| {
        let around = crates.iter().filter(|folder| path.starts_with(**folder));
        around.max_by_key(|folder| folder.len()).copied().unwrap_or_default()
    };
    let rust = || sources.iter().filter(|source| source.is_rust());
    let named: BTreeSet<(&str, String)> = rust()
        .flat_map(|source| modules(source).into_iter().map(|name| (crate_of(&source.path), name)))
        .collect();
    let targets: BTreeSet<String> = manifests().flat_map(target_paths).collect();
    let is_known = |source: &&Source| {
        let folder = folder(&source.path).trim_end_matches('/');
        let name = match source.file_name() {
            "lib.rs" | "main.rs" | "build.rs" => return true,
            "mod.rs" => folder.rsplit('/').next().unwrap_or_default(),
            name => name.trim_end_matches(".rs"),
        };
        targets.contains(&source.path)
            || folder.ends_with("/benches")
            || named.contains(&(crate_of(&source.path), name.to_owned()))
    };
    rust()
        .filter(|source| !is_known(source))
        .map(|source| source.finding(0, "no file of the crate has this one as a module"))
        .collect()
}

/// The files that a manifest names.
fn target_paths(manifest: &Source) -> Vec<String> {
    let paths = manifest.text.lines().filter_map(|line| line.trim().strip_prefix("path = \""));
    let paths = paths.map(|path| path.trim_end_matches('"'));
    paths.map(|path| format!("{}{path}", folder(&manifest.path))).collect()
}

/// The names of the modules that a file takes from other files.
fn modules(source: &Source) -> Vec<String> {
    let module = |line: &str| {
        let name = line.trim().strip_suffix(';')?.split_once("mod ")?.1.to_owned();
        name.chars().all(|c| c.is_alphanumeric() || c == '_').then_some(name)
    };
    source.code().lines().filter_map(module).collect()
}

fn folder(path: &str) -> &str {
    path.rfind('/').map_or("", |at| &path[..=at])
}

fn code_lines(source: &Source, bad: impl Fn(&str) -> bool, what: &str) -> Vec<Finding> {
    if !source.is_rust() {
        return Vec::new();
    }
    let code = source.code();
    let lines = code.lines().enumerate().filter(|(_, line)| bad(line));
    lines.map(|(index, _)| source.finding(index, what)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rust(text: &str) -> Source {
        Source::new("a/src/b.rs", text)
    }

    #[test]
    fn a_function_past_the_bound_is_found_wherever_it_stands() {
        let function = |indent: &str, first_line: &str, lines: usize| {
            let body = format!("{indent}    a();\n").repeat(lines);
            let other = format!("{indent}fn g() {{\n{indent}}}\n");
            rust(&format!("{indent}{first_line}\n{body}\n// c\n{indent}}}\n{other}"))
        };

        for indent in ["", "    "] {
            let short = format!("pub(crate) async fn f(\n{indent}    a: u8,\n{indent}) {{");
            for first_line in ["fn f() {", "const unsafe fn f() -> [u8; 4] {", &short] {
                assert_eq!(long_functions(&function(indent, first_line, 70)), []);
                assert_eq!(long_functions(&function(indent, first_line, 71)).len(), 1);
            }
        }
        let declared = format!("    fn f(\n        &self,\n    );\n{}", "    a();\n".repeat(80));
        assert_eq!(long_functions(&rust(&declared)), []);
    }

    #[test]
    fn a_test_that_is_ignored_is_found() {
        assert_eq!(ignored_tests(&rust("#[test]\n    #[ignore = \"slow\"]")).len(), 1);
        assert_eq!(ignored_tests(&rust("// #[ignore]\nlet a = \"#[ignore]\";")), []);
    }

    #[test]
    fn a_print_for_debugging_is_found() {
        assert_eq!(debug_prints(&rust("let a = dbg!(b);")).len(), 1);
        assert_eq!(debug_prints(&rust("// dbg!(b)")), []);
    }

    #[test]
    fn a_comparison_that_is_thrown_away_is_found() {
        for bare in [
            "fn f() {\n    matches!(a, Some(_));\n}",
            "let a = 1;\n    matches!(\n        a,\n        Some(b) if (b > 1)\n    );",
        ] {
            assert_eq!(bare_matches(&rust(bare)).len(), 1, "{bare}");
        }
        for used in [
            "assert!(matches!(a, Some(_)));",
            "fn f() -> bool {\n    matches!(a, Some(_))\n}",
            "let b =\n    matches!(a, Some(_));",
            "// matches!(a, b);",
        ] {
            assert_eq!(bare_matches(&rust(used)), [], "{used}");
        }
    }

    #[test]
    fn a_file_without_its_purpose_is_found() {
        assert_eq!(missing_docs(&rust("use std::fmt;")).len(), 1);
        assert_eq!(missing_docs(&rust("// Not a doc comment.")).len(), 1);
        assert_eq!(missing_docs(&rust("//! What it is for.")), []);
        assert_eq!(missing_docs(&Source::new("a/src/b/tests.rs", "use super::*;")), []);
    }

    #[test]
    fn a_file_that_is_no_module_is_found() {
        let crate_of = |modules: &str| {
            vec![
                Source::new("a/Cargo.toml", "[[test]]\npath = \"it/main.rs\"\n"),
                Source::new("a/src/lib.rs", modules),
                Source::new("a/src/b.rs", "pub(crate) mod c;"),
                Source::new("a/src/b/c.rs", ""),
                Source::new("a/src/d/mod.rs", "mod e;"),
                Source::new("a/src/d/e.rs", ""),
            ]
        };

        assert_eq!(orphans(&crate_of("mod b;\npub mod d;")), []);
        let found = orphans(&crate_of("mod b;\n// mod d;"));
        assert_eq!(found.len(), 1);
        assert!(found[0].to_string().starts_with("a/src/d/mod.rs:"), "{found:?}");
    }
}
