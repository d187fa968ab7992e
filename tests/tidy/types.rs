//! The rule that a type name is defined once, so that it has one meaning.

use std::collections::BTreeMap;

use proc_macro2::{TokenStream, TokenTree};

use crate::{
    sizes::{is_within, modules_of_tests},
    source::Source,
    tokens::{group, is_word, name},
};

/// The names that several files of the product define, each with those files.
pub(crate) fn defined_twice(sources: &[Source]) -> BTreeMap<String, Vec<&str>> {
    let mut files: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    let only_tests = modules_of_tests(sources);
    let is_test = |source: &Source| only_tests.iter().any(|module| is_within(&source.path, module));
    for source in sources.iter().filter(|source| source.is_product() && !is_test(source)) {
        for name in definitions(source.tokens()) {
            files.entry(name).or_default().push(&source.path);
        }
    }
    files.retain(|_, files| files.len() > 1);
    files
}

/// The types that a file defines, without those of its tests, and without types of traits, which
/// have the name that the trait gives them.
fn definitions(stream: TokenStream) -> Vec<String> {
    let tokens: Vec<TokenTree> = stream.into_iter().collect();
    let mut names = Vec::new();
    for (index, token) in tokens.iter().enumerate() {
        let next = tokens.get(index + 1).and_then(name);
        let is_definition = ["struct", "enum", "union", "trait", "type"];
        if is_definition.iter().any(|keyword| is_word(token, keyword)) {
            names.extend(next.filter(|name| name != "Output" && name != "Error"));
        } else if is_word(token, "mod") && next.is_some_and(|module| module != "tests") {
            let body = tokens.get(index + 2).and_then(group);
            names.extend(body.into_iter().flat_map(|body| definitions(body.stream())));
        }
    }
    names
}

#[test]
fn reports_a_type_defined_twice() {
    let sources = |other: &str| {
        [
            Source::new("shared/a/src/lib.rs", "pub struct One; enum Two {} type Three = u8;"),
            Source::new("services/b/src/c.rs", other),
        ]
    };
    let found = |other: &str| defined_twice(&sources(other)).into_keys().collect::<Vec<_>>();

    let other = "trait Two {} mod d { pub(crate) type One = u8; } struct Three<'a>(&'a u8);";
    assert_eq!(found(other), ["One", "Three", "Two"]);
    for fine in [
        "struct Four; // struct One;",
        "impl A for B { type One = C; }",
        "mod tests { struct One; }",
        "fn f(one: One) {}",
    ] {
        assert_eq!(found(fine), [""; 0], "{fine}");
    }
    let mut in_tests = sources("struct One;");
    in_tests[1].path = "services/b/src/c/tests.rs".to_owned();
    assert!(defined_twice(&in_tests).is_empty());

    let module = Source::new("services/b/src/lib.rs", "#[cfg(test)]\nmod c;\n");
    let [first, second] = sources("struct One;");
    assert!(defined_twice(&[first, second, module]).is_empty());
}
