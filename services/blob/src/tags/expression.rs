//! Expressions on tags: `"key" = 'value'`, joined by `AND`, and in conditions by `OR`, with parentheses. Values are
//! compared as texts.

#[cfg(test)]
mod tests;
#[cfg(test)]
mod text_tests;

use super::{KEY_CHARS_MAX, VALUE_CHARS_MAX, is_allowed};

/// Longest expression, in bytes.
pub(crate) const EXPRESSION_BYTES_MAX: usize = 4096;
/// Most parentheses within each other.
const DEPTH_MAX: usize = 32;
/// In a filter, the container.
const CONTAINER: &str = "@container";

/// How a value is compared with a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Comparator {
    /// `=`
    Equal,
    /// `<>`
    NotEqual,
    /// `>`
    Greater,
    /// `>=`
    GreaterOrEqual,
    /// `<`
    Less,
    /// `<=`
    LessOrEqual,
}

/// A comparison of the value of a tag.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TagComparison {
    /// The key of the tag.
    pub key: String,
    /// How its value is compared.
    pub comparator: Comparator,
    /// With which text.
    pub value: String,
}

/// A condition on the tags of a blob.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TagCondition {
    /// A comparison; false where there is no tag with the key.
    Compare(TagComparison),
    /// All of them.
    All(Vec<TagCondition>),
    /// Any of them.
    Any(Vec<TagCondition>),
}

/// Which blobs are found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TagFilter {
    /// The container, if one is named.
    pub container: Option<String>,
    /// All of these, of which there is at least one.
    pub comparisons: Vec<TagComparison>,
}

/// Why a text is not an expression.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{rule}: position=`{position}`")]
pub struct ExpressionError {
    /// Where in the text, in bytes.
    pub position: usize,
    /// The violated rule.
    pub rule: &'static str,
}

impl Comparator {
    fn holds(self, found: &str, value: &str) -> bool {
        match self {
            Self::Equal => found == value,
            Self::NotEqual => found != value,
            Self::Greater => found > value,
            Self::GreaterOrEqual => found >= value,
            Self::Less => found < value,
            Self::LessOrEqual => found <= value,
        }
    }
}

impl TagComparison {
    /// Whether it is true of these tags.
    #[must_use]
    pub fn holds(&self, tags: &[(String, String)]) -> bool {
        let found = tags.iter().find(|(key, _)| *key == self.key);
        found.is_some_and(|(_, found)| self.comparator.holds(found, &self.value))
    }
}

impl TagCondition {
    /// The condition in a text.
    ///
    /// # Errors
    /// [`ExpressionError`].
    pub fn parse(text: &str) -> Result<Self, ExpressionError> {
        let mut parser = ExpressionParser::new(text)?;
        let condition = parser.any(0)?;
        parser.end("must be AND, OR or the end")?;
        Ok(condition)
    }

    /// Whether it is true of these tags.
    #[must_use]
    pub fn holds(&self, tags: &[(String, String)]) -> bool {
        match self {
            Self::Compare(comparison) => comparison.holds(tags),
            Self::All(parts) => parts.iter().all(|part| part.holds(tags)),
            Self::Any(parts) => parts.iter().any(|part| part.holds(tags)),
        }
    }
}

impl TagFilter {
    /// The filter in a text: comparisons other than `<>`, joined by `AND`.
    ///
    /// # Errors
    /// [`ExpressionError`].
    pub fn parse(text: &str) -> Result<Self, ExpressionError> {
        let mut parser = ExpressionParser::new(text)?;
        let mut filter = Self { container: None, comparisons: Vec::new() };
        loop {
            let position = parser.position();
            let comparison = parser.comparison(true)?;
            let error = |rule| Err(ExpressionError { position, rule });
            match comparison {
                TagComparison { key, comparator, value } if key == CONTAINER => {
                    if comparator != Comparator::Equal || filter.container.is_some() {
                        return error("@container must be compared by `=`, once");
                    }
                    filter.container = Some(value);
                }
                TagComparison { comparator: Comparator::NotEqual, .. } => {
                    return error("`<>` is for conditions");
                }
                comparison => filter.comparisons.push(comparison),
            }
            if !parser.keyword("AND") {
                break;
            }
        }
        parser.end("must be AND or the end")?;
        match filter.comparisons.is_empty() {
            true => Err(ExpressionError { position: 0, rule: "must compare a tag" }),
            false => Ok(filter),
        }
    }

    /// Whether blobs with these tags are found.
    #[must_use]
    pub fn holds(&self, tags: &[(String, String)]) -> bool {
        self.comparisons.iter().all(|comparison| comparison.holds(tags))
    }
}

/// Reads a text from its start to its end.
struct ExpressionParser<'a> {
    text: &'a str,
    rest: &'a str,
}

impl<'a> ExpressionParser<'a> {
    fn new(text: &'a str) -> Result<Self, ExpressionError> {
        if text.len() > EXPRESSION_BYTES_MAX {
            let rule = "must have at most 4096 bytes";
            return Err(ExpressionError { position: EXPRESSION_BYTES_MAX, rule });
        }
        Ok(Self { text, rest: text })
    }

    fn skip_spaces(&mut self) {
        self.rest = self.rest.trim_start_matches(|it: char| it.is_ascii_whitespace());
    }

    /// Where the next token begins.
    fn position(&mut self) -> usize {
        self.skip_spaces();
        self.text.len() - self.rest.len()
    }

    fn error<T>(&mut self, rule: &'static str) -> Result<T, ExpressionError> {
        Err(ExpressionError { position: self.position(), rule })
    }

    fn end(&mut self, rule: &'static str) -> Result<(), ExpressionError> {
        self.skip_spaces();
        if self.rest.is_empty() { Ok(()) } else { self.error(rule) }
    }

    fn symbol(&mut self, symbol: &str) -> bool {
        self.skip_spaces();
        let rest = self.rest.strip_prefix(symbol);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    fn keyword(&mut self, keyword: &str) -> bool {
        self.skip_spaces();
        let is_word = |it: char| it.is_ascii_alphanumeric() || it == '_';
        let word = self.rest.get(..keyword.len()).unwrap_or_default();
        let after = self.rest.get(keyword.len()..).unwrap_or_default();
        let is_found = word.eq_ignore_ascii_case(keyword) && !after.starts_with(is_word);
        if is_found {
            self.rest = after;
        }
        is_found
    }

    fn any(&mut self, depth: usize) -> Result<TagCondition, ExpressionError> {
        let mut parts = vec![self.all(depth)?];
        while self.keyword("OR") {
            parts.push(self.all(depth)?);
        }
        Ok(joined(parts, TagCondition::Any))
    }

    fn all(&mut self, depth: usize) -> Result<TagCondition, ExpressionError> {
        let mut parts = vec![self.part(depth)?];
        while self.keyword("AND") {
            parts.push(self.part(depth)?);
        }
        Ok(joined(parts, TagCondition::All))
    }

    fn part(&mut self, depth: usize) -> Result<TagCondition, ExpressionError> {
        if !self.symbol("(") {
            return self.comparison(false).map(TagCondition::Compare);
        }
        if depth == DEPTH_MAX {
            return self.error("must have at most 32 parentheses within each other");
        }
        let condition = self.any(depth + 1)?;
        if self.symbol(")") { Ok(condition) } else { self.error("must be AND, OR or `)`") }
    }

    fn comparison(&mut self, is_filter: bool) -> Result<TagComparison, ExpressionError> {
        let key = match is_filter && self.symbol(CONTAINER) {
            true => CONTAINER.to_owned(),
            false => self.key()?,
        };
        let comparator = self.comparator(is_filter)?;
        Ok(TagComparison { key, comparator, value: self.value()? })
    }

    fn comparator(&mut self, is_filter: bool) -> Result<Comparator, ExpressionError> {
        for (symbol, comparator) in [
            ("<>", Comparator::NotEqual),
            (">=", Comparator::GreaterOrEqual),
            ("<=", Comparator::LessOrEqual),
            (">", Comparator::Greater),
            ("<", Comparator::Less),
            ("=", Comparator::Equal),
        ] {
            if self.symbol(symbol) {
                return Ok(comparator);
            }
        }
        self.error(match is_filter {
            true => "must be one of = > >= < <=",
            false => "must be one of = <> > >= < <=",
        })
    }

    /// A key in double quotes, or one of letters, digits and `_` without.
    fn key(&mut self) -> Result<String, ExpressionError> {
        let rule = "must be the key of a tag, such as \"key\": 1 to 128 letters, digits, spaces and \
                    + - . / : = _";
        let position = self.position();
        let key = match self.quoted('"')? {
            Some(key) => key,
            None => {
                let is_other = |it: char| !(it.is_ascii_alphanumeric() || it == '_');
                let end = self.rest.find(is_other).unwrap_or(self.rest.len());
                let (key, rest) = self.rest.split_at(end);
                self.rest = rest;
                key
            }
        };
        let is_key = !key.is_empty() && key.len() <= KEY_CHARS_MAX && key.chars().all(is_allowed);
        if is_key { Ok(key.to_owned()) } else { Err(ExpressionError { position, rule }) }
    }

    fn value(&mut self) -> Result<String, ExpressionError> {
        let rule = "must be the value of a tag, in single quotes: at most 256 letters, digits, spaces \
                    and + - . / : = _";
        let position = self.position();
        let value = self.quoted('\'')?.filter(|value| {
            value.len() <= VALUE_CHARS_MAX && value.chars().all(|it| is_allowed(it) || it == '$')
        });
        value.map(str::to_owned).ok_or(ExpressionError { position, rule })
    }

    /// A text in these quotes, if it begins with one.
    fn quoted(&mut self, quote: char) -> Result<Option<&'a str>, ExpressionError> {
        self.skip_spaces();
        let Some(rest) = self.rest.strip_prefix(quote) else { return Ok(None) };
        let Some((text, rest)) = rest.split_once(quote) else {
            return self.error("must have a quote at its end");
        };
        self.rest = rest;
        Ok(Some(text))
    }
}

/// One part as it is, or all of them together.
fn joined(
    mut parts: Vec<TagCondition>,
    join: fn(Vec<TagCondition>) -> TagCondition,
) -> TagCondition {
    match parts.len() {
        1 => parts.remove(0),
        _ => join(parts),
    }
}
