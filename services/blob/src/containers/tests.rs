use std::time::Duration;

use uuid::Uuid;

use super::*;
use crate::{
    conditions::{ConditionError, Conditions},
    fixture::{BlobFixture, account, container_name},
    lease::{LeaseAction, LeaseError, LeaseResult, LeaseState},
    record::Metadata,
};

fn acquire(id: u128) -> ContainerChange {
    let proposed = Some(Uuid::from_u128(id));
    let duration = Some(Duration::from_secs(15));
    ContainerChange::Lease(LeaseAction::Acquire { duration, proposed, generated: Uuid::nil() })
}

async fn change(
    fixture: &BlobFixture,
    change: ContainerChange,
    required: (Conditions, Option<Uuid>),
) -> Result<(ContainerRecord, Option<LeaseResult>), BlobError> {
    fixture.containers.change(&account(), container_name("logs"), change, required).await
}

fn anyhow() -> (Conditions, Option<Uuid>) {
    (Conditions::default(), None)
}

fn metadata() -> Metadata {
    vec![("a".to_owned(), "b".to_owned())]
}

#[tokio::test]
async fn a_container_exists_once_and_a_new_one_has_another_id() {
    let fixture = BlobFixture::new();
    let first = fixture.container("logs").await;

    let new = NewContainer {
        name: container_name("logs"),
        metadata: Vec::new(),
        public_access: Default::default(),
    };
    let again = fixture.containers.create(&account(), new).await;
    assert!(matches!(again, Err(BlobError::ContainerExists(_))));

    fixture.drop_container("logs").await;
    let found = fixture.containers.find(&account(), &container_name("logs")).await;
    assert_eq!(found.expect("read"), None);
    let second = fixture.container("logs").await;
    assert_ne!(first.id, second.id);
}

#[tokio::test]
async fn only_metadata_and_policies_change_the_etag() {
    let fixture = BlobFixture::new();
    let created = fixture.container("logs").await;

    let (leased, result) = change(&fixture, acquire(1), anyhow()).await.expect("leased");
    assert_eq!(leased.etag, created.etag);
    assert_eq!(result, Some(LeaseResult::Held(Uuid::from_u128(1))));
    let update = ContainerChange::Metadata(metadata());
    let (updated, _) =
        change(&fixture, update, anyhow()).await.expect("a lease is not an obstacle");
    assert_ne!(updated.etag, created.etag);
    assert_eq!((updated.metadata, updated.lease), (metadata(), leased.lease));
    let policies = ContainerChange::Policies(Bytes::from_static(b"x"), Default::default());
    let (restricted, _) = change(&fixture, policies, anyhow()).await.expect("changed");
    assert_ne!(restricted.etag, updated.etag);
}

#[tokio::test]
async fn a_leased_container_is_deleted_with_its_lease_only() {
    let fixture = BlobFixture::new();
    fixture.container("logs").await;
    change(&fixture, acquire(1), anyhow()).await.expect("leased");
    let delete = |lease: Option<u128>| {
        let required = (Conditions::default(), lease.map(Uuid::from_u128));
        change(&fixture, ContainerChange::Delete(None), required)
    };

    let without = delete(None).await;
    assert!(matches!(without, Err(BlobError::ContainerLease(LeaseError::IdMissing))));
    let other = delete(Some(2)).await;
    assert!(matches!(other, Err(BlobError::ContainerLease(LeaseError::Mismatch))));
    let found = fixture.containers.find(&account(), &container_name("logs")).await.expect("read");
    let state = found.expect("it is still there").lease.state(fixture.blobs.now());
    assert_eq!(state, LeaseState::Leased);
    delete(Some(1)).await.expect("deleted");
    assert!(matches!(delete(Some(1)).await, Err(BlobError::ContainerNotFound(_))));
}

#[tokio::test]
async fn a_change_takes_place_by_its_conditions() {
    let fixture = BlobFixture::new();
    let created = fixture.container("logs").await;
    fixture.advance(Duration::from_secs(10));
    let since = |time| Conditions { if_modified_since: Some(time), ..Conditions::default() };

    let update = || ContainerChange::Metadata(metadata());
    let stale = change(&fixture, update(), (since(created.created_at), None)).await;
    assert!(matches!(stale, Err(BlobError::Condition(ConditionError::Unmet(_)))));
    let before = created.created_at.before(Duration::from_secs(2));
    change(&fixture, update(), (since(before), None)).await.expect("modified since");
}

#[tokio::test]
async fn containers_are_listed_by_name_in_pages_of_a_prefix() {
    let fixture = BlobFixture::new();
    for name in ["bbb", "aaa", "abc", "ab-c"] {
        fixture.container(name).await;
    }
    let list = |prefix: &str, page_size, page_token: &str| {
        let (prefix, page_token) = (prefix.to_owned(), page_token.to_owned());
        let request = ListContainers { prefix, page_size, page_token, ..Default::default() };
        let containers = fixture.containers.clone();
        async move {
            let page = containers.list(&account(), request).await.expect("listed");
            let names: Vec<_> = page.containers.into_iter().map(|(name, _)| name).collect();
            (names, page.next_page_token)
        }
    };

    assert_eq!(list("", 10, "").await.0, ["aaa", "ab-c", "abc", "bbb"]);
    let (first, token) = list("ab", 1, "").await;
    let (second, _) = list("ab", 1, &token.expect("there is more")).await;
    assert_eq!([first, second].concat(), ["ab-c", "abc"]);
    assert_eq!(list("x", 10, "").await, (Vec::new(), None));
}
