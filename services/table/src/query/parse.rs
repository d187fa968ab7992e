//! The parser: recursive descent over the grammar
//!
//! ```text
//! or         = and { "or" and }
//! and        = unary { "and" unary }
//! unary      = [ "not" ] primary
//! primary    = "(" or ")" | comparison | property | boolean
//! comparison = property op literal | literal op property
//! ```
//!
//! `not` binds looser than a comparison: `not a eq 1` is `not (a eq 1)`. A property alone is
//! `property eq true`. A comparison with the literal on the left is mirrored. Recursion is
//! bounded by `limits::FILTER_DEPTH_MAX`, the text and its tokens by limits of their own.

use trestle_service::limits;

use super::{
    FilterError,
    ast::{Expr, Literal, Operator},
    lex::{LexToken, Lexer, SyntaxError, TokenKind},
};

const OPERATORS: &str = "`eq`, `ne`, `gt`, `ge`, `lt` or `le`";

/// Parses a filter; none for the empty one.
pub(super) fn parse(text: &str) -> Result<Option<Expr>, FilterError> {
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
    Parser::parse(text).map_err(rejected)
}

struct Parser<'a> {
    lexer: Lexer<'a>,
    /// The present token.
    token: LexToken<'a>,
    /// Parentheses and `not`s around it.
    depth: usize,
}

enum Operand<'a> {
    Property(&'a str),
    Literal(Literal),
}

impl<'a> Parser<'a> {
    fn parse(text: &'a str) -> Result<Option<Expr>, SyntaxError> {
        let mut lexer = Lexer::new(text);
        let token = lexer.next()?;
        if token.kind == TokenKind::End {
            return Ok(None);
        }
        let mut parser = Self { lexer, token, depth: 0 };
        let expr = parser.or()?;
        match parser.token.kind {
            TokenKind::End => Ok(Some(expr)),
            _ => Err(parser.expected("`and`, `or` or the end of the filter")),
        }
    }

    fn or(&mut self) -> Result<Expr, SyntaxError> {
        let mut parts = vec![self.and()?];
        while self.take_word("or")? {
            parts.push(self.and()?);
        }
        Ok(Expr::any(parts))
    }

    fn and(&mut self) -> Result<Expr, SyntaxError> {
        let mut parts = vec![self.unary()?];
        while self.take_word("and")? {
            parts.push(self.unary()?);
        }
        Ok(Expr::all(parts))
    }

    fn unary(&mut self) -> Result<Expr, SyntaxError> {
        if !self.take_word("not")? {
            return self.primary();
        }
        // The canonical text has parentheses after every `not`, so both count as one level.
        if self.token.kind == TokenKind::Open {
            return Ok(Expr::Not(Box::new(self.primary()?)));
        }
        self.enter_level()?;
        let inner = self.primary()?;
        self.depth -= 1;
        Ok(Expr::Not(Box::new(inner)))
    }

    fn primary(&mut self) -> Result<Expr, SyntaxError> {
        if self.token.kind != TokenKind::Open {
            return self.comparison();
        }
        self.enter_level()?;
        self.advance()?;
        let inner = self.or()?;
        if self.token.kind != TokenKind::Close {
            return Err(self.expected("`and`, `or` or `)`"));
        }
        self.advance()?;
        self.depth -= 1;
        Ok(inner)
    }

    fn enter_level(&mut self) -> Result<(), SyntaxError> {
        self.depth += 1;
        let max = limits::FILTER_DEPTH_MAX;
        if self.depth > max {
            let message = format!("Filter is nested too deeply: max=`{max}`");
            return Err(SyntaxError::new(self.token.end, message));
        }
        Ok(())
    }

    fn comparison(&mut self) -> Result<Expr, SyntaxError> {
        let left = self.operand()?;
        let Some(operator) = self.take_operator()? else {
            return match left {
                Operand::Property(name) if self.at_end_of_operand() => {
                    Ok(Expr::compare(name, Operator::Equal, Literal::Boolean(true)))
                }
                Operand::Literal(Literal::Boolean(truth)) if self.at_end_of_operand() => {
                    Ok(Expr::Constant(truth))
                }
                _ => Err(self.operator_error()),
            };
        };
        let right_end = self.token.end;
        match (left, self.operand()?) {
            (Operand::Property(name), Operand::Literal(literal)) => {
                Ok(Expr::compare(name, operator, literal))
            }
            (Operand::Literal(literal), Operand::Property(name)) => {
                Ok(Expr::compare(name, operator.mirrored(), literal))
            }
            (Operand::Property(_), Operand::Property(_)) => Err(SyntaxError::new(
                right_end,
                "Expected a literal: two properties cannot be compared",
            )),
            (Operand::Literal(_), Operand::Literal(_)) => Err(SyntaxError::new(
                right_end,
                "Expected a property: two literals cannot be compared",
            )),
        }
    }

    fn operand(&mut self) -> Result<Operand<'a>, SyntaxError> {
        let operand = match &self.token.kind {
            TokenKind::Literal(literal) => Operand::Literal(literal.clone()),
            TokenKind::Word("true") => Operand::Literal(Literal::Boolean(true)),
            TokenKind::Word("false") => Operand::Literal(Literal::Boolean(false)),
            TokenKind::Word("null") => {
                let message = "Expected a literal: `null` cannot be compared with, \
                               a property without a value matches no comparison";
                return Err(SyntaxError::new(self.token.end, message));
            }
            TokenKind::Word("and" | "or" | "not")
            | TokenKind::Open
            | TokenKind::Close
            | TokenKind::End => {
                return Err(self.expected("a property or a literal"));
            }
            TokenKind::Word(name) if self.lexer.at_open() => {
                let message = format!("Functions such as `{name}` are not supported");
                return Err(SyntaxError::new(self.token.end, message));
            }
            TokenKind::Word(name) => Operand::Property(name),
        };
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
