//! The stored form of the access policies of a resource: a format byte, then a message of our own. It is independent
//! of the contract, so that a change of the contract never changes what is on disk.

use bytes::Bytes;
use prost::Message;
use prost_types::Timestamp;
use trestle_proto::service::v1::AccessPolicy;

/// The first byte of a record.
const FORMAT: u8 = 1;

/// A record that is corrupt, or of a later version.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("stored access policies are corrupt")]
pub struct CorruptPolicies;

#[derive(Clone, PartialEq, Message)]
struct StoredPolicies {
    #[prost(message, repeated, tag = "1")]
    policies: Vec<StoredPolicy>,
}

#[derive(Clone, PartialEq, Message)]
struct StoredPolicy {
    #[prost(string, tag = "1")]
    id: String,
    #[prost(message, optional, tag = "2")]
    start: Option<StoredTime>,
    #[prost(message, optional, tag = "3")]
    expiry: Option<StoredTime>,
    #[prost(string, optional, tag = "4")]
    permissions: Option<String>,
}

/// A time since 1970 in UTC.
#[derive(Clone, Copy, PartialEq, Message)]
struct StoredTime {
    #[prost(sint64, tag = "1")]
    seconds: i64,
    #[prost(int32, tag = "2")]
    nanos: i32,
}

/// The record of the policies of a resource.
#[must_use]
pub fn encode(policies: Vec<AccessPolicy>) -> Bytes {
    let policies = policies.into_iter().map(StoredPolicy::from).collect();
    let mut value = vec![FORMAT];
    StoredPolicies { policies }.encode_raw(&mut value);
    value.into()
}

/// The policies of a record.
///
/// # Errors
/// A record that is corrupt or of an unknown format.
pub fn decode(value: &[u8]) -> Result<Vec<AccessPolicy>, CorruptPolicies> {
    let message = value.strip_prefix(&[FORMAT]).ok_or(CorruptPolicies)?;
    let record = StoredPolicies::decode(message).map_err(|_| CorruptPolicies)?;
    Ok(record.policies.into_iter().map(AccessPolicy::from).collect())
}

impl From<AccessPolicy> for StoredPolicy {
    fn from(policy: AccessPolicy) -> Self {
        let AccessPolicy { id, start_time, expiry_time, permissions } = policy;
        let time = |time: Timestamp| StoredTime { seconds: time.seconds, nanos: time.nanos };
        Self { id, start: start_time.map(time), expiry: expiry_time.map(time), permissions }
    }
}

impl From<StoredPolicy> for AccessPolicy {
    fn from(stored: StoredPolicy) -> Self {
        let StoredPolicy { id, start, expiry, permissions } = stored;
        let time = |time: StoredTime| Timestamp { seconds: time.seconds, nanos: time.nanos };
        Self { id, start_time: start.map(time), expiry_time: expiry.map(time), permissions }
    }
}

#[cfg(test)]
mod tests {
    use proptest::{collection::vec, option, prelude::*};

    use super::*;

    fn policy() -> impl Strategy<Value = AccessPolicy> {
        let time = || {
            let parts = (any::<i64>(), any::<i32>());
            option::of(parts.prop_map(|(seconds, nanos)| Timestamp { seconds, nanos }))
        };
        (".{0,8}", time(), time(), option::of(".{0,4}")).prop_map(
            |(id, start_time, expiry_time, permissions)| AccessPolicy {
                id,
                start_time,
                expiry_time,
                permissions,
            },
        )
    }

    proptest! {
        #[test]
        fn policies_survive_a_round_trip(policies in vec(policy(), 0..5)) {
            prop_assert_eq!(decode(&encode(policies.clone())), Ok(policies));
        }

        #[test]
        fn arbitrary_bytes_never_panic(bytes in vec(any::<u8>(), 0..64)) {
            let _ = decode(&bytes);
        }
    }

    #[test]
    fn a_record_of_an_unknown_format_is_corrupt() {
        let mut record = encode(Vec::new()).to_vec();
        record[0] = FORMAT + 1;
        assert_eq!(decode(&record), Err(CorruptPolicies));
        assert_eq!(decode(&[]), Err(CorruptPolicies));
    }
}
