//! Creates tokens.

use super::{Malformed, Terms, Token, string_to_sign};
use crate::account::AccountKey;

/// Invalid terms of a token.
pub type MintError = Malformed;

/// The token with these terms, signed with a key of `account`. The letters of the permissions are
/// sorted in the order that clients use.
///
/// # Errors
/// The first rule that the terms break: unknown or repeated letters, an expiry that is not after
/// the start, and every error of [`Token::parse`].
pub fn mint(terms: Terms, account: &str, key: &AccountKey) -> Result<Token, MintError> {
    let allowed = terms.scope.permissions();
    let requested = &terms.permissions;
    let permissions: String =
        allowed.chars().filter(|letter| requested.contains(*letter)).collect();
    if permissions.len() != requested.len() {
        let rule = format!("must be letters of `{allowed}`, none twice: value=`{requested}`");
        return Err(Malformed::new("sp", rule));
    }
    if let (Some(start), Some(expiry)) = (&terms.start, &terms.expiry)
        && start.ticks() >= expiry.ticks()
    {
        let rule = format!("must be after st: st=`{start}`, se=`{expiry}`");
        return Err(Malformed::new("se", rule));
    }
    let terms = Terms { permissions, ..terms };
    let signature = key.sign(&string_to_sign(&terms, account));
    let resource = terms.scope.named();
    Token::parse(&Token { terms, signature }.to_query(), resource)
}
