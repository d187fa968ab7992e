//! Keys, and what they authenticate.

use base64::{Engine as _, engine::general_purpose::STANDARD};

use super::*;

fn key(byte: u8) -> AccountKey {
    AccountKey::decode(&STANDARD.encode([byte; 64])).expect("a key")
}

fn account(name: &str, keys: &[u8]) -> Account {
    let name = AccountName::parse(name).expect("a name");
    Account {
        name,
        keys: keys.iter().map(|byte| key(*byte)).collect(),
        is_disabled: false,
        allows_public_access: false,
    }
}

#[test]
fn accepts_base64_keys_of_valid_length_with_an_optional_line_break() {
    for bytes in [KEY_BYTES_MIN, 64, KEY_BYTES_MAX] {
        let text = format!(" {}\n", STANDARD.encode(vec![7; bytes]));
        assert!(AccountKey::decode(&text).is_ok(), "{bytes}");
    }
    for bytes in [0, KEY_BYTES_MIN - 1, KEY_BYTES_MAX + 1] {
        let text = STANDARD.encode(vec![7; bytes]);
        assert_eq!(AccountKey::decode(&text), Err(KeyError), "{bytes}");
    }
    for text in ["", "=", "no base64!", "QUJD QUJD"] {
        assert_eq!(AccountKey::decode(text), Err(KeyError), "{text}");
    }
}

#[test]
fn a_key_is_never_printed() {
    let shown = format!("{:?} {}", account("acme", &[7]), KeyError);

    assert!(shown.contains("redacted"), "{shown}");
    assert!(!shown.contains(&STANDARD.encode([7; 64])) && !shown.contains("7, 7"), "{shown}");
}

#[test]
fn either_of_two_keys_authenticates_the_account_and_no_other_does() {
    let set: AccountSet = [account("acme", &[1, 2]), account("other", &[3])].into_iter().collect();
    let opens = |name: &str, byte: u8| set.with_key(name, &[byte; 64]).is_some();

    assert!(opens("acme", 1) && opens("acme", 2) && opens("other", 3));
    assert!(!opens("acme", 3) && !opens("other", 1) && !opens("absent", 1));
    // The replacement for absent keys is not a valid key.
    assert!(!opens("other", 0) && !opens("absent", 0));
}

#[test]
fn a_signature_is_valid_for_one_text_and_one_of_the_keys() {
    let set: AccountSet = [account("acme", &[1, 2])].into_iter().collect();
    let signed = |name: &str, signature: &Signature| {
        set.with_signature(name, &format!("{name} text"), signature).is_some()
    };

    let mut signature = key(2).sign("acme text");
    assert!(signed("acme", &signature));
    assert!(!signed("absent", &key(2).sign("absent text")));
    assert!(!signed("acme", &placeholder_key().sign("acme text")));
    signature[31] ^= 1;
    assert!(!signed("acme", &signature));
}

#[test]
fn a_snapshot_keeps_accounts_that_are_replaced() {
    let accounts = Accounts::new([account("acme", &[1])]);
    let before = accounts.now();

    accounts.clone().replace([account("acme", &[2])].into_iter().collect());

    assert!(before.with_key("acme", &[1; 64]).is_some());
    assert!(accounts.now().with_key("acme", &[1; 64]).is_none());
    assert!(accounts.now().with_key("acme", &[2; 64]).is_some());
}
