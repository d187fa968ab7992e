//! The tokens of Rust files, from the lexer that procedural macros use.

use proc_macro2::{Group, TokenStream, TokenTree};

/// The tokens of a stream and those of each group in it, one sequence for each. Comments are left
/// out, also those of documentation, which the lexer turns into attributes.
pub(crate) fn sequences(stream: &TokenStream) -> Vec<Vec<TokenTree>> {
    let (mut open, mut sequences) = (vec![stream.clone()], Vec::new());
    while let Some(stream) = open.pop() {
        let mut sequence: Vec<TokenTree> = Vec::new();
        for token in stream {
            if is_documentation(&token) {
                while sequence.pop_if(|last| is_punct(last, '#') || is_punct(last, '!')).is_some() {
                }
            } else {
                sequence.push(token);
            }
        }
        open.extend(sequence.iter().filter_map(group).map(Group::stream));
        sequences.push(sequence);
    }
    sequences
}

/// The group that a token is.
pub(crate) fn group(token: &TokenTree) -> Option<&Group> {
    if let TokenTree::Group(group) = token { Some(group) } else { None }
}

/// Whether a token is a word, such as a keyword or a name.
pub(crate) fn is_word(token: &TokenTree, word: &str) -> bool {
    matches!(token, TokenTree::Ident(ident) if *ident == word)
}

/// Whether a token is a punctuation mark.
pub(crate) fn is_punct(token: &TokenTree, mark: char) -> bool {
    matches!(token, TokenTree::Punct(punct) if punct.as_char() == mark)
}

/// The name that a token is.
pub(crate) fn name(token: &TokenTree) -> Option<String> {
    if let TokenTree::Ident(ident) = token { Some(ident.to_string()) } else { None }
}

/// The line on which a token begins, counted from 0.
pub(crate) fn line(token: &TokenTree) -> usize {
    token.span().start().line - 1
}

/// Whether a token is the `[doc = "…"]` of a comment.
fn is_documentation(token: &TokenTree) -> bool {
    let first = group(token).and_then(|group| group.stream().into_iter().next());
    first.is_some_and(|first| is_word(&first, "doc"))
}

#[test]
fn comments_are_left_out_and_groups_are_sequences_of_their_own() {
    let text = "//! a\n/// b\nfn c() { // d\n    \"e // f\"; /* g */\n    h!(i);\n}\n";
    let parsed = |text: &str| text.parse::<TokenStream>().unwrap();
    let printed = |sequence: &Vec<TokenTree>| {
        let tokens = sequence.iter().map(ToString::to_string);
        tokens.collect::<Vec<_>>().join(" ")
    };
    let mut found: Vec<_> = sequences(&parsed(text)).iter().map(printed).collect();
    found.sort();

    let body = "\"e // f\" ; h ! (i) ;";
    assert_eq!(found, ["", body, &format!("fn c () {{ {body} }}"), "i"]);
    let lines = sequences(&parsed("a\n\nb")).concat();
    assert_eq!(lines.iter().map(line).collect::<Vec<_>>(), [0, 2]);
}
