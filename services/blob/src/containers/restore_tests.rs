//! Deleted containers that can be restored.

use std::time::Duration;
use trestle_model::read_grace::READ_GRACE;

use super::*;
use crate::{
    blobs::BlobKey,
    fixture::{BlobFixture, account, container_name, sample},
    record::{ContainerId, PublicAccess, Retention},
    sweep::{CONTAINER_GRACE, ORPHAN_GRACE},
};

const DAY: Duration = Duration::from_secs(24 * 3600);
const SECOND: Duration = Duration::from_secs(1);

fn fixture() -> BlobFixture {
    let fixture = BlobFixture::new();
    fixture.keep(Retention { containers_deleted_for: Some(DAY), ..Retention::default() });
    fixture
}

async fn restore(
    fixture: &BlobFixture,
    name: &str,
    id: ContainerId,
) -> Result<ContainerRecord, BlobError> {
    fixture.containers.undelete(&account(), (container_name(name), id), true).await
}

/// The names of a listing, with `-` before deleted ones, in pages of this size.
async fn listed(fixture: &BlobFixture, page_size: usize) -> Vec<String> {
    let (mut names, mut page_token) = (Vec::new(), String::new());
    loop {
        let with_deleted = true;
        let request =
            ListContainers { page_size, page_token, with_deleted, ..ListContainers::default() };
        let page = fixture.containers.list(&account(), request).await.expect("listed");
        assert!(page.containers.len() <= page_size);
        names.extend(page.containers.into_iter().map(|(name, record)| {
            format!("{}{name}", if record.deletion.is_some() { "-" } else { "" })
        }));
        match page.next_page_token {
            Some(token) => page_token = token,
            None => return names,
        }
    }
}

#[tokio::test]
async fn a_deleted_container_comes_back_with_its_blobs() {
    let fixture = fixture();
    let logs = fixture.container("logs").await;
    let key = BlobKey { container: logs.id, name: BlobName::stored("a".to_owned()) };
    fixture.put(&key, sample(100_000)).await;
    fixture.drop_container("logs").await;
    let found = fixture.containers.find(&account(), &container_name("logs")).await;
    assert_eq!(found.expect("read"), None);
    fixture.advance(DAY - SECOND);
    fixture.sweep().await;

    let restored = restore(&fixture, "logs", logs.id).await.expect("restored");

    assert_eq!(restored, logs);
    fixture.advance(DAY + ORPHAN_GRACE);
    fixture.sweep().await;
    assert_eq!(fixture.read(&key).await.expect("it does not expire any more"), sample(100_000));
    let again = restore(&fixture, "logs", logs.id).await;
    assert!(matches!(again, Err(BlobError::ContainerNotFound(_))));
}

#[tokio::test]
async fn only_who_may_make_it_public_restores_it_as_it_was() {
    for (may_open, expected) in [(true, PublicAccess::Container), (false, PublicAccess::None)] {
        let fixture = fixture();
        let new = NewContainer {
            name: container_name("logs"),
            metadata: Vec::new(),
            public_access: PublicAccess::Container,
        };
        let logs = fixture.containers.create(&account(), new).await.expect("created");
        fixture.drop_container("logs").await;

        let named = (container_name("logs"), logs.id);
        let restored = fixture.containers.undelete(&account(), named, may_open).await;

        let restored = restored.expect("restored");
        assert_eq!(restored, ContainerRecord { public_access: expected, ..logs });
        let found = fixture.containers.find(&account(), &container_name("logs")).await;
        assert_eq!(found.expect("read"), Some(restored));
    }
}

#[tokio::test]
async fn nothing_is_left_of_it_after_its_retention() {
    let fixture = fixture();
    let logs = fixture.container("logs").await;
    let key = BlobKey { container: logs.id, name: BlobName::stored("a".to_owned()) };
    fixture.put(&key, sample(100_000)).await;
    fixture.drop_container("logs").await;
    fixture.advance(DAY + SECOND);
    fixture.sweep().await;

    let late = restore(&fixture, "logs", logs.id).await;

    assert!(matches!(late, Err(BlobError::ContainerNotFound(_))));
    fixture.advance(CONTAINER_GRACE + READ_GRACE);
    fixture.sweep().await;
    assert_eq!(fixture.objects().await, 0);
    assert_eq!(listed(&fixture, 10).await, [""; 0]);
}

#[tokio::test]
async fn a_name_that_was_used_again_cannot_be_restored_and_each_deleted_one_is_listed() {
    let fixture = fixture();
    let mut ids = Vec::new();
    for _ in 0..3 {
        ids.push(fixture.container("logs").await.id);
        fixture.drop_container("logs").await;
    }
    fixture.container("logs").await;
    for name in ["aaa", "zzz"] {
        fixture.container(name).await;
    }
    fixture.container("mmm").await;
    fixture.drop_container("mmm").await;

    let expected = ["aaa", "logs", "-logs", "-logs", "-logs", "-mmm", "zzz"];
    for page_size in [1, 2, 3, 10] {
        assert_eq!(listed(&fixture, page_size).await, expected, "{page_size}");
    }
    let exists = restore(&fixture, "logs", ids[1]).await;
    assert!(matches!(exists, Err(BlobError::ContainerExists(_))));
    fixture.drop_container("logs").await;
    assert_eq!(restore(&fixture, "logs", ids[1]).await.expect("restored").id, ids[1]);
    let other = restore(&fixture, "aaa", ids[0]).await;
    assert!(matches!(other, Err(BlobError::ContainerNotFound(_))));
}
