//! Requests over a connection of their own, in either version of HTTP.

use bytes::Bytes;
use http::{HeaderValue, Request, Response, Version, header};
use http_body_util::{BodyExt as _, Full};
use hyper::client::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::net::TcpStream;
use tower::BoxError;

/// Sends a request to an address, in its version, and waits for the whole answer.
///
/// # Errors
/// What breaks the connection.
pub(crate) async fn exchange(
    address: &str,
    mut request: Request<Bytes>,
) -> Result<Response<Bytes>, BoxError> {
    let stream = TokioIo::new(TcpStream::connect(address).await?);
    let answer = if request.version() == Version::HTTP_2 {
        // HTTP/2 has the host in `:authority`, HTTP/1 in a header.
        request.headers_mut().remove(header::HOST);
        *request.uri_mut() = format!("http://{address}{}", request.uri()).parse()?;
        let (mut to, connection) = http2::handshake(TokioExecutor::new(), stream).await?;
        tokio::spawn(connection);
        to.send_request(request.map(Full::new)).await?
    } else {
        let host = HeaderValue::from_str(address)?;
        request.headers_mut().entry(header::HOST).or_insert(host);
        let (mut to, connection) = http1::handshake(stream).await?;
        tokio::spawn(connection);
        to.send_request(request.map(Full::new)).await?
    };
    let (parts, body) = answer.into_parts();
    Ok(Response::from_parts(parts, body.collect().await?.to_bytes()))
}
