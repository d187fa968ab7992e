//! The cache of verified tokens: what it saves, and what it must not outlive.

use std::sync::Arc;

use super::checks::{account, accounts, at, peer, table_terms, token};
use crate::{
    account::{Account, AccountSet},
    caller::Caller,
    sas::{AddressRange, Check, Denied, Named, NamedResource, Scope, Terms, Use, VerifiedTokens},
    spec::QUEUE,
};
use trestle_model::fault::Reason;
use trestle_rpc::peer::Peer;

/// A cache, and calls that use it.
#[derive(Default)]
struct Server {
    cache: VerifiedTokens,
}

impl Server {
    fn call(&self, token: &str, named: Named<'_>) -> Result<Arc<Caller>, Denied> {
        self.call_of(&accounts(), token, named)
    }

    fn call_of(
        &self,
        accounts: &AccountSet,
        token: &str,
        named: Named<'_>,
    ) -> Result<Arc<Caller>, Denied> {
        self.cache.verify(token, named, accounts, &Use { now: at(0), peer: &Peer::in_process() })
    }
}

fn acme() -> Named<'static> {
    Some("acme").into()
}

#[test]
fn a_token_is_verified_once_for_many_calls() {
    let server = Server::default();
    let signed = token(table_terms(), "acme", 1);

    let first = server.call(&signed, acme()).expect("valid");

    assert!(Arc::ptr_eq(&first, &server.call(&signed, acme()).expect("valid")));
    let unnamed = server.call(&signed, Named::default()).expect("valid");
    assert!(!Arc::ptr_eq(&first, &unnamed), "the account is a part of the call");
    assert_eq!(first, unnamed);
}

#[test]
fn an_account_that_changed_verifies_its_tokens_anew() {
    let server = Server::default();
    let signed = token(table_terms(), "acme", 1);
    server.call(&signed, acme()).expect("valid");

    let denied = |accounts: &[Account]| {
        let accounts = accounts.iter().cloned().collect();
        server.call_of(&accounts, &signed, acme()).expect_err("denied").check
    };

    assert_eq!(denied(&[account("acme", 7)]), Check::Signature, "rotated keys");
    assert_eq!(denied(&[account("other", 1)]), Check::Signature, "no such account");
    let disabled = Account { is_disabled: true, ..account("acme", 1) };
    let expected =
        Server::default().call_of(&[disabled.clone()].into_iter().collect(), &signed, acme());
    assert_eq!(denied(&[disabled]), expected.expect_err("denied").check, "disabled");
    server.call(&signed, acme()).expect("valid again with the keys as they were");
}

#[test]
fn the_time_and_the_peer_are_checked_in_every_call() {
    let server = Server::default();
    let addresses = AddressRange::parse("10.0.0.1".to_owned()).expect("an address");
    let terms = Terms { addresses: Some(addresses), ..table_terms() };
    let signed = token(terms, "acme", 1);
    let call = |seconds, address| {
        let peer = peer(address, false);
        let called = server.cache.verify(
            &signed,
            acme(),
            &accounts(),
            &Use { now: at(seconds), peer: &peer },
        );
        called.map_err(|denied| denied.check)
    };

    call(0, "10.0.0.1:4").expect("valid");

    assert_eq!(call(0, "10.0.0.2:4"), Err(Check::Address));
    assert_eq!(call(2 * 3600, "10.0.0.1:4"), Err(Check::Time), "expired");
    assert_eq!(call(-3 * 3600, "10.0.0.1:4"), Err(Check::Time), "not yet valid");
    call(1, "10.0.0.1:4").expect("valid");
}

#[test]
fn a_token_without_a_resource_is_for_the_resource_that_the_call_names() {
    let server = Server::default();
    let scope = Scope::of_queue("jobs");
    let signed = token(Terms { permissions: "r".to_owned(), scope, ..table_terms() }, "acme", 1);
    let named =
        |queue| Named { account: Some("acme"), resource: Some(NamedResource::new(&QUEUE, queue)) };

    server.call(&signed, named("jobs")).expect("valid");

    let other = server.call(&signed, named("other")).expect_err("another queue");
    assert_eq!(other.check, Check::Signature);
    server.call(&signed, named("jobs")).expect("valid");
}

#[test]
fn a_call_with_long_names_is_verified_and_not_cached() {
    let server = Server::default();
    let scope = Scope::Account {
        services: "q".to_owned(),
        resource_types: "o".to_owned(),
        encryption_scope: String::new(),
    };
    let signed = token(Terms { permissions: "r".to_owned(), scope, ..table_terms() }, "acme", 1);
    let is_cached = |length: usize| {
        let call = || {
            let resource = NamedResource::new(&QUEUE, "q".repeat(length));
            server.call(&signed, Named { account: Some("acme"), resource: Some(resource) })
        };
        Arc::ptr_eq(&call().expect("valid"), &call().expect("valid"))
    };

    assert_eq!([63, 20_000].map(is_cached), [true, false]);
}

#[test]
fn a_token_without_a_named_account_is_not_found_among_many_accounts_after_a_reload_either() {
    let server = Server::default();
    let signed = token(table_terms(), "acme", 1);
    server.call(&signed, Named::default()).expect("valid");

    let many = (10..40).map(|byte| account(&format!("account{byte}"), byte));
    let many = many.chain([account("acme", 1)]).collect();
    let denied = server.call_of(&many, &signed, Named::default()).expect_err("denied");

    assert_eq!(denied.reason, Reason::InvalidAuthenticationInfo);
    server.call_of(&many, &signed, acme()).expect("valid where it is named");
}
