//! Who holds a message: receipts, updates, deletes.

use std::time::Duration;

use trestle_tests::{QueueRest, RestRequest, RestResponse};

/// The address of the only message of an answer, with its receipt.
fn held(response: &RestResponse) -> String {
    let (id, receipt) = (response.only("MessageId"), response.only("PopReceipt"));
    format!("/orders/messages/{id}?popreceipt={receipt}")
}

/// The same with the receipt of an update.
fn held_since(first: &RestResponse, updated: &RestResponse) -> String {
    let receipt = updated.header("x-ms-popreceipt");
    format!("/orders/messages/{}?popreceipt={receipt}", first.only("MessageId"))
}

#[tokio::test]
async fn put_receipt_deletes_the_message_once() {
    let rest = QueueRest::start().await;
    rest.queue("orders").await;
    let sent = rest.message("orders", "", "text").await;

    let deleted = rest.call("DELETE", &held(&sent)).await;

    assert_eq!((deleted.status, deleted.text()), (204, ""));
    assert_eq!(rest.call("DELETE", &held(&sent)).await.failure(), (404, "MessageNotFound"));
}

#[tokio::test]
async fn update_returns_a_new_receipt_and_invalidates_the_old() {
    let rest = QueueRest::start().await;
    rest.queue("orders").await;
    rest.message("orders", "", "old").await;
    let received = rest.call("GET", "/orders/messages").await;

    let target = format!("{}&visibilitytimeout=30", held(&received));
    let updated = rest.send(RestRequest::message("PUT", &target, "new <text>")).await;

    assert_eq!((updated.status, updated.text()), (204, ""));
    assert!(updated.header("x-ms-time-next-visible").ends_with(" GMT"), "{updated:?}");
    assert_eq!(rest.call("DELETE", &held(&received)).await.failure(), (404, "MessageNotFound"));
    let again = rest.send(RestRequest::message("PUT", &target, "newer")).await;
    assert_eq!(again.failure(), (404, "MessageNotFound"));
    assert_eq!(rest.call("DELETE", &held_since(&received, &updated)).await.status, 204);
}

#[tokio::test]
async fn update_without_a_body_keeps_the_text_and_zero_timeout_makes_visible() {
    let rest = QueueRest::start().await;
    rest.queue("orders").await;
    rest.message("orders", "", "kept").await;

    for (count, body) in ["", "<QueueMessage />"].into_iter().enumerate() {
        let received = rest.call("GET", "/orders/messages").await;
        assert_eq!(received.only("MessageText"), "kept");
        assert_eq!(received.only("DequeueCount"), (count + 1).to_string());
        let target = format!("{}&visibilitytimeout=0", held(&received));
        let updated = rest.send(RestRequest::xml("PUT", &target, body)).await;
        assert_eq!(updated.status, 204, "{updated:?}");
    }
    let received = rest.call("GET", "/orders/messages").await;
    assert_eq!(received.only("DequeueCount"), "3");
    let target = format!("{}&visibilitytimeout=0", held(&received));
    assert_eq!(rest.send(RestRequest::message("PUT", &target, "")).await.status, 204);
    let received = rest.call("GET", "/orders/messages").await;
    assert_eq!(received.only("MessageText"), "");
}

#[tokio::test]
async fn receipt_remains_valid_after_the_timeout_until_the_next_receive() {
    let rest = QueueRest::start().await;
    rest.queue("orders").await;
    rest.message("orders", "", "text").await;
    let first = rest.call("GET", "/orders/messages?visibilitytimeout=1").await;
    tokio::time::sleep(Duration::from_millis(1200)).await;

    let second = rest.call("GET", "/orders/messages?visibilitytimeout=1").await;
    assert_eq!(second.only("DequeueCount"), "2");
    assert_eq!(rest.call("DELETE", &held(&first)).await.failure(), (404, "MessageNotFound"));
    tokio::time::sleep(Duration::from_millis(1200)).await;
    assert_eq!(rest.call("DELETE", &held(&second)).await.status, 204);
}

#[tokio::test]
async fn rejects_receipts_of_other_messages_and_queues() {
    let rest = QueueRest::start().await;
    rest.queue("orders").await;
    rest.queue("others").await;
    let (mine, next) =
        (rest.message("orders", "", "a").await, rest.message("orders", "", "b").await);
    let elsewhere = rest.message("others", "", "c").await;
    let (id, receipt) = (mine.only("MessageId"), mine.only("PopReceipt"));
    let with = |id: &str, receipt: &str| {
        format!("/orders/messages/{id}?popreceipt={receipt}&visibilitytimeout=0")
    };

    for method in ["PUT", "DELETE"] {
        for target in [
            with(&id, &next.only("PopReceipt")),
            with(&id, &elsewhere.only("PopReceipt")),
            with(&elsewhere.only("MessageId"), &elsewhere.only("PopReceipt")),
            with("no-id", &receipt),
        ] {
            let response = rest.call(method, &target).await;
            assert_eq!(response.failure(), (404, "MessageNotFound"), "{method} {target}");
        }
        for receipt in [&receipt[..receipt.len() - 1], &receipt[1..], &format!("{receipt}A")] {
            let response = rest.call(method, &with(&id, receipt)).await;
            assert_eq!(
                response.failure(),
                (400, "InvalidQueryParameterValue"),
                "{method} {receipt}"
            );
            assert_eq!(response.only("Reason"), "Invalid pop receipt format");
        }
    }
    let peeked = rest.call("GET", "/orders/messages?peekonly=true&numofmessages=32").await;
    assert_eq!(peeked.all("MessageText"), ["a", "b"]);
    assert_eq!(rest.call("DELETE", &held(&mine)).await.status, 204);
}

#[tokio::test]
async fn rejects_malformed_receipts() {
    let rest = QueueRest::start().await;
    rest.queue("orders").await;
    let sent = rest.message("orders", "", "text").await;
    let message = format!("/orders/messages/{}", sent.only("MessageId"));

    for method in ["DELETE", "PUT"] {
        // A plus sign in a query is a space.
        let target = format!("{message}?popreceipt=Ag+A&visibilitytimeout=0");
        let response = rest.call(method, &target).await;
        assert_eq!(response.failure(), (400, "InvalidQueryParameterValue"), "{method}");
        assert_eq!(response.only("QueryParameterName"), "popreceipt");
        assert_eq!(response.only("QueryParameterValue"), "Ag A");
        assert_eq!(response.only("Reason"), "Invalid pop receipt format");

        let response = rest.call(method, &format!("{message}?visibilitytimeout=0")).await;
        assert_eq!(response.failure(), (400, "MissingRequiredQueryParameter"), "{method}");
        assert_eq!(response.only("QueryParameterName"), "popreceipt");
    }
    let response = rest.call("PUT", &held(&sent)).await;
    assert_eq!(response.failure(), (400, "MissingRequiredQueryParameter"));
    assert_eq!(response.only("QueryParameterName"), "visibilitytimeout");
    let other =
        held(&sent).replace(&sent.only("MessageId"), "a1a37668-0e97-458b-877e-e88f381fba7c");
    assert_eq!(rest.call("DELETE", &other).await.failure(), (404, "MessageNotFound"));
    let encoded = held(&sent).replace('-', "%2D").replace('_', "%5F");
    assert_eq!(rest.call("DELETE", &encoded).await.status, 204);
}
