//! Queues through the official crate, which has signatures in addresses and no account key.

use std::collections::HashMap;

use azure_core::{
    error::ErrorKind,
    http::{ClientOptions, RetryOptions, Url},
};
use azure_storage::shared_access_signature::account_sas::{
    AccountSasPermissions, AccountSasResourceType,
};
use azure_storage_queue::{
    QueueClient, QueueServiceClient, QueueServiceClientOptions,
    models::{
        CorsRule, KeyInfo, ListQueuesIncludeType, QueueClientCreateOptions,
        QueueClientGetPropertiesResultHeaders, QueueClientPeekMessagesOptions,
        QueueClientReceiveMessagesOptions, QueueClientSendMessageOptions,
        QueueClientUpdateMessageOptions, QueueMessage, QueueServiceClientListQueuesOptions,
        QueueServiceProperties, ReceivedMessage, SignedIdentifiers,
    },
};
use futures::TryStreamExt;
use time::Duration;
use trestle_azure_clients::{BusyProxy, name, target};

fn service_at(endpoint: &str) -> QueueServiceClient {
    let client_options = ClientOptions { retry: RetryOptions::none(), ..ClientOptions::default() };
    let options = QueueServiceClientOptions { client_options, ..Default::default() };
    QueueServiceClient::new(Url::parse(endpoint).unwrap(), None, Some(options)).unwrap()
}

/// The service itself.
fn service() -> QueueServiceClient {
    service_at(&target().signed_queues(AccountSasResourceType::Service))
}

/// A queue as a whole.
fn queue(name: &str) -> QueueClient {
    let endpoint = target().signed_queues(AccountSasResourceType::Container);
    service_at(&endpoint).queue_client(name).unwrap()
}

/// The messages of a queue.
fn messages(name: &str) -> QueueClient {
    let endpoint = target().signed_queues(AccountSasResourceType::Object);
    service_at(&endpoint).queue_client(name).unwrap()
}

async fn created() -> (String, QueueClient) {
    let name = name();
    queue(&name).create(None).await.unwrap();
    let messages = messages(&name);
    (name, messages)
}

fn text(text: &str) -> QueueMessage {
    QueueMessage { message_text: Some(text.to_owned()) }
}

async fn received(queue: &QueueClient, most: i32) -> Vec<ReceivedMessage> {
    let options = QueueClientReceiveMessagesOptions {
        number_of_messages: Some(most),
        visibility_timeout: Some(60),
        ..Default::default()
    };
    let answer = queue.receive_messages(Some(options)).await.unwrap();
    answer.into_model().unwrap().items.unwrap_or_default()
}

/// Status and code of an error, as the crate classifies it.
fn error_of<T>(answer: azure_core::Result<T>) -> (u16, String) {
    let Err(error) = answer else { panic!("the call is rejected") };
    match error.kind() {
        ErrorKind::HttpResponse { status, error_code, .. } => {
            (u16::from(*status), error_code.clone().unwrap_or_default())
        }
        other => panic!("an error is an answer: {other:?}"),
    }
}

#[tokio::test]
async fn a_queue_is_created_described_listed_and_deleted() {
    let name = name();
    let queue = queue(&name);
    assert!(!queue.exists().await.unwrap());
    let metadata = HashMap::from([("owner".to_owned(), "a b".to_owned())]);
    let with = |metadata: &HashMap<String, String>| {
        let metadata = Some(metadata.clone());
        Some(QueueClientCreateOptions { metadata, ..Default::default() })
    };
    assert_eq!(queue.create(with(&metadata)).await.unwrap().status(), 201);
    assert_eq!(queue.create(with(&metadata)).await.unwrap().status(), 204);
    assert_eq!(error_of(queue.create(None).await), (409, "QueueAlreadyExists".to_owned()));
    assert_eq!(queue.get_properties(None).await.unwrap().metadata().unwrap(), metadata);
    let other = HashMap::from([("x".to_owned(), "y".to_owned())]);
    queue.set_metadata(&other, None).await.unwrap();
    assert_eq!(queue.get_properties(None).await.unwrap().metadata().unwrap(), other);
    let options = QueueServiceClientListQueuesOptions {
        prefix: Some(name.clone()),
        include: Some(vec![ListQueuesIncludeType::Metadata]),
        ..Default::default()
    };
    let items = service().list_queues(Some(options)).unwrap();
    let listed: Vec<_> = items.try_collect().await.unwrap();
    let found = listed.iter().find(|item| item.name.as_ref() == Some(&name)).unwrap();
    assert_eq!(found.metadata.as_ref(), Some(&other));
    queue.delete(None).await.unwrap();
    assert_eq!(error_of(queue.delete(None).await), (404, "QueueNotFound".to_owned()));
}

#[tokio::test]
async fn queues_are_listed_page_by_page() {
    let base = name();
    let expected: Vec<_> = (0..5).map(|number| format!("{base}-{number}")).collect();
    for one in &expected {
        queue(one).create(None).await.unwrap();
    }
    let options = QueueServiceClientListQueuesOptions {
        prefix: Some(format!("{base}-")),
        maxresults: Some(2),
        ..Default::default()
    };
    let pages = service().list_queues(Some(options)).unwrap().into_pages();
    let mut found = Vec::new();
    futures::pin_mut!(pages);
    while let Some(page) = pages.try_next().await.unwrap() {
        let items = page.into_model().unwrap().queue_items;
        assert!(items.len() <= 2 && found.len() < 5, "the pages have an end");
        found.extend(items.into_iter().filter_map(|item| item.name));
    }
    assert_eq!(found, expected);
}

#[tokio::test]
async fn a_message_is_sent_peeked_received_changed_and_deleted() {
    let (name, messages) = created().await;
    let sent = messages.send_message(text("hello").try_into().unwrap(), None).await.unwrap();
    let sent = sent.into_model().unwrap().items.unwrap().remove(0);
    assert!(sent.pop_receipt.is_some());
    let peeked = messages.peek_messages(None).await.unwrap().into_model().unwrap();
    assert_eq!(peeked.items.unwrap()[0].message_text.as_deref(), Some("hello"));
    let got = received(&messages, 1).await.remove(0);
    assert_eq!((&got.message_id, got.dequeue_count), (&sent.message_id, Some(1)));
    let (id, receipt) = (got.message_id.unwrap(), got.pop_receipt.unwrap());
    let change = QueueClientUpdateMessageOptions {
        queue_message: Some(text("changed").try_into().unwrap()),
        ..Default::default()
    };
    messages.update_message(&id, &receipt, 0, Some(change)).await.unwrap();
    let not_found = (404, "MessageNotFound".to_owned());
    assert_eq!(error_of(messages.delete_message(&id, &receipt, None).await), not_found);
    let again = received(&messages, 1).await.remove(0);
    assert_eq!(again.message_text.as_deref(), Some("changed"));
    assert_eq!(again.dequeue_count, Some(2));
    messages.delete_message(&id, &again.pop_receipt.unwrap(), None).await.unwrap();
    let left = queue(&name).get_properties(None).await.unwrap();
    assert_eq!(left.approximate_messages_count().unwrap(), Some(0));
}

#[tokio::test]
async fn the_text_of_a_message_survives_a_round_trip() {
    let (_, messages) = created().await;
    for expected in ["a\nb", " sides ", "<a>&amp;</a> ]]>", "\u{1F600} ä €", "\t\"'", "%41+b"] {
        messages.send_message(text(expected).try_into().unwrap(), None).await.unwrap();
        let got = received(&messages, 1).await.remove(0);
        assert_eq!(got.message_text.as_deref(), Some(expected));
    }
    let large = text(&"x".repeat(65_537)).try_into().unwrap();
    let rejected = error_of(messages.send_message(large, None).await);
    assert_eq!(rejected, (413, "RequestBodyTooLarge".to_owned()));
}

#[tokio::test]
async fn numbers_and_times_are_limited() {
    let (name, messages) = created().await;
    let out = (400, "OutOfRangeQueryParameterValue".to_owned());
    let options =
        QueueClientPeekMessagesOptions { number_of_messages: Some(33), ..Default::default() };
    assert_eq!(error_of(messages.peek_messages(Some(options)).await), out);
    let options =
        QueueClientSendMessageOptions { visibility_timeout: Some(604_801), ..Default::default() };
    let sent = messages.send_message(text("x").try_into().unwrap(), Some(options)).await;
    assert_eq!(error_of(sent), out);
    for number in 0..3 {
        let text = text(&number.to_string()).try_into().unwrap();
        let permanent =
            QueueClientSendMessageOptions { message_time_to_live: Some(-1), ..Default::default() };
        messages.send_message(text, Some(permanent)).await.unwrap();
    }
    assert_eq!(received(&messages, 32).await.len(), 3);
    messages.clear(None).await.unwrap();
    let left = queue(&name).get_properties(None).await.unwrap();
    assert_eq!(left.approximate_messages_count().unwrap(), Some(0));
}

#[tokio::test]
async fn a_sas_permits_exactly_its_grant() {
    let (name, _) = created().await;
    let read = AccountSasPermissions { read: true, ..Default::default() };
    let objects = AccountSasResourceType::Object;
    let with = |lasting: Duration| {
        let endpoint = target().queues_signed_for(objects, read, lasting);
        service_at(&endpoint).queue_client(&name).unwrap()
    };
    let reader = with(Duration::hours(1));
    reader.peek_messages(None).await.unwrap();
    let rejected = error_of(reader.send_message(text("x").try_into().unwrap(), None).await);
    assert_eq!(rejected, (403, "AuthorizationPermissionMismatch".to_owned()));
    let rejected = error_of(reader.get_properties(None).await);
    assert_eq!(rejected, (403, "AuthorizationResourceTypeMismatch".to_owned()));
    let late = with(Duration::hours(-1));
    let rejected = error_of(late.peek_messages(None).await);
    assert_eq!(rejected, (403, "AuthenticationFailed".to_owned()));
    for (address, code) in [
        ("10.0.0.1", Some("AuthorizationSourceIPMismatch")),
        ("127.0.0.2-127.0.0.9", Some("AuthorizationSourceIPMismatch")),
        ("127.0.0.0-127.0.0.9", None),
    ] {
        let hour = Duration::hours(1);
        let endpoint =
            target().queues_limited(objects, read, hour, |sas| sas.ip(address.to_owned()));
        let queue = service_at(&endpoint).queue_client(&name).unwrap();
        let answer = queue.peek_messages(None).await;
        match code {
            Some(code) => assert_eq!(error_of(answer), (403, code.to_owned()), "{address}"),
            None => assert!(answer.is_ok(), "{address}"),
        }
    }
    // A SAS cannot access policies, and this client supports only SAS with a queue.
    let never = (403, "AuthorizationFailure".to_owned());
    assert_eq!(error_of(queue(&name).get_access_policy(None).await), never);
    let policies = SignedIdentifiers::default().try_into().unwrap();
    assert_eq!(error_of(queue(&name).set_access_policy(policies, None).await), never);
    let user = KeyInfo::default().try_into().unwrap();
    let rejected = error_of(service().get_user_delegation_key(user, None).await);
    assert_eq!(rejected, never);
}

#[tokio::test]
async fn properties_survive_a_round_trip_and_statistics_are_at_the_secondary() {
    let rule = CorsRule {
        allowed_origins: Some("http://a.example".to_owned()),
        allowed_methods: Some("GET,PUT".to_owned()),
        allowed_headers: Some("x-ms-*".to_owned()),
        exposed_headers: Some("*".to_owned()),
        max_age_in_seconds: Some(60),
    };
    let properties =
        QueueServiceProperties { cors: Some(vec![rule]), ..QueueServiceProperties::default() };
    service().set_properties(properties.try_into().unwrap(), None).await.unwrap();
    let got = service().get_properties(None).await.unwrap().into_model().unwrap();
    let cors = got.cors.unwrap();
    assert_eq!(cors.len(), 1);
    assert_eq!(cors[0].allowed_methods.as_deref(), Some("GET,PUT"));
    assert_eq!(cors[0].max_age_in_seconds, Some(60));
    let endpoint = target().signed_queues(AccountSasResourceType::Service);
    let secondary = endpoint.replace("devstoreaccount1", "devstoreaccount1-secondary");
    let stats = service_at(&secondary).get_statistics(None).await.unwrap();
    let replication = stats.into_model().unwrap().geo_replication.unwrap();
    assert_eq!(replication.status.unwrap().to_string(), "live");
    assert!(replication.last_sync_time.is_some());
}

#[tokio::test]
async fn a_client_tries_again_while_the_service_is_busy() {
    let (name, messages) = created().await;
    let proxy = BusyProxy::before(&target().queue, 2);
    let endpoint = target().signed_queues(AccountSasResourceType::Object);
    let endpoint = endpoint.replace(&target().queue, &proxy.address);
    let retrying = QueueServiceClient::new(Url::parse(&endpoint).unwrap(), None, None).unwrap();

    let sent = text("once").try_into().unwrap();
    retrying.queue_client(&name).unwrap().send_message(sent, None).await.unwrap();

    assert_eq!(proxy.rejected(), 2);
    assert_eq!(received(&messages, 32).await.len(), 1);
}
