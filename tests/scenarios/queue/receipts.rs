//! Receipts: which are valid, and until when.

use std::time::Duration;

use tonic::Code;
use trestle_proto::queue::v1::{self as proto, DeadLetterPolicy, ReceiptRef};
use trestle_tests::{World, queue_scenario, receipt_of, receipt_of_sent, seconds, text, texts};

const NOT_FOUND: (Code, &str) = (Code::NotFound, "MESSAGE_NOT_FOUND");
const MALFORMED: (Code, &str) = (Code::InvalidArgument, "INVALID_QUERY_PARAMETER_VALUE");

queue_scenario!(
    send_receipt_deletes_and_updates,
    update_returns_a_new_receipt_and_invalidates_the_old,
    update_to_zero_makes_the_message_visible,
    update_without_a_body_keeps_the_body,
    lapsed_receipt_is_valid_until_the_next_receive,
    send_receipt_is_invalid_after_a_receive,
    second_delete_is_not_found,
    receipts_of_other_messages_and_queues_are_not_found,
    receipt_is_invalid_after_dead_lettering,
    rejects_a_receipt_with_a_forged_group,
    malformed_receipts_are_rejected,
    forged_receipt_changes_nothing,
);

async fn send_receipt_deletes_and_updates(world: &World) {
    let queue = world.queue("jobs").await;
    let first = queue.send(text("a")).await.unwrap();
    let second = queue.send(text("b")).await.unwrap();

    queue.delete(receipt_of_sent(&first)).await.unwrap();
    let updated = queue.update(receipt_of_sent(&second), seconds(0), Some("b2")).await.unwrap();

    assert_eq!(queue.count().await, 1);
    let received = queue.receive(2, seconds(30)).await.unwrap();
    assert_eq!(texts(&received), ["b2"]);
    assert_eq!(received[0].message.as_ref().unwrap().dequeue_count, 1, "an update counts nothing");
    assert_eq!(queue.delete(updated).await.unwrap_err().kind(), NOT_FOUND);
}

async fn update_returns_a_new_receipt_and_invalidates_the_old(world: &World) {
    let queue = world.queue("jobs").await;
    queue.send(text("a")).await.unwrap();
    let held = queue.receive(1, seconds(30)).await.unwrap();
    let old = receipt_of(&held[0]);

    let new = queue.update(old.clone(), seconds(60), Some("a2")).await.unwrap();

    assert_eq!(queue.delete(old.clone()).await.unwrap_err().kind(), NOT_FOUND);
    assert_eq!(queue.update(old, seconds(1), None).await.unwrap_err().kind(), NOT_FOUND);
    assert_eq!(queue.peek(1).await.unwrap(), [], "still invisible");
    queue.delete(new).await.unwrap();
    assert_eq!(queue.count().await, 0);
}

async fn update_to_zero_makes_the_message_visible(world: &World) {
    let queue = world.queue("jobs").await;
    queue.send(text("a")).await.unwrap();
    let held = queue.receive(1, seconds(600)).await.unwrap();

    queue.update(receipt_of(&held[0]), seconds(0), None).await.unwrap();

    assert_eq!(queue.peek(1).await.unwrap()[0].dequeue_count, 1, "a look counts nothing");
    let again = queue.receive(1, seconds(30)).await.unwrap();
    assert_eq!(texts(&again), ["a"]);
    assert_eq!(again[0].message.as_ref().unwrap().dequeue_count, 2);
}

async fn update_without_a_body_keeps_the_body(world: &World) {
    let queue = world.queue("jobs").await;
    queue.send(text("kept")).await.unwrap();
    let held = queue.receive(1, seconds(30)).await.unwrap();

    let receipt = queue.update(receipt_of(&held[0]), seconds(30), None).await.unwrap();
    let receipt = queue.update(receipt, seconds(30), Some("")).await.unwrap();
    queue.update(receipt, seconds(0), None).await.unwrap();

    assert_eq!(texts(&queue.receive(1, seconds(30)).await.unwrap()), [""], "emptied, then kept");
}

async fn lapsed_receipt_is_valid_until_the_next_receive(world: &World) {
    let queue = world.queue("jobs").await;
    queue.send(text("a")).await.unwrap();
    queue.send(text("b")).await.unwrap();
    let held = queue.receive(2, seconds(1)).await.unwrap();
    tokio::time::sleep(Duration::from_millis(1200)).await;

    queue.delete(receipt_of(&held[0])).await.unwrap();
    let received = queue.receive(2, seconds(30)).await.unwrap();

    assert_eq!(texts(&received), ["b"]);
    assert_eq!(queue.delete(receipt_of(&held[1])).await.unwrap_err().kind(), NOT_FOUND);
    queue.delete(receipt_of(&received[0])).await.unwrap();
}

async fn send_receipt_is_invalid_after_a_receive(world: &World) {
    let queue = world.queue("jobs").await;
    let sent = queue.send(text("a")).await.unwrap();
    queue.receive(1, seconds(1)).await.unwrap();

    let error = queue.delete(receipt_of_sent(&sent)).await.unwrap_err();

    assert_eq!(error.kind(), NOT_FOUND);
    assert!(error.message.contains(&sent.message_id), "{}", error.message);
}

async fn second_delete_is_not_found(world: &World) {
    let queue = world.queue("jobs").await;
    let sent = queue.send(text("a")).await.unwrap();
    let receipt = receipt_of_sent(&sent);

    queue.delete(receipt.clone()).await.unwrap();

    assert_eq!(queue.delete(receipt).await.unwrap_err().kind(), NOT_FOUND);
    assert_eq!(queue.count().await, 0);
}

async fn receipts_of_other_messages_and_queues_are_not_found(world: &World) {
    let queue = world.queue("jobs").await;
    let other = world.queue("others").await;
    let a = receipt_of_sent(&queue.send(text("a")).await.unwrap());
    let b = receipt_of_sent(&queue.send(text("b")).await.unwrap());
    let elsewhere = receipt_of_sent(&other.send(text("c")).await.unwrap());
    let swapped = ReceiptRef { message_id: a.message_id.clone(), ..b.clone() };
    let unknown = ReceiptRef { message_id: "no-id".to_owned(), ..a.clone() };

    for receipt in [swapped, unknown, elsewhere] {
        let error = queue.delete(receipt.clone()).await.unwrap_err();
        assert_eq!(error.kind(), NOT_FOUND, "{receipt:?}");
        let error = queue.update(receipt.clone(), seconds(0), None).await.unwrap_err();
        assert_eq!(error.kind(), NOT_FOUND, "{receipt:?}");
    }
    assert_eq!((queue.count().await, other.count().await), (2, 1));
    queue.delete(a).await.unwrap();
    queue.delete(b).await.unwrap();
}

/// Its id remains the same, so only the receipt distinguishes.
async fn receipt_is_invalid_after_dead_lettering(world: &World) {
    let dead = world.queue("failed").await;
    let policy = DeadLetterPolicy { queue: "failed".to_owned(), max_dequeue_count: 1 };
    let settings =
        proto::Queue { name: "jobs".to_owned(), dead_letter: Some(policy), ..Default::default() };
    let queue = world.queue_with(settings).await;
    queue.send(text("poison")).await.unwrap();
    let held = receipt_of(&queue.receive(1, seconds(600)).await.unwrap()[0]);
    let updated = queue.update(held, seconds(0), None).await.unwrap();
    assert_eq!(queue.receive(1, seconds(600)).await.unwrap(), [], "moved");

    let held = receipt_of(&dead.receive(1, seconds(600)).await.unwrap()[0]);
    assert_eq!(held.message_id, updated.message_id);
    let there = dead.update(held, seconds(0), None).await.unwrap();
    for queue in [&queue, &dead] {
        assert_eq!(queue.delete(updated.clone()).await.unwrap_err().kind(), NOT_FOUND);
    }
    assert_eq!(queue.delete(there.clone()).await.unwrap_err().kind(), NOT_FOUND);
    assert_eq!(dead.redrive("", 1).await.unwrap(), 1);

    for receipt in [updated, there] {
        for queue in [&queue, &dead] {
            assert_eq!(queue.delete(receipt.clone()).await.unwrap_err().kind(), NOT_FOUND);
            let error = queue.update(receipt.clone(), seconds(0), None).await.unwrap_err();
            assert_eq!(error.kind(), NOT_FOUND);
        }
    }
    assert_eq!(texts(&queue.receive(1, seconds(600)).await.unwrap()), ["poison"]);
}

async fn rejects_a_receipt_with_a_forged_group(world: &World) {
    let queue = world.queue("jobs").await;
    let grouped =
        |body: &str| proto::OutgoingMessage { ordering_group: "g".to_owned(), ..text(body) };
    queue.send_all(vec![grouped("1"), grouped("2"), text("free")]).await.unwrap();
    let held = queue.receive(32, seconds(600)).await.unwrap();
    assert_eq!(texts(&held), ["1", "free"]);
    let held: Vec<_> = held.iter().map(receipt_of).collect();
    let forged = |receipt: &ReceiptRef, kind: &str| {
        let pop_receipt = format!("{kind}{}", &receipt.pop_receipt[2..]);
        assert_ne!(pop_receipt, receipt.pop_receipt);
        ReceiptRef { pop_receipt, ..receipt.clone() }
    };

    for receipt in [forged(&held[0], "Aw"), forged(&held[1], "BA")] {
        assert_eq!(queue.delete(receipt.clone()).await.unwrap_err().kind(), NOT_FOUND);
        let error = queue.update(receipt, seconds(0), None).await.unwrap_err();
        assert_eq!(error.kind(), NOT_FOUND);
    }

    assert_eq!(queue.receive(32, seconds(600)).await.unwrap(), [], "the second of the group waits");
    for receipt in held {
        queue.delete(receipt).await.unwrap();
    }
    assert_eq!(texts(&queue.receive(32, seconds(600)).await.unwrap()), ["2"]);
}

async fn malformed_receipts_are_rejected(world: &World) {
    let queue = world.queue("jobs").await;
    let sent = receipt_of_sent(&queue.send(text("a")).await.unwrap());
    let whole = sent.pop_receipt.clone();
    let cut = whole[..whole.len() - 1].to_owned();
    let long = "A".repeat(100_000);
    let spaced = whole.replacen(&whole[3..4], " ", 1);

    for pop_receipt in [cut, format!("{whole}A"), long, spaced, "?".to_owned()] {
        let receipt = ReceiptRef { pop_receipt, ..sent.clone() };
        let error = queue.delete(receipt.clone()).await.unwrap_err();
        assert_eq!(error.kind(), MALFORMED);
        assert_eq!(error.fields, ["receipts[0].pop_receipt"]);
        assert!(error.message.contains("Invalid pop receipt format"), "{}", error.message);
        assert!(error.message.len() < 300, "shortened");
        let error = queue.update(receipt, seconds(0), None).await.unwrap_err();
        assert_eq!(error.kind(), MALFORMED);
    }
    let missing = ReceiptRef { pop_receipt: String::new(), ..sent };
    let expected = (Code::InvalidArgument, "MISSING_REQUIRED_QUERY_PARAMETER");
    assert_eq!(queue.delete(missing.clone()).await.unwrap_err().kind(), expected);
    assert_eq!(queue.update(missing.clone(), seconds(0), None).await.unwrap_err().kind(), expected);
    let error = queue.update(missing.clone(), seconds(-1), None).await.unwrap_err();
    assert_eq!(error.fields, ["receipt.pop_receipt", "visibility_timeout"], "every rule");

    let nowhere = world.existing_queue("nowhere");
    let not_found = (Code::NotFound, "QUEUE_NOT_FOUND");
    assert_eq!(nowhere.delete(missing.clone()).await.unwrap_err().kind(), not_found);
    assert_eq!(nowhere.update(missing, seconds(0), None).await.unwrap_err().kind(), not_found);
}

async fn forged_receipt_changes_nothing(world: &World) {
    let queue = world.queue("jobs").await;
    queue.send(text("a")).await.unwrap();
    let held = receipt_of(&queue.receive(1, seconds(600)).await.unwrap()[0]);

    let mut forged = Vec::new();
    for (position, letter) in held.pop_receipt.char_indices() {
        for other in ['A', 'B', 'g', '_'].into_iter().filter(|other| *other != letter) {
            let mut pop_receipt = held.pop_receipt.clone();
            pop_receipt.replace_range(position..=position, &other.to_string());
            forged.push(ReceiptRef { pop_receipt, ..held.clone() });
        }
    }
    // The first and the last possible slot, in a group and in none.
    let kinds = ["AQ", "Ag", "Aw", "BA"].into_iter();
    for (kind, rest) in kinds.flat_map(|kind| [(kind, "A"), (kind, "_")]) {
        let pop_receipt = format!("{kind}{}", rest.repeat(held.pop_receipt.len() - 2));
        forged.push(ReceiptRef { pop_receipt, ..held.clone() });
    }
    for batch in forged.chunks(100) {
        for outcome in queue.delete_all(batch.to_vec()).await.unwrap() {
            let error = outcome.unwrap_err();
            assert!([NOT_FOUND, MALFORMED].contains(&error.kind()), "{error:?}");
        }
    }
    for receipt in forged.into_iter().step_by(7) {
        let error = queue.update(receipt, seconds(0), None).await.unwrap_err();
        assert!([NOT_FOUND, MALFORMED].contains(&error.kind()), "{error:?}");
    }
    queue.send(text("b")).await.unwrap();
    assert_eq!(texts(&queue.receive(32, seconds(600)).await.unwrap()), ["b"]);
    assert_eq!(queue.count().await, 2);
    queue.delete(held).await.unwrap();
}
