//! Shared access signatures: any text is a token or rejected, the signature is never repeated, what
//! is minted verifies and nothing else does.
#![no_main]

use arbitrary::Arbitrary;
use libfuzzer_sys::fuzz_target;
use trestle_identity::{
    account::{Account, AccountKey, AccountSet},
    caller::{Caller, KeyRange},
    sas::{
        Named, NamedResource, Scope, Terms, Time, Token, Use, VerifiedTokens, Version, explain,
        mint, verify,
    },
    spec::{BLOB, QUEUE, TABLE},
};
use trestle_model::time::Ticks;
use trestle_rpc::peer::Peer;

#[derive(Debug, Arbitrary)]
struct Input {
    text: String,
    scope: u8,
    name: String,
    letters: String,
    policy: Option<String>,
    keys: [Option<String>; 4],
    start: Option<u32>,
    expiry: Option<u32>,
    now: u32,
    damage: (u16, u8),
}

fn at(seconds: u32) -> Ticks {
    Ticks::from_unix(seconds.into(), 0).expect("in range")
}

fn scope(input: &Input) -> Scope {
    let [start_partition_key, start_row_key, end_partition_key, end_row_key] = input.keys.clone();
    let name = input.name.clone();
    match input.scope % 4 {
        0 => Scope::Account {
            services: "t".to_owned(),
            resource_types: "sco".to_owned(),
            encryption_scope: name,
        },
        1 => Scope::of_queue(name),
        2 => Scope::of_container(name),
        _ => {
            let range =
                KeyRange { start_partition_key, start_row_key, end_partition_key, end_row_key };
            Scope::of_table(name, &range)
        }
    }
}

fuzz_target!(|input: Input| {
    let account = Account::development();
    let accounts: AccountSet = [account.clone()].into_iter().collect();
    let peer = Peer::in_process();
    let now = at(input.now);

    let named = [(&QUEUE, "q"), (&BLOB, "c"), (&BLOB, "c/d/b")];
    let named = named.map(|(service, name)| Some(NamedResource::new(service, name)));
    for resource in std::iter::once(None).chain(named) {
        if let Ok(token) = Token::parse(&input.text, resource.clone()) {
            let again = Token::parse(&token.to_query(), resource.clone());
            assert_eq!(again.as_ref(), Ok(&token), "it reads back");
        }
        let _ = explain(&input.text, resource, Some(&account), now, Some(&peer));
    }
    // A guessed signature is never valid.
    assert!(verify(&input.text, None, &accounts, now, &peer).is_err());

    let terms = Terms {
        version: Version::current(),
        permissions: input.letters.clone(),
        start: input.start.and_then(|seconds| Time::at(at(seconds))),
        expiry: input.expiry.and_then(|seconds| Time::at(at(seconds))),
        policy: input.policy.clone(),
        addresses: None,
        protocol: None,
        delegation: None,
        scope: scope(&input),
    };
    let Ok(token) = mint(terms, account.name.as_str(), &AccountKey::development()) else {
        return;
    };
    let text = token.to_query();
    let verified = verify(&text, None, &accounts, now, &peer);
    let names_itself = match &token.terms.scope {
        Scope::Account { .. } => true,
        Scope::Resource(scope) => scope.service == &TABLE,
    };
    let is_early = input.start.is_some_and(|start| start > input.now.saturating_add(300));
    let is_over = input.expiry.is_some_and(|expiry| expiry <= input.now);
    assert_eq!(verified.is_ok(), names_itself && !is_early && !is_over, "{text}: {verified:?}");

    let (cache, usage) = (VerifiedTokens::default(), Use { now, peer: &peer });
    let cached = |text: &str| {
        let caller = cache.verify(text, Named::default(), &accounts, &usage);
        caller.map(|caller| Caller::clone(&caller))
    };
    assert_eq!([cached(&text), cached(&text)], [verified.clone(), verified.clone()], "{text}");

    let (position, byte) = input.damage;
    let mut damaged = text.clone().into_bytes();
    let position = usize::from(position) % damaged.len();
    damaged[position] = byte % 0x80;
    if let Ok(damaged) = String::from_utf8(damaged) {
        let caller = verify(&damaged, None, &accounts, now, &peer);
        assert_eq!(cached(&damaged), caller, "{damaged}");
        // Another spelling of the same token at most.
        assert!(caller.is_err() || caller == verified, "{damaged}");
    }
});
