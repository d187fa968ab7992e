//! Heads of requests for the tests of blobs.

use http::Request;
use tonic::body::Body;

use crate::head::RequestHead;

/// The head of a request to the account `acme`, with these headers.
pub(super) fn head(target: &str, headers: &[(&str, &str)]) -> RequestHead {
    let request = Request::builder().method("PUT").uri(format!("/acme{target}"));
    let request = request.header("host", "127.0.0.1:10000");
    let request =
        headers.iter().fold(request, |request, (name, value)| request.header(*name, *value));
    let mut request = request.body(Body::empty()).expect("a request");
    RequestHead::take(&mut request, "blob").expect("a head")
}
