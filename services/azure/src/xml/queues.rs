//! A page of the queues of an account: `EnumerationResults`.

use trestle_proto::queue::v1::Queue;

use super::write::XmlWriter;

/// The content of a listing response.
#[derive(Debug, Clone, Copy)]
pub struct Listing<'a> {
    /// The address of the account, as the client addressed it.
    pub endpoint: &'a str,
    /// The prefix of the request, if it has one.
    pub prefix: Option<&'a str>,
    /// The continuation token of the request, if it has one.
    pub marker: Option<&'a str>,
    /// The page size of the request, if it has one.
    pub max_results: Option<u32>,
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
    let root = ("EnumerationResults", "ServiceEndpoint", listing.endpoint);
    XmlWriter::document_with(root, |writer| {
        for (name, echoed) in [("Prefix", listing.prefix), ("Marker", listing.marker)] {
            if let Some(echoed) = echoed {
                writer.text(name, echoed);
            }
        }
        if let Some(max_results) = listing.max_results {
            writer.value("MaxResults", &max_results);
        }
        writer.element("Queues", |writer| {
            for queue in listing.queues {
                writer.element("Queue", |writer| write_queue(writer, queue, listing.has_metadata));
            }
        });
        writer.text("NextMarker", listing.next_marker);
    })
}

fn write_queue(writer: &mut XmlWriter, queue: &Queue, has_metadata: bool) {
    writer.text("Name", &queue.name);
    if !has_metadata {
        return;
    }
    // By name, so that equal queues give equal responses.
    let mut metadata: Vec<_> = queue.metadata.iter().collect();
    metadata.sort_unstable();
    writer.element("Metadata", |writer| {
        for (name, value) in metadata {
            writer.text(name, value);
        }
    });
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
            endpoint: "http://127.0.0.1:10001/devstoreaccount1",
            prefix: Some("q"),
            marker: Some("/devstoreaccount1/q-100"),
            max_results: Some(2),
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
            endpoint: "https://acme.queue.example/",
            prefix: None,
            marker: None,
            max_results: None,
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
