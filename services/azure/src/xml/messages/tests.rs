use bytes::Bytes;
use prost_types::Timestamp;
use trestle_model::fault::Reason;

use super::*;

fn at(seconds: i64) -> Option<Timestamp> {
    Some(Timestamp { seconds: 1_763_726_400 + seconds, nanos: 0 })
}

fn message(body: Body) -> Message {
    Message {
        message_id: "5974b586-0df3-4e2d-ad0c-18e3892bfca2".to_owned(),
        insertion_time: at(0),
        expiration_time: at(60),
        dequeue_count: 2,
        body: Some(body),
        ..Message::default()
    }
}

#[test]
fn the_text_of_a_message_is_parsed_unchanged() {
    for (body, text) in [
        ("<QueueMessage><MessageText>text &amp; more</MessageText></QueueMessage>", "text & more"),
        (
            "<?xml version='1.0' encoding='utf-8'?>\n<QueueMessage>\n  <MessageText> a\r\n\tb \
             </MessageText>\n</QueueMessage>\n",
            " a\r\n\tb ",
        ),
        ("<QueueMessage><MessageText /></QueueMessage>", ""),
        ("<QueueMessage><MessageText>  </MessageText></QueueMessage>", "  "),
        (
            "<QueueMessage><MessageText>日本 \u{1f600}</MessageText></QueueMessage>",
            "日本 \u{1f600}",
        ),
    ] {
        assert_eq!(read_message(body.as_bytes()), Ok(Some(text.to_owned())), "{body}");
    }
    assert_eq!(read_message(b"<QueueMessage/>"), Ok(None));
}

#[test]
fn rejects_other_documents() {
    for body in [
        "",
        "text",
        "<Message><MessageText>a</MessageText></Message>",
        "<QueueMessage>a</QueueMessage>b",
        "<QueueMessage><MessageText>a</MessageText><MessageText>b</MessageText></QueueMessage>",
        "<QueueMessage><MessageText><b>a</b></MessageText></QueueMessage>",
        "<QueueMessage><Text>a</Text></QueueMessage>",
        "<QueueMessage>new text</QueueMessage>",
        "<QueueMessage><MessageText>a & b</MessageText></QueueMessage>",
    ] {
        let fault = read_message(body.as_bytes()).expect_err(body);
        assert_eq!(fault.reason, Reason::InvalidXmlDocument, "{body}");
    }
}

#[test]
fn a_delivery_is_written_in_the_order_of_azure() {
    let delivery = Delivery {
        message: Some(message(Body::Text("a\r\n<é>".to_owned()))),
        pop_receipt: "AgAAAAMAAAAAAAAANcCsz5Yr1QE=".to_owned(),
        next_visible_time: at(30),
    };

    let text = write_deliveries(&[delivery]);

    assert_eq!(
        text,
        "<?xml version=\"1.0\" encoding=\"utf-8\"?><QueueMessagesList><QueueMessage>\
         <MessageId>5974b586-0df3-4e2d-ad0c-18e3892bfca2</MessageId>\
         <InsertionTime>Fri, 21 Nov 2025 12:00:00 GMT</InsertionTime>\
         <ExpirationTime>Fri, 21 Nov 2025 12:01:00 GMT</ExpirationTime>\
         <PopReceipt>AgAAAAMAAAAAAAAANcCsz5Yr1QE=</PopReceipt>\
         <TimeNextVisible>Fri, 21 Nov 2025 12:00:30 GMT</TimeNextVisible>\
         <DequeueCount>2</DequeueCount><MessageText>a&#xD;\n&lt;é&gt;</MessageText>\
         </QueueMessage></QueueMessagesList>"
    );
    assert!(write_deliveries(&[]).ends_with("?><QueueMessagesList />"));
}

#[test]
fn a_peeked_message_has_no_receipt_and_bytes_are_written_as_base64() {
    let everlasting =
        Message { expiration_time: None, ..message(Body::Data(Bytes::from_static(b"\0\xff"))) };

    let text = write_peeked(&[everlasting, message(Body::Text(String::new()))]);

    assert!(!text.contains("PopReceipt") && !text.contains("TimeNextVisible"), "{text}");
    assert!(text.contains("<ExpirationTime>Fri, 31 Dec 9999 23:59:59 GMT</ExpirationTime>"));
    assert!(text.contains("<MessageText>AP8=</MessageText>"), "{text}");
    assert!(text.contains("<DequeueCount>2</DequeueCount><MessageText /></QueueMessage>"));
}

#[test]
fn a_sent_message_is_written_without_its_text() {
    let sent = SentMessage {
        message_id: "id".to_owned(),
        insertion_time: at(0),
        expiration_time: None,
        pop_receipt: "receipt".to_owned(),
        next_visible_time: at(5),
        duplicate: false,
    };

    let text = write_sent(&sent);

    assert!(
        text.ends_with(
            "<QueueMessagesList><QueueMessage><MessageId>id</MessageId>\
             <InsertionTime>Fri, 21 Nov 2025 12:00:00 GMT</InsertionTime>\
             <ExpirationTime>Fri, 31 Dec 9999 23:59:59 GMT</ExpirationTime>\
             <PopReceipt>receipt</PopReceipt>\
             <TimeNextVisible>Fri, 21 Nov 2025 12:00:05 GMT</TimeNextVisible></QueueMessage>\
             </QueueMessagesList>"
        ),
        "{text}"
    );
}
