//! The identity of this process.

use std::sync::OnceLock;

use uuid::Uuid;

/// The id of this process: random, and the same for every role in it until it exits.
#[must_use]
pub fn instance_id() -> &'static str {
    static ID: OnceLock<String> = OnceLock::new();
    ID.get_or_init(|| Uuid::new_v4().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_id_is_a_random_uuid_and_does_not_change() {
        let id = Uuid::parse_str(instance_id()).expect("a UUID");

        assert_eq!(id.get_version_num(), 4);
        assert_eq!(instance_id(), id.to_string());
    }
}
