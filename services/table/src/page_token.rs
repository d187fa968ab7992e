//! Tokens that resume a listing or a query.

use trestle_model::fault::{Fault, Reason};
use trestle_model::page::TokenError;

use crate::error::TableError;

/// The error for a token, in this field, that does not belong to its request.
pub(crate) fn invalid_token(error: TokenError, field: &str) -> TableError {
    Fault::violation(Reason::InvalidQueryParameterValue, field, error.to_string()).into()
}
