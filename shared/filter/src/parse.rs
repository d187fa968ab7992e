//! The parser of the grammar
//!
//! ```text
//! or         = and { "or" and }
//! and        = unary { "and" unary }
//! unary      = [ "not" ] primary
//! primary    = "(" or ")" | comparison | call | property | boolean
//! comparison = property op literal | literal op property
//! call       = function "(" property "," text ")"
//! ```
//!
//! `not` binds looser than a comparison: `not a eq 1` is `not (a eq 1)`. A property alone is
//! `property eq true`. A comparison with the literal on the left is mirrored. Nothing recurses:
//! open groups are on a stack of their own. What bounds a filter is its bytes; the tree, which is
//! walked by recursion, is bounded too, by `limits::FILTER_NESTING_MAX`, but parentheses alone, a
//! `not` of a `not`, and an `or` in an `or` do not make it deeper.

use std::marker::PhantomData;

use trestle_model::limits;

use crate::{
    Dialect, Expr, FilterError, FilterPath, Function, Literal, Operator,
    dialect::unsupported,
    joined::{Joined, Junction},
    lex::{LexToken, Lexer, SyntaxError, TokenKind},
};

const OPERATORS: &str = "`eq`, `ne`, `gt`, `ge`, `lt` or `le`";

/// Parses a filter; none for the empty one.
///
/// # Errors
/// When it is not in the language, or exceeds its bounds.
pub fn parse<D: Dialect>(text: &str) -> Result<Option<Expr<D::Condition>>, FilterError> {
    let rejected = |error: SyntaxError| FilterError {
        position: error.position,
        message: error.message,
        filter: text.to_owned(),
    };
    let max = limits::FILTER_BYTES_MAX;
    if text.len() > max {
        let message = format!("Filter is too long: bytes=`{}`, max=`{max}`", text.len());
        return Err(rejected(SyntaxError::new(max, message)));
    }
    Parser::<D>::parse(text).map_err(rejected)
}

/// Where the first use of a name in a filter without paths ends, outside of quotes.
#[must_use]
pub fn position_of(name: &str, text: &str) -> usize {
    let mut lexer = Lexer::new(text, false);
    while let Ok(token) = lexer.next() {
        if matches!(token.kind, TokenKind::End) || token.kind == TokenKind::Word(name) {
            return token.end;
        }
    }
    0
}

struct Parser<'a, D: Dialect> {
    lexer: Lexer<'a>,
    /// The present token.
    token: LexToken<'a>,
    /// The groups around it, outermost first.
    open: Vec<OpenGroup<D::Condition>>,
    dialect: PhantomData<D>,
}

/// The conditions of a group that are complete.
struct OpenGroup<C> {
    /// Joined by `or`.
    any: Option<Joined<C>>,
    /// Joined by `and`, after the last `or`.
    all: Option<Joined<C>>,
    /// Whether the next one is negated.
    is_negated: bool,
}

impl<C> Default for OpenGroup<C> {
    fn default() -> Self {
        Self { any: None, all: None, is_negated: false }
    }
}

impl<C> OpenGroup<C> {
    /// An `or` or the end of the group follows.
    fn end_conjunction(&mut self) {
        self.any = match (self.any.take(), self.all.take()) {
            (Some(any), Some(all)) => Some(any.join(Junction::Or, all)),
            (any, all) => any.or(all),
        };
    }
}

enum Operand {
    Property(FilterPath),
    Literal(Literal),
}

type ParsedExpr<D> = Result<Expr<<D as Dialect>::Condition>, SyntaxError>;

impl<'a, D: Dialect> Parser<'a, D> {
    fn parse(text: &'a str) -> Result<Option<Expr<D::Condition>>, SyntaxError> {
        let mut lexer = Lexer::new(text, D::HAS_PATHS);
        let token = lexer.next()?;
        if token.kind == TokenKind::End {
            return Ok(None);
        }
        let mut parser = Self { lexer, token, open: Vec::new(), dialect: PhantomData };
        let expr = parser.condition()?;
        match parser.token.kind {
            TokenKind::End => Ok(Some(expr.into_expr())),
            _ => Err(parser.expected("`and`, `or` or the end of the filter")),
        }
    }

    /// A condition up to its end, with every group in it.
    fn condition(&mut self) -> Result<Joined<D::Condition>, SyntaxError> {
        let mut group = OpenGroup::default();
        loop {
            group.is_negated = self.take_word("not")?;
            if self.token.kind == TokenKind::Open {
                self.advance()?;
                self.open.push(std::mem::take(&mut group));
                continue;
            }
            let mut operand = Joined::one(self.comparison()?);
            loop {
                self.add(&mut group, operand)?;
                if self.take_word("and")? {
                    break;
                }
                group.end_conjunction();
                if self.take_word("or")? {
                    break;
                }
                let Some(ended) = group.any.take() else {
                    return Err(self.expected("a condition"));
                };
                self.check_depth(&ended)?;
                let Some(outer) = self.open.pop() else { return Ok(ended) };
                if self.token.kind != TokenKind::Close {
                    return Err(self.expected("`and`, `or` or `)`"));
                }
                self.advance()?;
                (group, operand) = (outer, ended);
            }
        }
    }

    fn check_depth(&self, condition: &Joined<D::Condition>) -> Result<(), SyntaxError> {
        let max = limits::FILTER_NESTING_MAX;
        if condition.depth() > max {
            let message = format!("`and`, `or` and `not` are nested too deeply: max=`{max}`");
            return Err(SyntaxError::new(self.token.end, message));
        }
        Ok(())
    }

    /// Adds an operand of `and` to a group.
    fn add(
        &self,
        group: &mut OpenGroup<D::Condition>,
        operand: Joined<D::Condition>,
    ) -> Result<(), SyntaxError> {
        let operand = if group.is_negated { operand.negated() } else { operand };
        self.check_depth(&operand)?;
        group.all = Some(match group.all.take() {
            Some(all) => all.join(Junction::And, operand),
            None => operand,
        });
        Ok(())
    }

    fn comparison(&mut self) -> ParsedExpr<D> {
        if let Some(function) = self.function()? {
            return self.call(function);
        }
        let left = self.operand()?;
        let Some(operator) = self.take_operator()? else {
            let end = self.token.end;
            return match left {
                Operand::Property(property) if self.at_end_of_operand() => {
                    let compared = D::compare(property, Operator::Equal, Literal::Boolean(true));
                    compared.map_err(|rule| SyntaxError::new(end, rule))
                }
                Operand::Literal(Literal::Boolean(truth)) if self.at_end_of_operand() => {
                    Ok(Expr::Constant(truth))
                }
                _ => Err(self.operator_error()),
            };
        };
        let end = self.token.end;
        let compared = match (left, self.operand()?) {
            (Operand::Property(property), Operand::Literal(literal)) => {
                D::compare(property, operator, literal)
            }
            (Operand::Literal(literal), Operand::Property(property)) => {
                D::compare(property, operator.mirrored(), literal)
            }
            (Operand::Property(_), Operand::Property(right)) => Err(format!(
                "Expected a literal: two properties cannot be compared; a text is in quotes: '{right}'"
            )),
            (Operand::Literal(_), Operand::Literal(_)) => {
                Err("Expected a property: two literals cannot be compared".to_owned())
            }
        };
        compared.map_err(|rule| SyntaxError::new(end, rule))
    }

    /// The function whose call begins here, if one does.
    fn function(&self) -> Result<Option<Function>, SyntaxError> {
        let name = match self.token.kind {
            TokenKind::Word("and" | "or" | "not" | "null") => return Ok(None),
            TokenKind::Word(word) if truth(word).is_some() => return Ok(None),
            TokenKind::Word(name) if self.lexer.at_open() => name,
            _ => return Ok(None),
        };
        let found = D::FUNCTIONS.iter().find(|function| function.text() == name);
        if found.is_some() {
            return Ok(found.copied());
        }
        let names = D::FUNCTIONS.iter().map(|function| format!("`{}`", function.text()));
        let names: Vec<_> = names.collect();
        Err(SyntaxError::new(
            self.token.end,
            match names.is_empty() {
                true => unsupported(name),
                false => {
                    format!("Function `{name}` is not supported, expected {}", names.join(" or "))
                }
            },
        ))
    }

    /// A call, from the name of the function on.
    fn call(&mut self, function: Function) -> ParsedExpr<D> {
        self.advance()?;
        self.advance()?;
        let Operand::Property(property) = self.operand()? else {
            return Err(self.expected("a property, then a text"));
        };
        if self.token.kind != TokenKind::Comma {
            return Err(self.expected("`,`"));
        }
        self.advance()?;
        let TokenKind::Literal(Literal::String(text)) = &self.token.kind else {
            return Err(self.expected("a text in single quotes"));
        };
        let (text, end) = (text.clone(), self.token.end);
        self.advance()?;
        if self.token.kind != TokenKind::Close {
            return Err(self.expected("`)`"));
        }
        self.advance()?;
        D::call(function, property, text).map_err(|rule| SyntaxError::new(end, rule))
    }

    fn operand(&mut self) -> Result<Operand, SyntaxError> {
        let operand = match &self.token.kind {
            TokenKind::Literal(literal) => Operand::Literal(literal.clone()),
            TokenKind::Word("null") => {
                let message = "Expected a literal: `null` cannot be compared with, \
                               a property without a value matches no comparison";
                return Err(SyntaxError::new(self.token.end, message));
            }
            TokenKind::Word("and" | "or" | "not")
            | TokenKind::Open
            | TokenKind::Close
            | TokenKind::Comma
            | TokenKind::End => {
                return Err(self.expected("a property or a literal"));
            }
            TokenKind::Word(name) if self.lexer.at_open() => {
                return Err(SyntaxError::new(self.token.end, unsupported(name)));
            }
            TokenKind::Word(word) => match truth(word) {
                Some(truth) => Operand::Literal(Literal::Boolean(truth)),
                None => Operand::Property(FilterPath { name: (*word).to_owned(), key: None }),
            },
            TokenKind::Path(name, key) => {
                let (name, key) = ((*name).to_owned(), Some(key.clone()));
                Operand::Property(FilterPath { name, key })
            }
        };
        if let Operand::Property(property) = &operand {
            D::check(property).map_err(|rule| SyntaxError::new(self.token.end, rule))?;
        }
        self.advance()?;
        Ok(operand)
    }

    fn take_operator(&mut self) -> Result<Option<Operator>, SyntaxError> {
        let operator = match self.token.kind {
            TokenKind::Word("eq") => Operator::Equal,
            TokenKind::Word("ne") => Operator::NotEqual,
            TokenKind::Word("gt") => Operator::Greater,
            TokenKind::Word("ge") => Operator::GreaterOrEqual,
            TokenKind::Word("lt") => Operator::Less,
            TokenKind::Word("le") => Operator::LessOrEqual,
            _ => return Ok(None),
        };
        self.advance()?;
        Ok(Some(operator))
    }

    fn at_end_of_operand(&self) -> bool {
        matches!(self.token.kind, TokenKind::Word("and" | "or") | TokenKind::Close | TokenKind::End)
    }

    fn operator_error(&self) -> SyntaxError {
        match self.token.kind {
            TokenKind::Word(word @ ("add" | "sub" | "mul" | "div" | "mod")) => {
                let message = format!("Arithmetic such as `{word}` is not supported");
                SyntaxError::new(self.token.end, message)
            }
            TokenKind::Word(word @ ("in" | "has")) => {
                let message = format!("Operator `{word}` is not supported, expected {OPERATORS}");
                SyntaxError::new(self.token.end, message)
            }
            _ => self.expected(&format!("an operator, {OPERATORS}")),
        }
    }

    fn expected(&self, what: &str) -> SyntaxError {
        let found = self.token.kind.describe();
        SyntaxError::new(self.token.end, format!("Expected {what}, found {found}"))
    }

    fn take_word(&mut self, word: &str) -> Result<bool, SyntaxError> {
        let found = self.token.kind == TokenKind::Word(word);
        if found {
            self.advance()?;
        }
        Ok(found)
    }

    fn advance(&mut self) -> Result<(), SyntaxError> {
        self.token = self.lexer.next()?;
        Ok(())
    }
}

/// The boolean that a word is, in any case: programs write `True`, as their language does. A property of that name
/// cannot be filtered by.
fn truth(word: &str) -> Option<bool> {
    let is = |text: &str| word.eq_ignore_ascii_case(text);
    (is("true") || is("false")).then(|| is("true"))
}
