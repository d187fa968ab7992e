//! A cache of verified tokens, since clients send one with many calls: parsing and signing it takes longer than a point
//! read may.
//!
//! An entry counts only while its account is unchanged: with another key, or disabled, the token is verified anew. What
//! may differ from call to call, the time and the peer, is checked in every call.

use std::{fmt, sync::Arc};

use quick_cache::{Equivalent, sync::Cache};

use super::{
    Denied, Named, NamedResource, Terms,
    check::{Accepted, TRIED_MAX, accept, is_delegated_still},
    rules::{Use, check_use},
};
use crate::{
    account::{Account, AccountSet},
    caller::Caller,
};

/// Most tokens that are cached.
const TOKENS_MAX: usize = 1_024;
/// Longest token that is cached, with the names in its call, in bytes: bounds the memory of the cache to a few MiB.
const CACHED_BYTES_MAX: usize = 1_024;

/// Verified tokens with their callers. Contains no invalid tokens, so that only holders of valid ones can replace
/// entries.
pub struct VerifiedTokens(Cache<SignedToken, Arc<Verified>>);

/// All that the signature is verified with: see [`Named`].
#[derive(PartialEq, Eq, Hash)]
struct SignedToken {
    token: String,
    account: Option<String>,
    resource: Option<NamedResource>,
}

/// A [`SignedToken`] that is looked up; both have the same hash.
#[derive(Hash)]
struct SignedTokenRef<'a> {
    token: &'a str,
    account: Option<&'a str>,
    resource: Option<&'a NamedResource>,
}

struct Verified {
    account: Account,
    terms: Terms,
    caller: Arc<Caller>,
}

/// Prints nothing of the tokens, which are secrets.
impl fmt::Debug for VerifiedTokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("VerifiedTokens").finish_non_exhaustive()
    }
}

impl Default for VerifiedTokens {
    fn default() -> Self {
        Self(Cache::new(TOKENS_MAX))
    }
}

impl VerifiedTokens {
    /// The caller that a token authenticates, in a call with the parameters in `named`.
    ///
    /// # Errors
    /// The first check that the token fails.
    pub fn verify(
        &self,
        token: &str,
        named: Named<'_>,
        accounts: &AccountSet,
        usage: &Use<'_>,
    ) -> Result<Arc<Caller>, Denied> {
        // An account is found for a token without one only where the accounts are few.
        let is_found = named.account.is_some() || accounts.len() <= TRIED_MAX;
        if !is_found || token.len() + named.bytes() > CACHED_BYTES_MAX {
            return accept(token, named, accounts, usage)?.caller().map(Arc::new);
        }
        let (account, resource) = (named.account, named.resource.as_ref());
        let cached = self.0.get(&SignedTokenRef { token, account, resource });
        if let Some(cached) = cached.filter(|cached| cached.is_valid(accounts, usage)) {
            return Ok(Arc::clone(&cached.caller));
        }
        let resource = named.resource.clone();
        let accepted = accept(token, named, accounts, usage)?;
        let caller = Arc::new(accepted.caller()?);
        if accepted.is_unconditional() {
            let account = account.map(str::to_owned);
            let signed = SignedToken { token: token.to_owned(), account, resource };
            let Accepted { account, terms, .. } = accepted;
            let verified =
                Verified { account: account.clone(), terms, caller: Arc::clone(&caller) };
            self.0.insert(signed, Arc::new(verified));
        }
        Ok(caller)
    }
}

impl Verified {
    fn is_valid(&self, accounts: &AccountSet, usage: &Use<'_>) -> bool {
        let current = accounts.get(self.account.name.as_str());
        current == Some(&self.account)
            && is_delegated_still(&self.terms, &self.account, accounts)
            && check_use(&self.terms, usage).is_ok()
    }
}

impl Equivalent<SignedToken> for SignedTokenRef<'_> {
    fn equivalent(&self, signed: &SignedToken) -> bool {
        self.token == signed.token
            && self.account == signed.account.as_deref()
            && self.resource == signed.resource.as_ref()
    }
}
