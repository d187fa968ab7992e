//! Headers of credentials: any input yields a caller or an error, and no caller becomes
//! the owner of an account without its key.
#![no_main]

use std::net::{IpAddr, SocketAddr};

use arbitrary::Arbitrary;
use http::{HeaderMap, HeaderValue};
use libfuzzer_sys::fuzz_target;
use trestle_identity::{
    account::{Account, AccountKey, AccountSet},
    caller::Authority,
    credentials::Call,
    sas::VerifiedTokens,
};
use trestle_model::{name::AccountName, time::Ticks};
use trestle_rpc::peer::Peer;

#[derive(Debug, Arbitrary)]
struct Input {
    authorization: Vec<Value>,
    account: Vec<Vec<u8>>,
    address: IpAddr,
    is_open: bool,
}

#[derive(Debug, Arbitrary)]
enum Value {
    Free(Vec<u8>),
    Basic(String),
    BasicOf(String, String),
    Signature(String),
}

impl Value {
    fn bytes(&self) -> Vec<u8> {
        match self {
            Self::Free(bytes) => bytes.clone(),
            Self::Basic(text) => format!("Basic {text}").into_bytes(),
            Self::BasicOf(name, key) => {
                let text = trestle_fuzz::base64(format!("{name}:{key}").as_bytes());
                format!("basic {text}").into_bytes()
            }
            Self::Signature(text) => format!("SharedAccessSignature {text}").into_bytes(),
        }
    }
}

fuzz_target!(|input: Input| {
    let key = AccountKey::decode(&trestle_fuzz::base64(&[7; 64])).expect("a key");
    let acme = Account {
        name: AccountName::parse("acme").expect("a name"),
        keys: vec![key],
        is_disabled: false,
        allows_public_access: false,
    };
    let accounts: AccountSet = [acme, Account::development()].into_iter().collect();
    let mut headers = HeaderMap::new();
    for value in &input.authorization {
        if let Ok(value) = HeaderValue::from_bytes(&value.bytes()) {
            headers.append("authorization", value);
        }
    }
    for value in &input.account {
        if let Ok(value) = HeaderValue::from_bytes(value) {
            headers.append("trestle-account", value);
        }
    }
    let peer = Peer { address: SocketAddr::new(input.address, 1), tls: None };
    let path = "/trestle.blob.v1.BlobService/ReadBlob";
    let (headers_sent, is_open) = (&headers, input.is_open);
    let call =
        Call { headers: headers_sent, peer: &peer, is_open, allows_plaintext_keys: true, path };
    let now = Ticks::from_unix(1_800_000_000, 0).expect("in range");

    if let Ok(caller) = call.caller(&accounts, &VerifiedTokens::default(), now) {
        let is_silent = !headers.contains_key("authorization");
        let is_local = input.is_open && peer.ip().is_loopback();
        let has_public_key = caller.account == AccountName::development();
        // The development account has public containers; it is the only one here that may.
        let is_anonymous = caller.authority == Authority::Anonymous;
        let is_allowed = if is_anonymous { is_silent } else { is_local || !is_silent };
        assert!(has_public_key && is_allowed, "{caller:?}");
    }
});
