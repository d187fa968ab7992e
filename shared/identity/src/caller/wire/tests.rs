//! Round trips of callers through headers, and invalid headers.

use super::*;

fn letters(text: &str) -> Letters {
    Letters::parse(text).expect("letters")
}

fn round_trip(authority: Authority) {
    let account = AccountName::parse("acme").expect("a name");
    let caller = Caller { account, authority };
    let mut headers = HeaderMap::new();

    write(&caller, &mut headers);

    let read = read(&MetadataMap::from_headers(headers)).expect("a caller");
    assert_eq!(read, caller);
}

#[test]
fn every_authority_survives_a_round_trip() {
    round_trip(Authority::Owner);
    round_trip(Authority::Account(AccountGrant {
        services: letters("t"),
        resource_types: letters("co"),
        permissions: letters("rau"),
    }));
    round_trip(Authority::Table(TableGrant {
        table: "orders".into(),
        permissions: None,
        policy: Some(PolicyRef {
            id: "readers é".into(),
            has_start: false,
            has_expiry: true,
            denied: None,
        }),
        range: KeyRange {
            start_partition_key: Some(String::new()),
            start_row_key: None,
            end_partition_key: Some("b\n".into()),
            end_row_key: Some("9".into()),
        },
    }));
    round_trip(Authority::Queue(QueueGrant {
        queue: "jobs".into(),
        permissions: Some(letters("raup")),
        policy: Some(PolicyRef {
            id: "workers".into(),
            has_start: true,
            has_expiry: false,
            denied: None,
        }),
    }));
    let bare = QueueGrant { queue: "jobs".into(), permissions: None, policy: None };
    round_trip(Authority::Queue(bare));
}

#[test]
fn rejects_a_grant_that_cannot_be_parsed() {
    let (table, queue) = (Some(TableWire::default()), Some(QueueWire::default()));
    let account = Some(AccountWire::default());
    let both = GrantWire { account, table: table.clone(), ..GrantWire::default() };
    let other_both = GrantWire { table, queue, ..GrantWire::default() };
    let odd = QueueWire { permissions: Some("rr".into()), ..QueueWire::default() };
    let odd = GrantWire { queue: Some(odd), ..GrantWire::default() };
    let unknown = TableWire { permissions: Some("R!".into()), ..TableWire::default() };
    let table = |table| GrantWire { table: Some(table), ..GrantWire::default() }.encode_to_vec();
    let no_start = TableWire { start_row_key: Some("1".into()), ..TableWire::default() };
    let no_end = TableWire { end_row_key: Some("9".into()), ..TableWire::default() };
    for bytes in [
        Vec::new(),
        vec![0xFF],
        both.encode_to_vec(),
        other_both.encode_to_vec(),
        odd.encode_to_vec(),
        table(unknown),
        table(no_start),
        table(no_end),
    ] {
        let mut metadata = MetadataMap::new();
        metadata.insert_bin(GRANT_HEADER, BinaryMetadataValue::from_bytes(&bytes));
        assert!(read(&metadata).is_err(), "{bytes:?}");
    }
}

fn denied() -> Option<Denied> {
    let message = "the signature is not for this address".to_owned();
    Some(Denied { reason: Reason::AuthorizationSourceIpMismatch, message })
}

fn denied_by(id: &str) -> Option<PolicyRef> {
    Some(PolicyRef { id: id.to_owned(), has_start: true, has_expiry: true, denied: denied() })
}

fn sent(authority: Authority) -> HeaderMap {
    let account = AccountName::parse("acme").expect("a name");
    let mut headers = HeaderMap::new();
    write(&Caller { account, authority }, &mut headers);
    headers
}

#[test]
fn a_denial_that_depends_on_a_policy_survives_a_round_trip() {
    let range = KeyRange::default();
    let permissions = Some(letters("r"));
    let (table, queue) = ("orders".to_owned(), "jobs".to_owned());
    let policy = denied_by("readers");
    round_trip(Authority::Table(TableGrant { table, permissions, policy, range }));
    round_trip(Authority::Queue(QueueGrant { queue, permissions, policy: denied_by("workers") }));
}

/// The message that a service reads from a version before denials.
#[derive(Clone, PartialEq, Message)]
struct EarlierWire {
    #[prost(message, optional, tag = "1")]
    account: Option<AccountWire>,
    #[prost(message, optional, tag = "2")]
    table: Option<TableWire>,
    #[prost(message, optional, tag = "3")]
    queue: Option<QueueWire>,
}

#[test]
fn a_service_without_support_for_denials_sees_no_grant() {
    let queue = "jobs".to_owned();
    let permissions = Some(letters("raup"));
    let grant = QueueGrant { queue, permissions, policy: denied_by("workers") };
    let metadata = MetadataMap::from_headers(sent(Authority::Queue(grant)));
    let bytes = metadata.get_bin(GRANT_HEADER).expect("a grant").to_bytes().expect("base64");

    let earlier = EarlierWire::decode(bytes).expect("the same message");

    assert_eq!(earlier, EarlierWire::default());
}

#[test]
fn rejects_a_denial_without_a_policy_or_a_reason_or_beside_a_grant() {
    let reason = i32::from(Reason::AuthorizationSourceIpMismatch);
    let table = Some(TableWire { policy: Some("p".to_owned()), ..TableWire::default() });
    let queue = Some(QueueWire { policy: Some("p".to_owned()), ..QueueWire::default() });
    let good = DeniedWire { table: table.clone(), reason, ..DeniedWire::default() };
    let alone = |denied| GrantWire { denied: Some(denied), ..GrantWire::default() };
    assert!(alone(good.clone()).authority().is_some());

    for wire in [
        alone(DeniedWire { table: Some(TableWire::default()), ..good.clone() }),
        alone(DeniedWire { table: None, queue: Some(QueueWire::default()), ..good.clone() }),
        alone(DeniedWire { table: None, ..good.clone() }),
        alone(DeniedWire { queue: queue.clone(), ..good.clone() }),
        alone(DeniedWire { reason: -1, ..good.clone() }),
        GrantWire { table, ..alone(good.clone()) },
        GrantWire { queue, ..alone(good.clone()) },
        GrantWire { account: Some(AccountWire::default()), ..alone(good) },
    ] {
        assert_eq!(wire.clone().authority(), None, "{wire:?}");
    }
}

#[test]
fn rejects_two_grants() {
    let queue = "jobs".to_owned();
    let grant = QueueGrant { queue, permissions: Some(letters("raup")), policy: None };
    let mut headers = sent(Authority::Queue(grant));
    let again = headers.get(GRANT_HEADER).expect("a grant").clone();
    headers.append(GRANT_HEADER, again);

    assert!(read(&MetadataMap::from_headers(headers)).is_err());
}
