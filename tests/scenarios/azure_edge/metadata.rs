//! Metadata of queues in headers: its names and its limits.

use super::endpoint::{QUEUES, ServedEdge};

#[tokio::test]
async fn metadata_names_keep_their_case() {
    let endpoint = ServedEdge::open(&QUEUES, &[]).await;
    let headers = [("x-ms-meta-ownername", "Me"), ("x-ms-meta-b", "2"), ("content-length", "0")];
    let cased = |text: String| text.replace("x-ms-meta-ownername", "X-Ms-Meta-OwnerName");
    let head = cased(endpoint.head("PUT", "/cased", &headers));
    let mut wire = endpoint.connect().await;

    let response = wire.call(head.as_bytes()).await;

    assert_eq!(response.status, 201, "{response:?}");
    let listed = endpoint.get("/?comp=list&include=metadata&prefix=cased", &[]).await;
    assert_eq!(listed.only("OwnerName"), "Me", "{listed:?}");
    assert_eq!(listed.only("b"), "2", "{listed:?}");
    // The names of one queue are compared without regard to case.
    let again = endpoint.head("PUT", "/cased", &headers);
    assert_eq!(wire.call(again.as_bytes()).await.status, 204);
    wire.send(endpoint.head("GET", "/cased?comp=metadata", &[]).as_bytes()).await;
    let lines = wire.head_lines().await;
    assert!(lines.contains(&"x-ms-meta-OwnerName: Me\r\n".to_owned()), "{lines:?}");
    let set = cased(endpoint.head("PUT", "/cased?comp=metadata", &headers))
        .replace("OwnerName", "ownerNAME");
    assert_eq!(endpoint.connect().await.call(set.as_bytes()).await.status, 204);
    let listed = endpoint.get("/?comp=list&include=metadata&prefix=cased", &[]).await;
    assert_eq!(listed.only("ownerNAME"), "Me", "{listed:?}");
}

#[tokio::test]
async fn metadata_names_that_differ_in_case_only_are_rejected() {
    let endpoint = ServedEdge::open(&QUEUES, &[]).await;
    let headers = [("x-ms-meta-a", "1"), ("x-ms-meta-a", "2"), ("content-length", "0")];
    let head = endpoint.head("PUT", "/cased", &headers);
    let head = head.replacen("x-ms-meta-a", "x-ms-meta-A", 1);

    let response = endpoint.connect().await.call(head.as_bytes()).await;

    assert_eq!(response.failure(), (400, "InvalidMetadata"), "{response:?}");
}

#[tokio::test]
async fn metadata_is_limited_to_8_kib_not_by_count() {
    let endpoint = ServedEdge::open(&QUEUES, &[]).await;
    // Five bytes of a name and one of a value, 8,190 together.
    let name = |at| &*format!("x-ms-meta-a{at:04}").leak();
    let names: Vec<&'static str> = (0..1_365).map(name).collect();
    let mut headers: Vec<_> = names.iter().map(|name| (*name, "v")).collect();
    headers.push(("content-length", "0"));

    let response =
        endpoint.connect().await.call(endpoint.head("PUT", "/named", &headers).as_bytes()).await;

    assert_eq!(response.status, 201, "{response:?}");
    let response = endpoint.get("/named?comp=metadata", &[]).await;
    for name in &names {
        assert_eq!(response.header(name), "v", "{name}");
    }
}
