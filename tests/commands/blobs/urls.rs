//! Copies from a URL of another server that the settings list.

use std::{
    io::{Read as _, Write as _},
    net::TcpListener,
    thread,
};

use bytes::Bytes;
use tonic::Code;
use trestle_proto::blob::v1::{self as proto, ByteRange, UploadFinish};
use trestle_tests::{CallError, Container, Server};

use crate::client::{run, succeeds};

/// A server that responds with `content` to `/cat.png?key=secret`, with a redirect to `/moved`, and 404 otherwise.
/// It serves until the process ends.
fn website(content: &'static [u8]) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let origin = format!("http://{}", listener.local_addr().unwrap());
    let target = format!("{origin}/cat.png?key=secret");
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut request = [0; 8192];
            let length = stream.read(&mut request).unwrap();
            let request = String::from_utf8_lossy(&request[..length]).into_owned();
            let head = if request.starts_with("GET /cat.png?key=secret HTTP/1.1\r\n") {
                let length = content.len();
                format!(
                    "HTTP/1.1 200 OK\r\ncontent-length: {length}\r\ncontent-type: image/png\r\n\
                     x-ms-meta-owner: me\r\nconnection: close\r\n\r\n"
                )
            } else if request.starts_with("GET /moved ") {
                format!(
                    "HTTP/1.1 302 Found\r\nlocation: {target}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
                )
            } else {
                "HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
                    .to_owned()
            };
            let is_found = head.contains("image/png");
            let body = if is_found { content } else { b"" };
            drop(stream.write_all(&[head.as_bytes(), body].concat()));
        }
    });
    origin
}

#[test]
fn a_listed_server_is_read_and_no_other() {
    let content = b"an image of a cat";
    let (listed, other) = (website(content), website(content));
    let settings = [("TRESTLE__STORAGE__COPY_SOURCE_HOSTS", listed.as_str())];
    let server = Server::start(&["--ephemeral"], &settings);
    succeeds(&server, &["blob", "container", "create", "photos"]);
    let copy = |from: &str| run(&server, &["blob", "cp", from, "blob://photos/"]);

    let copied = copy(&format!("{listed}/cat.png?key=secret"));
    assert_eq!(
        (copied.code, copied.output.as_str()),
        (Some(0), "copied 1 blob (17 B)\n"),
        "{copied:?}"
    );
    let shown = succeeds(&server, &["blob", "stat", "photos/cat.png", "--json"]).output;
    let shown: serde_json::Value = serde_json::from_str(&shown).unwrap();
    assert_eq!(
        (&shown["content_type"], &shown["metadata"]["owner"]),
        (&"image/png".into(), &"me".into())
    );
    let read = succeeds(&server, &["blob", "cat", "photos/cat.png"]).output;
    assert_eq!(read.as_bytes(), content);

    for (from, text) in [
        (format!("{other}/cat.png?key=secret"), "storage.copy_source_hosts"),
        (format!("{listed}/moved"), "status 302"),
        (format!("{listed}/absent"), "status 404"),
    ] {
        let rejected = copy(&from);
        assert_eq!(rejected.code, Some(4), "{rejected:?}");
        assert!(
            rejected.errors.contains(text) && !rejected.errors.contains("secret"),
            "{rejected:?}"
        );
    }
    let blobs = succeeds(&server, &["blob", "ls", "photos", "--json"]).output;
    assert_eq!(blobs.lines().count(), 1, "{blobs}");
}

#[test]
fn settings_that_name_no_server_are_rejected() {
    for (name, value) in [
        ("TRESTLE__STORAGE__COPY_SOURCE_HOSTS", "example.com"),
        ("TRESTLE__STORAGE__COPY_SOURCE_HOSTS", "https://example.com/path"),
        ("TRESTLE__STORAGE__BLOB_HOSTS", "https://example.com"),
    ] {
        let mut command = crate::client::bare(&["config", "print"]);
        command.env(name, value);
        let ended = trestle_tests::Ended::of(command);
        let key = name.trim_start_matches("TRESTLE__").to_lowercase().replace("__", ".");
        assert_eq!(ended.code, Some(2), "{ended:?}");
        assert!(ended.errors.contains(&key) && ended.errors.contains(value), "{ended:?}");
    }
}

/// The content of the ranges that a test reads.
const DATA: [u8; 4096] = [7; 4096];

/// What a test server responds to a path, and to a range of it.
type Responses = &'static [(&'static str, &'static str, &'static [u8])];

const RESPONSES: Responses = &[
    (
        "/a bytes=512-1535\r",
        "206 Partial\r\ncontent-range: bytes 512-1535/4096",
        DATA.split_at(1024).0,
    ),
    ("/a", "200 OK\r\ncontent-length: 4096", &DATA),
    ("/short", "200 OK\r\ncontent-length: 4097", &DATA),
    (
        "/cut bytes=0-4095\r",
        "206 Partial\r\ncontent-range: bytes 0-1023/4096",
        DATA.split_at(1024).0,
    ),
    ("/huge", "200 OK\r\ncontent-length: 4194304001", b""),
    ("/moved", "302 Found\r\nlocation: /a", b""),
    ("/tab", "200 OK\r\ncontent-length: 0\r\ncontent-type: a\tb", b""),
    ("/twice", "200 OK\r\ncontent-length: 0\r\nx-ms-meta-a: 1\r\nX-MS-META-A: 2", b""),
    ("/named", "200 OK\r\ncontent-length: 0\r\nx-ms-meta-a: \u{e9}", b""),
];

/// A server with these responses, and 404 otherwise. It serves until the process ends.
fn canned(responses: Responses) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let origin = format!("http://{}", listener.local_addr().unwrap());
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut request = [0; 8192];
            let length = stream.read(&mut request).unwrap();
            let request = String::from_utf8_lossy(&request[..length]).to_lowercase();
            let found = responses.iter().find(|(start, ..)| {
                let (path, range) = start.split_once(' ').unwrap_or((start, ""));
                request.starts_with(&format!("get {path} ")) && request.contains(range)
            });
            let (_, head, body) = found.unwrap_or(&("", "404 Not Found", b""));
            let head = format!("HTTP/1.1 {head}\r\nconnection: close\r\n\r\n");
            drop(stream.write_all(&[head.as_bytes(), body].concat()));
        }
    });
    origin
}

/// A server that lists another one, and a container of it.
async fn with_listed(listed: &str) -> (Server, Container) {
    let settings = [("TRESTLE__STORAGE__COPY_SOURCE_HOSTS", listed)];
    let server = Server::start(&["--ephemeral"], &settings);
    let logs = Container::over(&server.channel(), "logs");
    logs.create().await.unwrap();
    (server, logs)
}

/// Stages a block of `blocks` from a URL.
async fn stage(
    logs: &Container,
    source_url: String,
    source_range: Option<ByteRange>,
) -> Result<(), CallError> {
    let spec = proto::StageBlockSpec {
        container: logs.name(),
        blob: "blocks".to_owned(),
        block_id: Bytes::from_static(b"1"),
        source_url,
        source_range,
        ..Default::default()
    };
    let finish = Some(UploadFinish::default());
    let message = proto::StageBlockRequest { spec: Some(spec), finish, ..Default::default() };
    Ok(logs.client().stage_block(tokio_stream::iter([message])).await.map(drop)?)
}

fn range(offset: u64, length: u64) -> Option<ByteRange> {
    Some(ByteRange { offset, length: Some(length) })
}

#[tokio::test]
async fn data_that_a_listed_server_does_not_send_whole_is_rejected() {
    let listed = canned(RESPONSES);
    let (_server, logs) = with_listed(&listed).await;
    for (path, source_range, rule) in [
        ("/short", None, "its content ended early"),
        ("/cut", range(0, 4096), "its server sent another range"),
        ("/short", range(0, 4096), "its server does not support ranges"),
        ("/moved", None, "its server responded with status 302"),
        ("/absent", None, "its server responded with status 404"),
    ] {
        let error = stage(&logs, format!("{listed}{path}"), source_range).await.unwrap_err();
        let expected = (Code::FailedPrecondition, "CANNOT_VERIFY_COPY_SOURCE");
        assert_eq!(error.kind(), expected, "{path}");
        assert!(error.message.contains(rule), "{path}: {}", error.message);
    }
    let huge = format!("{listed}/huge");
    let error = stage(&logs, huge.clone(), None).await.unwrap_err();
    assert_eq!(
        (error.reason.as_str(), error.fields),
        ("REQUEST_BODY_TOO_LARGE", vec!["spec.source".to_owned()])
    );
    logs.create_append("appended").await.unwrap();
    let spec = proto::AppendBlockSpec { source_url: huge, ..logs.appending("appended") };
    assert_eq!(logs.append(spec, "").await.unwrap_err().reason, "REQUEST_BODY_TOO_LARGE");
    assert_eq!(logs.read("appended").await.unwrap().data, "");
    let error = logs.commit("blocks", &["1"]).await.unwrap_err();
    assert_eq!(error.reason, "INVALID_BLOCK_LIST", "nothing was staged");
}

#[tokio::test]
async fn data_of_a_listed_server_becomes_blocks_appends_and_pages() {
    let listed = canned(RESPONSES);
    let (_server, logs) = with_listed(&listed).await;
    let source_url = format!("{listed}/a");
    stage(&logs, source_url.clone(), range(512, 1024)).await.unwrap();
    logs.commit("blocks", &["1"]).await.unwrap();
    assert_eq!(logs.read("blocks").await.unwrap().data, &DATA[..1024]);

    let copy = proto::CopyBlobRequest {
        container: logs.name(),
        blob: "copied".to_owned(),
        source_url: source_url.clone(),
        access_tier: proto::AccessTier::Cold.into(),
        ..Default::default()
    };
    let copied = logs.copy(copy).await.unwrap();
    assert_eq!((copied.access_tier(), copied.size), (proto::AccessTier::Cold, 4096));

    logs.create_append("appended").await.unwrap();
    let spec =
        proto::AppendBlockSpec { source_url: source_url.clone(), ..logs.appending("appended") };
    logs.append(spec, "").await.unwrap();
    assert_eq!(logs.read("appended").await.unwrap().data, &DATA[..]);

    logs.create_pages("pages", 8192).await.unwrap();
    let (container, blob) = (logs.name(), "pages".to_owned());
    let spec = Some(proto::WritePagesSpec {
        container,
        blob,
        offset: 512,
        source_url,
        ..Default::default()
    });
    let finish = Some(UploadFinish::default());
    let message = proto::WritePagesRequest { spec, finish, ..Default::default() };
    logs.client().write_pages(tokio_stream::iter([message])).await.unwrap();
    let expected = [&[0; 512], &DATA[..], &[0; 3584]].concat();
    assert_eq!(logs.read("pages").await.unwrap().data, expected);
}

#[tokio::test]
async fn what_another_server_cannot_check_or_a_blob_cannot_have_is_rejected() {
    let listed = canned(RESPONSES);
    let (_server, logs) = with_listed(&listed).await;
    let copying = |path: &str| proto::CopyBlobRequest {
        container: logs.name(),
        blob: "copied".to_owned(),
        source_url: format!("{listed}{path}"),
        ..Default::default()
    };
    let on_source = |conditions| proto::CopyBlobRequest {
        source_conditions: Some(conditions),
        ..copying("/a")
    };
    let conditions = proto::BlobConditions::default();
    let lease_id = "0f0e0d0c-0b0a-4908-8706-050403020100".to_owned();
    let accent = vec!["\"\u{e9}\"".to_owned()];
    for (request, field) in [
        (copying("/tab"), "properties of the source.content_type"),
        (copying("/twice"), "metadata of the source"),
        (copying("/named"), "metadata of the source"),
        (proto::CopyBlobRequest { copy_source_tags: true, ..copying("/a") }, "copy_source_tags"),
        (
            on_source(proto::BlobConditions {
                if_tags: "k = 'v'".to_owned(),
                ..conditions.clone()
            }),
            "source_conditions.if_tags",
        ),
        (
            on_source(proto::BlobConditions { lease_id, ..conditions.clone() }),
            "source_conditions.lease_id",
        ),
        (
            on_source(proto::BlobConditions { if_none_match: accent, ..conditions }),
            "source_conditions",
        ),
    ] {
        let error = logs.copy(request).await.unwrap_err();
        assert_eq!((error.code, error.fields), (Code::InvalidArgument, vec![field.to_owned()]));
        assert_eq!(logs.get("copied").await.unwrap_err().reason, "BLOB_NOT_FOUND", "{field}");
    }
}
