//! The terms of a token, and the rules between them.

use super::{AddressRange, Delegation, Malformed, Protocol, Scope, Time, Version};
use crate::caller::Letters;
use trestle_model::time::Ticks;

/// Since this version addresses and protocols are signed, and account signatures exist.
const SIGNS_PEERS: &str = "2015-04-05";

/// The terms of a token, which its signature covers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Terms {
    /// Determines the signed text and its layout.
    pub version: Version,
    /// Letters, in the order in which they are signed; empty if the policy sets them.
    pub permissions: String,
    /// The start of its validity; none: valid at once.
    pub start: Option<Time>,
    /// Its expiry.
    pub expiry: Option<Time>,
    /// The stored access policy that sets the absent terms.
    pub policy: Option<String>,
    /// The addresses that it is valid from; none: any address.
    pub addresses: Option<AddressRange>,
    /// The protocols that it is valid over; none: any protocol.
    pub protocol: Option<Protocol>,
    /// The user delegation key that signs it; none: a key of the account.
    pub delegation: Option<Box<Delegation>>,
    /// Its scope.
    pub scope: Scope,
}

impl Terms {
    /// The letters of the permissions.
    #[must_use]
    pub fn letters(&self) -> Letters {
        Letters::parse(&self.permissions).unwrap_or_default()
    }

    /// When the token expires: with its key at the latest. None: a stored access policy sets it.
    pub(super) fn ends(&self) -> Option<Ticks> {
        let own = self.expiry.as_ref().map(Time::ticks)?;
        let key = self.delegation.as_ref().map(|delegation| delegation.key.expiry.ticks());
        Some(key.map_or(own, |key| key.min(own)))
    }

    /// Checks the rules between fields.
    ///
    /// # Errors
    /// The first rule that they break.
    pub(super) fn check(&self) -> Result<(), Malformed> {
        let fails = |field, rule: &str| Err(Malformed::new(field, rule));
        let is_of_account = matches!(self.scope, Scope::Account { .. });
        if !self.version.since(SIGNS_PEERS) {
            // Older signatures do not cover them: the holder of the token could remove them.
            let rule = "needs sv 2015-04-05 or newer";
            if is_of_account {
                return fails("sv", "must be 2015-04-05 or newer for a token of an account");
            } else if self.addresses.is_some() {
                return fails("sip", rule);
            } else if self.protocol.is_some() {
                return fails("spr", rule);
            }
        }
        if self.policy.is_none() && self.expiry.is_none() {
            return fails("se", "required, unless a stored access policy (si) states it");
        }
        if self.policy.is_none() && self.permissions.is_empty() {
            return fails("sp", "required, unless a stored access policy (si) states it");
        }
        Ok(())
    }
}
