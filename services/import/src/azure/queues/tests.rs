//! Tests of the module.

use super::*;

#[test]
fn queues_have_metadata_and_pages() {
    let xml = "\u{feff}<?xml version=\"1.0\"?><EnumerationResults ServiceEndpoint=\"x\"><Queues>\
        <Queue><Name>a</Name><Metadata><k>v&amp;w</k><l/></Metadata></Queue>\
        <Queue><Name>b</Name><Metadata /></Queue></Queues><NextMarker>/x/c</NextMarker>\
        </EnumerationResults>";

    let page: QueuesPage = xml::parse(xml.as_bytes()).unwrap();

    assert_eq!(page.next_marker, "/x/c");
    let [first, second] = &page.queues.queue[..] else { panic!("two queues") };
    assert_eq!((first.name.as_str(), second.name.as_str()), ("a", "b"));
    assert_eq!((first.metadata["k"].as_str(), first.metadata["l"].as_str()), ("v&w", ""));
    assert!(first.metadata.len() == 2 && second.metadata.is_empty());
    let none: QueuesPage =
        xml::parse(b"<EnumerationResults><Queues/></EnumerationResults>").unwrap();
    assert!(none.queues.queue.is_empty() && none.next_marker.is_empty());
}

#[test]
fn the_text_of_a_message_is_preserved() {
    let xml = "<QueueMessagesList><QueueMessage><MessageId>i</MessageId><MessageText> a &lt;b&gt; \
        &#xD;\n<![CDATA[<c>&]]>é </MessageText></QueueMessage></QueueMessagesList>";

    let page: MessagesPage = xml::parse(xml.as_bytes()).unwrap();

    assert_eq!(page.queue_message[0].message_text, " a <b> \r\n<c>&é ");
}

#[test]
fn rejects_malformed_xml_without_its_content() {
    for xml in [
        &b"<a>"[..],
        b"<a></b>",
        b"<QueueMessagesList><QueueMessage><MessageId>&hunter2;</MessageId></QueueMessage></QueueMessagesList>",
        b"<!DOCTYPE a [<!ENTITY b \"c\">]><a>&b;</a>",
        b"<QueueMessagesList><QueueMessage><DequeueCount>hunter2</DequeueCount></QueueMessage></QueueMessagesList>",
        b"\xff",
    ] {
        let rejected = xml::parse::<MessagesPage>(xml).map(drop).unwrap_err();
        assert!(!rejected.contains("hunter2"), "{rejected}");
    }
}

proptest::proptest! {
    #[test]
    fn any_bytes_are_parsed_or_rejected(xml in "(<[/a-r!?\\[&;#x]{0,6}>|[&;#x0-9a<>\\[\\]]){0,30}") {
        let _ = xml::parse::<MessagesPage>(xml.as_bytes());
    }
}

#[test]
fn parses_http_dates_and_maps_the_last_one_to_no_expiry() {
    let never = expiry("Fri, 31 Dec 9999 23:59:59 GMT");
    assert_eq!(never, Ok(None));
    assert_eq!(expiry("Thu, 01 Jan 1970 00:00:02 GMT"), Ok(Ticks::from_unix(2, 0)));
    assert!(expiry("soon").is_err_and(|rule| rule.contains("`soon`")));
}
