//! Blanking out comments and literals of Rust, so that rules about code see only code.

use std::{iter::Peekable, str::CharIndices};

/// The code with blanks in place of comments, strings and characters. Line breaks stay.
pub(crate) fn code(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let hidden = hidden_len(rest, out.chars().next_back());
        let (visible, blank) = match hidden {
            0 => (first.len_utf8(), 0),
            len => (0, len),
        };
        out.push_str(&rest[..visible]);
        out.extend(rest[..blank].chars().map(|c| if c == '\n' { c } else { ' ' }));
        rest = &rest[visible + blank..];
    }
    out
}

/// How many bytes from the start of `rest` are a comment or a literal; `before` precedes them.
fn hidden_len(rest: &str, before: Option<char>) -> usize {
    if rest.starts_with("//") {
        return rest.find('\n').unwrap_or(rest.len());
    }
    if rest.starts_with("/*") {
        return block_comment_len(rest);
    }
    let is_name = |c: char| c.is_alphanumeric() || c == '_';
    if rest.starts_with('r') && !before.is_some_and(|c| is_name(c) && c != 'b') {
        return raw_string_len(rest);
    }
    if rest.starts_with('"') {
        return quoted_len(rest, '"');
    }
    if rest.starts_with('\'') {
        return character_len(rest);
    }
    0
}

fn block_comment_len(rest: &str) -> usize {
    let (mut depth, mut at) = (0, 0);
    while at < rest.len() {
        let tail = &rest.as_bytes()[at..];
        if tail.starts_with(b"/*") {
            (depth, at) = (depth + 1, at + 2);
        } else if tail.starts_with(b"*/") {
            (depth, at) = (depth - 1, at + 2);
            if depth == 0 {
                return at;
            }
        } else {
            at += 1;
        }
    }
    rest.len()
}

/// Of `r"…"` and `r#"…"#`; 0 where there is none.
fn raw_string_len(rest: &str) -> usize {
    let hashes = rest[1..].bytes().take_while(|byte| *byte == b'#').count();
    let Some(body) = rest[1 + hashes..].strip_prefix('"') else {
        return 0;
    };
    let end = format!("\"{}", "#".repeat(hashes));
    let body_len = body.find(&end).map_or(body.len(), |at| at + end.len());
    2 + hashes + body_len
}

fn quoted_len(rest: &str, quote: char) -> usize {
    let mut characters = rest.char_indices().peekable();
    characters.next();
    while let Some((at, c)) = characters.next() {
        if c == quote {
            return at + 1;
        }
        skip_escaped(c, &mut characters);
    }
    rest.len()
}

fn skip_escaped(c: char, characters: &mut Peekable<CharIndices<'_>>) {
    if c == '\\' {
        characters.next();
    }
}

/// Of a character; 0 for a lifetime.
fn character_len(rest: &str) -> usize {
    let mut inside = rest.chars().skip(1);
    let is_character = match inside.next() {
        Some('\\') => true,
        Some(_) => inside.next() == Some('\''),
        None => false,
    };
    if is_character { quoted_len(rest, '\'') } else { 0 }
}

#[test]
fn comments_and_literals_are_blank_and_code_stays() {
    for (text, wanted) in [
        ("a // b\nc", "a     \nc"),
        ("a /* b /* c */ d */ e", "a                   e"),
        (r#"a("b // \" c", d)"#, "a(           , d)"),
        ("a(r#\"b \" c\"#, d)", "a(          , d)"),
        ("a(b\"c\", br\"d\")", "a(b   , b    )"),
        ("<'a>('b', '\\'', '\"')", "<'a>(   ,     ,    )"),
        ("for r in \"a\nb\" {}", "for r in   \n   {}"),
        ("var\"x\"", "var   "),
    ] {
        assert_eq!(code(text), wanted, "{text}");
        assert_eq!(code(text).chars().count(), text.chars().count(), "{text}");
    }
}
