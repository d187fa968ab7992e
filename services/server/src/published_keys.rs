//! Keys of accounts that are no secret, since they are published.

use std::sync::LazyLock;

use trestle_identity::account::AccountKey;

/// The key that earlier examples for Kubernetes had.
const EXAMPLE_KEY: &str = concat!(
    "bm90IGEgc2VjcmV0OiByZXBsYWNlIHRoaXMga2V5LCBmb3Ig",
    "ZXhhbXBsZSBieSBvcGVuc3NsIHJhbmQgLWJhc2U2NCA2NA==",
);

const RULE_OF_DEVELOPMENT: &str = "must not be the key of the development account, which is public: make one with \
     `openssl rand -base64 64`, or use that account on this machine with gateway.development_account = \"loopback\"";
const RULE_OF_EXAMPLE: &str =
    "must not be the key of an example, which is public: make one with `openssl rand -base64 64`";

/// The rule that a key of a configured account violates; none for a key that is not published.
pub(crate) fn violation(key: &AccountKey) -> Option<&'static str> {
    static PUBLISHED: LazyLock<[(AccountKey, &str); 2]> = LazyLock::new(|| {
        let example = AccountKey::decode(EXAMPLE_KEY).expect("base64 of 70 bytes");
        [(AccountKey::development(), RULE_OF_DEVELOPMENT), (example, RULE_OF_EXAMPLE)]
    });
    PUBLISHED.iter().find(|(published, _)| published == key).map(|(_, rule)| *rule)
}

#[cfg(test)]
mod tests {
    use super::*;
    use trestle_identity::account::DEVELOPMENT_KEY;

    #[test]
    fn the_keys_of_the_emulator_and_of_examples_are_violations_in_every_spelling() {
        let rule = |text: &str| violation(&AccountKey::decode(text).expect("a key"));
        assert_eq!(rule(DEVELOPMENT_KEY), Some(RULE_OF_DEVELOPMENT));
        assert_eq!(rule(&format!(" {DEVELOPMENT_KEY}\n")), Some(RULE_OF_DEVELOPMENT));
        assert_eq!(rule(EXAMPLE_KEY), Some(RULE_OF_EXAMPLE));
        assert_eq!(rule("c2VjcmV0LW9uZS1zZWNyZXQtb25lLXNlY3JldC1vbmU="), None);
    }
}
