//! Splits a filter into tokens, one at a time, each with its position in the text.

use std::str::FromStr;

use bytes::Bytes;
use trestle_model::edm::{datetime, is_guid};
use trestle_model::fault::quoted;
use trestle_model::time::Ticks;
use uuid::Uuid;

use crate::{
    Literal,
    dialect::is_key_part,
    name::{is_name_part, is_name_start, shown},
};

/// A syntax error, and the byte of the filter where it ends: Azure reports the end of the faulty token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SyntaxError {
    pub(crate) position: usize,
    pub(crate) message: String,
}

impl SyntaxError {
    pub(crate) fn new(position: usize, message: impl Into<String>) -> Self {
        Self { position, message: message.into() }
    }
}

/// A token and the byte where it ends.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct LexToken<'a> {
    pub(crate) end: usize,
    pub(crate) kind: TokenKind<'a>,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum TokenKind<'a> {
    Open,
    Close,
    /// Only where the language has paths and functions.
    Comma,
    /// A name, an operator, `and`, `or`, `not`, `true`, `false` or `null`: the parser distinguishes them.
    Word(&'a str),
    /// A name and the key after its slash.
    Path(&'a str, String),
    Literal(Literal),
    End,
}

impl TokenKind<'_> {
    /// For error texts.
    pub(crate) fn describe(&self) -> String {
        match self {
            Self::Open => "`(`".to_owned(),
            Self::Close => "`)`".to_owned(),
            Self::Comma => "`,`".to_owned(),
            Self::Word(word) => format!("`{}`", quoted(word)),
            Self::Path(name, key) => format!("`{name}/{}`", quoted(key)),
            Self::Literal(literal) => format!("`{}`", quoted(&literal.to_string())),
            Self::End => "the end of the filter".to_owned(),
        }
    }
}

/// The remaining text of a filter.
#[derive(Debug)]
pub(crate) struct Lexer<'a> {
    rest: &'a str,
    position: usize,
    /// Whether names may have keys, and commas separate arguments.
    has_paths: bool,
}

impl<'a> Lexer<'a> {
    pub(crate) fn new(text: &'a str, has_paths: bool) -> Self {
        Self { rest: text, position: 0, has_paths }
    }

    /// The next token; `End` from the end on.
    pub(crate) fn next(&mut self) -> Result<LexToken<'a>, SyntaxError> {
        let blanks = self.rest.len() - self.rest.trim_start_matches(is_blank).len();
        self.skip(blanks);
        let Some(first) = self.rest.chars().next() else {
            return Ok(LexToken { end: self.position, kind: TokenKind::End });
        };
        let kind = match first {
            '(' => self.symbol(TokenKind::Open),
            ')' => self.symbol(TokenKind::Close),
            ',' if self.has_paths => self.symbol(TokenKind::Comma),
            '\'' => TokenKind::Literal(Literal::String(self.string()?)),
            '-' | '0'..='9' => TokenKind::Literal(self.number()?),
            c if is_name_start(c) => self.word()?,
            c => return Err(self.error(unexpected(c))),
        };
        Ok(LexToken { end: self.position, kind })
    }

    /// Whether `(` follows at once, as after the name of a function.
    pub(crate) fn at_open(&self) -> bool {
        self.rest.trim_start_matches(is_blank).starts_with('(')
    }

    fn error(&self, message: impl Into<String>) -> SyntaxError {
        SyntaxError::new(self.position, message)
    }

    fn skip(&mut self, bytes: usize) -> &'a str {
        let (lexeme, rest) = self.rest.split_at_checked(bytes).unwrap_or((self.rest, ""));
        self.rest = rest;
        self.position += lexeme.len();
        lexeme
    }

    fn symbol(&mut self, kind: TokenKind<'a>) -> TokenKind<'a> {
        self.skip(1);
        kind
    }

    fn word(&mut self) -> Result<TokenKind<'a>, SyntaxError> {
        let len = self.rest.find(|c| !is_name_part(c)).unwrap_or(self.rest.len());
        let word = self.skip(len);
        if self.has_paths && self.rest.starts_with('/') {
            self.skip(1);
            return Ok(TokenKind::Path(word, self.key()?));
        }
        if !self.rest.starts_with('\'') || !matches!(word, "datetime" | "guid" | "X" | "binary") {
            return Ok(TokenKind::Word(word));
        }
        let text = self.string()?;
        let (literal, form) = match word {
            "datetime" => (
                self.datetime(&text).map(Literal::DateTime),
                "datetime'YYYY-MM-DDThh:mm:ss[.fffffff]Z', or ±hh:mm for the Z",
            ),
            "guid" => (parse_guid(&text).map(Literal::Guid), "guid'8-4-4-4-12 hex digits'"),
            _ => (parse_hex(&text).map(Literal::Binary), "X'pairs of hex digits'"),
        };
        literal
            .map(TokenKind::Literal)
            .ok_or_else(|| self.error(format!("Expected {form}, found `{}`", quoted(&text))))
    }

    /// A time. Values of tables have ticks, so that digits below are cut off of both; records of logs have nanoseconds,
    /// with which such a literal would not be equal.
    fn datetime(&self, text: &str) -> Option<Ticks> {
        let parse = if self.has_paths { datetime::parse_exact } else { datetime::parse };
        let time = parse(text)?;
        Ticks::from_unix(time.seconds, time.nanos)
    }

    /// The key of a path, in quotes or without.
    fn key(&mut self) -> Result<String, SyntaxError> {
        if self.rest.starts_with('\'') {
            return self.string();
        }
        let len = self.rest.find(|c| !is_key_part(c)).unwrap_or(self.rest.len());
        if len == 0 {
            return Err(self.error("Expected a key after `/`; one with other characters is quoted"));
        }
        Ok(self.skip(len).to_owned())
    }

    /// A quoted text; two quotes inside it are an escaped one.
    fn string(&mut self) -> Result<String, SyntaxError> {
        let mut text = String::new();
        self.skip(1);
        loop {
            let Some(len) = self.rest.find('\'') else {
                self.skip(self.rest.len());
                return Err(self.error("Text has no closing quote"));
            };
            text.push_str(self.skip(len));
            self.skip(1);
            if !self.rest.starts_with('\'') {
                return Ok(text);
            }
            text.push('\'');
            self.skip(1);
        }
    }

    fn number(&mut self) -> Result<Literal, SyntaxError> {
        // Everything that could belong to a number, so that an error shows the whole of a malformed one.
        let mut last = ' ';
        let part = |c: char| {
            let sign = matches!(c, '+' | '-') && matches!(last, ' ' | 'e' | 'E');
            last = c;
            sign || c == '.' || is_name_part(c)
        };
        let len = self.rest.find(negate(part)).unwrap_or(self.rest.len());
        let text = self.skip(len);
        parse_number(text).map_err(|message| self.error(message))
    }
}

fn negate(mut test: impl FnMut(char) -> bool) -> impl FnMut(char) -> bool {
    move |c| !test(c)
}

fn is_blank(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\r' | '\n')
}

fn unexpected(c: char) -> String {
    let hint = match c {
        '=' => "; equality is written `eq`",
        '!' => "; inequality is written `ne`, negation `not`",
        '<' => "; write `lt` or `le`",
        '>' => "; write `gt` or `ge`",
        '"' => "; text is written in single quotes",
        '&' => "; write `and`",
        '|' => "; write `or`",
        _ => "",
    };
    format!("Unexpected character `{}`{hint}", shown(c))
}

fn parse_number(text: &str) -> Result<Literal, String> {
    let malformed = || format!("Malformed number `{}`", quoted(text));
    if let Some(digits) = text.strip_suffix('L') {
        let number = whole(digits).ok_or_else(malformed)?;
        return number.map(Literal::Int64).ok_or_else(|| too_large("64 bits", text));
    }
    if let Some(number) = whole(text) {
        let number: i64 = number.ok_or_else(|| too_large("64 bits", text))?;
        let needs = "32 bits; longer ones end in `L`";
        let short: Option<i32> = number.try_into().ok();
        return short.map(Literal::Int32).ok_or_else(|| too_large(needs, text));
    }
    if !is_double(text) {
        return Err(malformed());
    }
    let number: f64 = text.parse().map_err(|_| malformed())?;
    if number.is_finite() { Ok(Literal::Double(number)) } else { Err(too_large("a double", text)) }
}

fn too_large(kind: &str, text: &str) -> String {
    format!("Number `{}` is out of the range of {kind}", quoted(text))
}

/// None when this is not `[-]digits`; then none when it is out of range.
fn whole(text: &str) -> Option<Option<i64>> {
    is_digits(text.strip_prefix('-').unwrap_or(text)).then(|| i64::from_str(text).ok())
}

/// Whether this is `[-]digits`, then a fraction, an exponent or both.
fn is_double(text: &str) -> bool {
    let text = text.strip_prefix('-').unwrap_or(text);
    let (mantissa, exponent) = match text.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent)),
        None => (text, None),
    };
    let exponent_is_legal = exponent
        .is_none_or(|exponent| is_digits(exponent.strip_prefix(['+', '-']).unwrap_or(exponent)));
    let mantissa_is_legal = match mantissa.split_once('.') {
        Some((whole, fraction)) => is_digits(whole) && is_digits(fraction),
        None => is_digits(mantissa) && exponent.is_some(),
    };
    exponent_is_legal && mantissa_is_legal
}

fn is_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

fn parse_guid(text: &str) -> Option<Uuid> {
    if is_guid(text) { Uuid::try_parse(text).ok() } else { None }
}

fn parse_hex(text: &str) -> Option<Bytes> {
    let (pairs, []) = text.as_bytes().as_chunks::<2>() else {
        return None;
    };
    let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    pairs.iter().map(|[high, low]| Some(digit(*high)? << 4 | digit(*low)?)).collect()
}
