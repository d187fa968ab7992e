//! A page of the queues of an account: `EnumerationResults`.

use trestle_proto::queue::v1::Queue;

use super::{
    listing::{Echo, write_metadata, write_page},
    write::XmlWriter,
};

/// The content of a listing response.
#[derive(Debug, Clone, Copy)]
pub struct Listing<'a> {
    /// What it repeats of the request.
    pub echo: Echo<'a>,
    /// Whether metadata was requested.
    pub has_metadata: bool,
    /// The queues, ordered by name.
    pub queues: &'a [Queue],
    /// The continuation token; empty at the end.
    pub next_marker: &'a str,
}

/// The response to a listing.
#[must_use]
pub fn write_queues(listing: &Listing<'_>) -> String {
    write_page(&listing.echo, listing.next_marker, |writer| {
        writer.element("Queues", |writer| {
            for queue in listing.queues {
                writer.element("Queue", |writer| write_queue(writer, queue, listing.has_metadata));
            }
        });
    })
}

fn write_queue(writer: &mut XmlWriter, queue: &Queue, has_metadata: bool) {
    writer.text("Name", &queue.name);
    if !has_metadata {
        return;
    }
    write_metadata(writer, &queue.metadata);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn queue(name: &str, metadata: &[(&str, &str)]) -> Queue {
        let metadata = metadata.iter().map(|(name, value)| (name.to_string(), value.to_string()));
        Queue { name: name.to_owned(), metadata: metadata.collect(), ..Queue::default() }
    }

    #[test]
    fn a_page_echoes_its_request_and_has_a_continuation_token() {
        let queues = [queue("q-100", &[("k", "v"), ("b", "<")]), queue("q-200", &[])];
        let listing = Listing {
            echo: Echo {
                endpoint: "http://127.0.0.1:10001/devstoreaccount1",
                prefix: Some("q"),
                marker: Some("/devstoreaccount1/q-100"),
                max_results: Some(2),
                ..Echo::default()
            },
            has_metadata: true,
            queues: &queues,
            next_marker: "/devstoreaccount1/q-300",
        };

        let text = write_queues(&listing);

        assert_eq!(
            text,
            "<?xml version=\"1.0\" encoding=\"utf-8\"?><EnumerationResults \
             ServiceEndpoint=\"http://127.0.0.1:10001/devstoreaccount1\"><Prefix>q</Prefix>\
             <Marker>/devstoreaccount1/q-100</Marker><MaxResults>2</MaxResults><Queues><Queue>\
             <Name>q-100</Name><Metadata><b>&lt;</b><k>v</k></Metadata></Queue><Queue>\
             <Name>q-200</Name><Metadata /></Queue></Queues>\
             <NextMarker>/devstoreaccount1/q-300</NextMarker></EnumerationResults>"
        );
    }

    #[test]
    fn a_plain_page_has_names_only() {
        let listing = Listing {
            echo: Echo { endpoint: "https://acme.queue.example/", ..Echo::default() },
            has_metadata: false,
            queues: &[queue("q-100", &[("k", "v")])],
            next_marker: "",
        };

        let text = write_queues(&listing);

        let inside = "<Queues><Queue><Name>q-100</Name></Queue></Queues><NextMarker />";
        assert!(text.ends_with(&format!("\">{inside}</EnumerationResults>")), "{text}");
        let none = write_queues(&Listing { queues: &[], ..listing });
        assert!(none.contains("<Queues /><NextMarker />"), "{none}");
    }
}
