//! Copies from a URL of another server that the settings list.

use std::{
    io::{Read as _, Write as _},
    net::TcpListener,
    thread,
};

use trestle_tests::Server;

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
