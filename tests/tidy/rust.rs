//! Rules on Rust files.

use std::collections::BTreeSet;

use proc_macro2::{Delimiter, TokenTree};

use crate::{
    source::{Finding, Source},
    tokens::{group, is_punct, is_word, line, name, sequences},
};

const FUNCTION_LINES_MAX: usize = 70;

/// Functions of more than 70 lines, blank lines and comments not counted, also inside of macros,
/// where the compiler's own lint does not look.
pub(crate) fn long_functions(source: &Source) -> Vec<Finding> {
    in_sequences(source, "fn ", |tokens| {
        let length = function_len(tokens).filter(|length| *length > FUNCTION_LINES_MAX)?;
        let max = FUNCTION_LINES_MAX;
        Some(format!("function is too long: lines=`{length}`, max=`{max}`"))
    })
}

/// Lines of code in the body of the function that begins here.
fn function_len(tokens: &[TokenTree]) -> Option<usize> {
    let [keyword, TokenTree::Ident(_), rest @ ..] = tokens else { return None };
    if !is_word(keyword, "fn") {
        return None;
    }
    let signature = rest.iter().take_while(|token| !is_punct(token, ';'));
    let mut groups = signature.filter_map(group);
    let body = groups.find(|group| group.delimiter() == Delimiter::Brace)?;
    let mut lines = BTreeSet::new();
    for token in sequences(&body.stream()).iter().flatten() {
        lines.extend([token.span().start().line, token.span().end().line]);
    }
    Some(lines.len())
}

/// Tests that do not run.
pub(crate) fn ignored_tests(source: &Source) -> Vec<Finding> {
    in_sequences(source, "ignore", |tokens| {
        let [mark, attribute, ..] = tokens else { return None };
        let first = group(attribute)?.stream().into_iter().next()?;
        let is_ignored = is_punct(mark, '#') && is_word(&first, "ignore");
        is_ignored.then(|| "a test that does not run".to_owned())
    })
}

/// Debug prints.
pub(crate) fn debug_prints(source: &Source) -> Vec<Finding> {
    in_sequences(source, "dbg", |tokens| {
        let [macro_name, mark, ..] = tokens else { return None };
        let is_debug = is_word(macro_name, "dbg") && is_punct(mark, '!');
        is_debug.then(|| "a print for debugging".to_owned())
    })
}

/// A comparison as a statement, which asserts nothing and compiles.
pub(crate) fn bare_matches(source: &Source) -> Vec<Finding> {
    if !source.is_rust() || !source.text.contains("matches!") {
        return Vec::new();
    }
    let mut findings = Vec::new();
    for tokens in sequences(&source.tokens()) {
        for (index, token) in tokens.iter().enumerate() {
            let before = index.checked_sub(1).and_then(|index| tokens.get(index));
            let begins = before.is_none_or(ends_statement);
            let [mark, _, end] = tokens.get(index + 1..index + 4).unwrap_or_default() else {
                continue;
            };
            let is_thrown_away = is_punct(mark, '!') && is_punct(end, ';');
            if begins && is_word(token, "matches") && is_thrown_away {
                findings.push(source.finding(line(token), "the outcome of `matches!` is unused"));
            }
        }
    }
    findings
}

fn ends_statement(token: &TokenTree) -> bool {
    is_punct(token, ';') || group(token).is_some_and(|it| it.delimiter() == Delimiter::Brace)
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
    let is_declared = |source: &&Source| {
        let folder = folder(&source.path).trim_end_matches('/');
        let name = match source.file_name() {
            "lib.rs" | "main.rs" | "build.rs" => return true,
            name => name.trim_end_matches(".rs"),
        };
        targets.contains(&source.path)
            || folder.ends_with("/benches")
            || named.contains(&(crate_of(&source.path), name.to_owned()))
    };
    rust()
        .filter(|source| !is_declared(source))
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
    let module = |tokens: &[TokenTree]| match tokens {
        [keyword, module, end] if is_word(keyword, "mod") && is_punct(end, ';') => name(module),
        _ => None,
    };
    let sequences = sequences(&source.tokens());
    sequences.iter().flat_map(|tokens| tokens.windows(3).filter_map(module)).collect()
}

fn folder(path: &str) -> &str {
    path.rfind('/').map_or("", |at| &path[..=at])
}

/// Runs a rule at every token of a Rust file, with those that follow in the same group. Files that do
/// not contain a text, which each finding does, are left out: it is faster than the lexer.
pub(crate) fn in_sequences(
    source: &Source,
    text: &str,
    rule: impl Fn(&[TokenTree]) -> Option<String>,
) -> Vec<Finding> {
    if !source.is_rust() || !source.text.contains(text) {
        return Vec::new();
    }
    let mut findings = Vec::new();
    for tokens in sequences(&source.tokens()) {
        for (index, token) in tokens.iter().enumerate() {
            if let Some(what) = tokens.get(index..).and_then(&rule) {
                findings.push(source.finding(line(token), what));
            }
        }
    }
    findings
}

/// A module whose file is not named like it: one style, so that a search for a name finds its file.
pub(crate) fn unnamed_modules(source: &Source) -> Vec<Finding> {
    let is_unnamed = source.file_name() == "mod.rs";
    let found = is_unnamed.then(|| source.finding(0, "name the file of a module like the module"));
    found.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rust(text: &str) -> Source {
        Source::new("a/src/b.rs", text)
    }

    #[test]
    fn reports_a_long_function() {
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
    fn reports_an_ignored_test() {
        assert_eq!(ignored_tests(&rust("#[test]\n    #[ignore = \"slow\"]")).len(), 1);
        assert_eq!(ignored_tests(&rust("// #[ignore]\nlet a = \"#[ignore]\";")), []);
    }

    #[test]
    fn reports_a_debug_print() {
        assert_eq!(debug_prints(&rust("let a = dbg!(b);")).len(), 1);
        assert_eq!(debug_prints(&rust("// dbg!(b)")), []);
    }

    #[test]
    fn reports_an_unused_matches() {
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
    fn reports_a_file_without_a_purpose_comment() {
        assert_eq!(missing_docs(&rust("use std::fmt;")).len(), 1);
        assert_eq!(missing_docs(&rust("// Not a doc comment.")).len(), 1);
        assert_eq!(missing_docs(&rust("//! What it is for.")), []);
        assert_eq!(missing_docs(&Source::new("a/src/b/tests.rs", "use super::*;")), []);
    }

    #[test]
    fn reports_a_module_whose_file_has_no_name() {
        for (path, findings) in [("a/src/b/mod.rs", 1), ("a/src/b.rs", 0), ("a/src/b/c.rs", 0)] {
            assert_eq!(unnamed_modules(&Source::new(path, "")).len(), findings, "{path}");
        }
    }

    #[test]
    fn reports_an_orphan_file() {
        let crate_of = |modules: &str| {
            vec![
                Source::new("a/Cargo.toml", "[[test]]\npath = \"it/main.rs\"\n"),
                Source::new("a/src/lib.rs", modules),
                Source::new("a/src/b.rs", "pub(crate) mod c;"),
                Source::new("a/src/b/c.rs", ""),
                Source::new("a/src/d.rs", "mod e;"),
                Source::new("a/src/d/e.rs", ""),
            ]
        };

        assert_eq!(orphans(&crate_of("mod b;\npub mod d;")), []);
        let found = orphans(&crate_of("mod b;\n// mod d;"));
        assert_eq!(found.len(), 1);
        assert!(found[0].to_string().starts_with("a/src/d.rs:"), "{found:?}");
    }
}
