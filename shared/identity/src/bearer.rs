//! Bearer tokens: JSON Web Tokens of issuers that the operator trusts (OpenID Connect).
//!
//! `jwks` reads the public keys of an issuer, `jwt` parses a token and verifies its signature, `role` has what a role
//! permits. Only RS256 and ES256: a symmetric key that verifies a token can also make one.

mod issuer;
mod jwks;
mod jwt;
mod role;
mod signing_key;
#[cfg(test)]
mod tests;

pub use self::{
    issuer::{BearerUser, Issuer, Issuers, KeyMisses, RoleValues, check_private},
    jwks::{JWKS_BYTES_MAX, JwksError, PublicKeys},
    jwt::BEARER_BYTES_MAX,
    role::Role,
    signing_key::{SIGNING_KEY_BYTES_MAX, SigningKey, SigningKeyError},
};
