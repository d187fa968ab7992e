//! Requests and responses of a test service.

use std::{convert::Infallible, time::Duration};

use bytes::Bytes;
use futures::stream;
use http_body::Frame;
use http_body_util::{BodyExt as _, StreamBody};
use tonic::{Code, Status, body::Body};
use tower::{Layer as _, ServiceExt as _, service_fn};

use super::{encoding::DecompressError, *};
use crate::layer::CallService;
use crate::layer::body_bytes::{BodyBounds, BodyBytesLayer};
use crate::layer::methods::Methods;
use trestle_model::{fault::reason_name, limits::MESSAGE_BYTES_MAX};

const ALL: [MessageEncoding; 3] =
    [MessageEncoding::Gzip, MessageEncoding::Deflate, MessageEncoding::Zstd];

fn framed(flag: u8, content: &[u8]) -> Vec<u8> {
    let length = u32::try_from(content.len()).unwrap();
    [&[flag][..], &length.to_be_bytes(), content].concat()
}

/// The plain messages of a body.
fn contents(mut body: &[u8], encoding: MessageEncoding) -> Vec<(u8, Vec<u8>)> {
    let mut contents = Vec::new();
    while let Some((&[flag, length @ ..], rest)) = body.split_first_chunk::<5>() {
        let (content, rest) = rest.split_at(u32::from_be_bytes(length) as usize);
        let content = match flag {
            0 => content.to_vec(),
            _ => encoding.decompress(content, MESSAGE_BYTES_MAX, |_| true).unwrap(),
        };
        contents.push((flag, content));
        body = rest;
    }
    contents
}

/// A service that responds with the bytes of the request, behind a pool of bytes.
fn pooled_echo() -> CallService {
    let methods = Methods::from_descriptors(trestle_proto::FILE_DESCRIPTOR_SET).unwrap();
    let bounds = BodyBounds::of_services(64 * 1024 * 1024, Duration::from_secs(60));
    CallService::new(BodyBytesLayer::new(bounds, methods).layer(echo()))
}

/// The same without a pool.
fn echo() -> CallService {
    let echo = service_fn(|request: Request| async move {
        let answer = match request.into_body().collect().await {
            Ok(body) => Response::new(Body::new(http_body_util::Full::new(body.to_bytes()))),
            Err(status) => status.into_http(),
        };
        Ok::<_, Infallible>(answer)
    });
    let boxed = MessageCompressionLayer::new(MESSAGE_BYTES_MAX).layer(CallService::new(echo));
    CallService::new(boxed)
}

fn request(headers: &[(HeaderName, &str)], pieces: Vec<Bytes>) -> Request {
    let frames = pieces.into_iter().map(|piece| Ok::<_, Status>(Frame::data(piece)));
    let mut request = Request::new(Body::new(StreamBody::new(stream::iter(frames))));
    for (name, value) in headers {
        request.headers_mut().insert(name, HeaderValue::from_str(value).unwrap());
    }
    request
}

async fn sent(service: &CallService, request: Request) -> (HeaderMap, Bytes) {
    let Ok(answer) = service.clone().oneshot(request).await;
    let (head, body) = answer.into_parts();
    (head.headers, body.collect().await.unwrap().to_bytes())
}

fn rejected_with(headers: &HeaderMap) -> (Code, String) {
    use tonic_types::StatusExt as _;
    let status = Status::from_header_map(headers).expect("a status");
    let info = status.get_details_error_info().expect("error info");
    (status.code(), info.reason)
}

#[tokio::test]
async fn decompresses_messages_however_their_bytes_are_split() {
    let text = b"a text that occurs twice, a text that occurs twice".as_slice();
    for encoding in ALL {
        let compressed = framed(1, &encoding.compress(text).unwrap());
        let body = [compressed.clone(), framed(0, b"plain"), framed(0, b""), compressed].concat();
        let expected = [framed(0, text), framed(0, b"plain"), framed(0, b""), framed(0, text)];
        for size in [1, 4, 7, body.len()] {
            let pieces = body.chunks(size).map(Bytes::copy_from_slice).collect();
            let headers = [(ENCODING, encoding.name()), (ACCEPT_ENCODING, "identity")];

            let (_, received) = sent(&echo(), request(&headers, pieces)).await;

            assert_eq!(received, expected.concat(), "{encoding:?} size={size}");
        }
    }
}

#[tokio::test]
async fn a_decompression_bomb_is_rejected_before_it_takes_memory() {
    let bomb = vec![0; 16 * MESSAGE_BYTES_MAX];
    for encoding in ALL {
        let compressed = encoding.compress(&bomb).unwrap();
        let mut most = 0;
        let hold = |bytes: usize| {
            most = most.max(bytes);
            true
        };
        let result = encoding.decompress(&compressed, MESSAGE_BYTES_MAX, hold);
        assert!(matches!(result, Err(DecompressError::TooLarge)), "{encoding:?}");
        assert_eq!(most, MESSAGE_BYTES_MAX + 1, "{encoding:?}");

        let headers = [(ENCODING, encoding.name())];
        let pieces = vec![framed(1, &compressed).into()];
        let (headers, _) = sent(&pooled_echo(), request(&headers, pieces)).await;
        let reason = reason_name(Reason::RpcMessageTooLarge).to_owned();
        assert_eq!(rejected_with(&headers), (Code::ResourceExhausted, reason), "{encoding:?}");
    }
}

#[test]
fn a_message_of_exactly_the_limit_is_accepted() {
    let largest = vec![7; MESSAGE_BYTES_MAX];
    for encoding in ALL {
        let compressed = encoding.compress(&largest).unwrap();
        let read = encoding.decompress(&compressed, MESSAGE_BYTES_MAX, |_| true).unwrap();
        assert!(read == largest, "{encoding:?}");
    }
}

/// The head of a frame of zstd states the memory that its reader needs.
#[test]
fn a_window_larger_than_a_message_is_rejected() {
    // Magic number, no content size, a window of 128 MiB; one last block of a byte 4 times.
    let window = |log: u8| [0x28, 0xb5, 0x2f, 0xfd, 0, (log - 10) << 3, 0x23, 0, 0, 7];
    let read = |log| MessageEncoding::Zstd.decompress(&window(log), MESSAGE_BYTES_MAX, |_| true);

    assert_eq!(read(23).unwrap(), [7; 4]);
    assert!(matches!(read(24), Err(DecompressError::Malformed(_))));
    assert!(matches!(read(27), Err(DecompressError::Malformed(_))));
}

#[tokio::test]
async fn decompressed_bytes_count_for_the_budget_of_bodies() {
    let bounds = |bytes_max| BodyBounds::of_services(bytes_max, Duration::from_secs(60));
    let methods = Methods::from_descriptors(trestle_proto::FILE_DESCRIPTOR_SET).unwrap();
    let layer = |bytes_max| BodyBytesLayer::new(bounds(bytes_max), methods.clone());
    let compressed = framed(1, &MessageEncoding::Zstd.compress(&[0; 1024 * 1024]).unwrap());
    assert!(compressed.len() < 1024);
    for (bytes_max, is_accepted) in [(512 * 1024, false), (4 * 1024 * 1024, true)] {
        let service = CallService::new(layer(bytes_max).layer(echo()));
        let headers = [(ENCODING, "zstd"), (ACCEPT_ENCODING, "identity")];
        let pieces = vec![compressed.clone().into()];

        let (headers, _) = sent(&service, request(&headers, pieces)).await;

        let rejected = headers.contains_key(Status::GRPC_STATUS).then(|| rejected_with(&headers));
        let busy = (Code::ResourceExhausted, "SERVER_BUSY".to_owned());
        assert_eq!(rejected, (!is_accepted).then_some(busy));
    }
}

#[tokio::test]
async fn without_a_pool_of_bytes_a_decompressed_message_is_small() {
    for encoding in ALL {
        for (bytes, is_accepted) in [(32 * 1024, true), (128 * 1024, false)] {
            let message = framed(1, &encoding.compress(&vec![0; bytes]).unwrap());
            let headers = [(ENCODING, encoding.name()), (ACCEPT_ENCODING, "identity")];

            let (headers, _) = sent(&echo(), request(&headers, vec![message.into()])).await;

            let rejected = headers.contains_key(Status::GRPC_STATUS);
            assert_eq!(rejected, !is_accepted, "{encoding:?} {bytes}");
        }
    }
}

#[tokio::test]
async fn a_service_without_compression_rejects_it_and_reports_that() {
    let plain = service_fn(|_: Request| async { Ok(Status::ok("").into_http()) });
    let service = CallService::new(UncompressedLayer::default().layer(CallService::new(plain)));
    for encoding in ["gzip", "zstd", "br"] {
        let (headers, _) = sent(&service, request(&[(ENCODING, encoding)], vec![])).await;
        let expected = (Code::Unimplemented, "NOT_IMPLEMENTED".to_owned());
        assert_eq!(rejected_with(&headers), expected, "{encoding}");
        assert_eq!(headers[ACCEPT_ENCODING], "identity");
    }
    for headers in [&[][..], &[(ENCODING, "identity"), (ACCEPT_ENCODING, "gzip")]] {
        let (headers, _) = sent(&service, request(headers, vec![])).await;
        assert_eq!(headers[Status::GRPC_STATUS], "0");
    }
}

#[tokio::test]
async fn malformed_and_unsupported_encodings_are_rejected_with_what_is_supported() {
    for encoding in ALL {
        let pieces = vec![framed(1, b"no such encoding").into()];
        let (headers, _) = sent(&echo(), request(&[(ENCODING, encoding.name())], pieces)).await;
        let expected = (Code::InvalidArgument, "INVALID_INPUT".to_owned());
        assert_eq!(rejected_with(&headers), expected, "{encoding:?}");
    }
    let (headers, _) = sent(&echo(), request(&[(ENCODING, "br")], vec![])).await;
    assert_eq!(rejected_with(&headers), (Code::Unimplemented, "NOT_IMPLEMENTED".to_owned()));
    assert_eq!(headers[ACCEPT_ENCODING], "gzip,zstd,deflate,identity");
}

#[tokio::test]
async fn large_messages_of_a_response_are_compressed_and_small_ones_are_not() {
    let (small, large) = (vec![1; 1023], vec![2; 1024]);
    let random: Vec<u8> =
        (0..2048_u32).map(|n| n.wrapping_mul(2_654_435_761).to_le_bytes()[2]).collect();
    let body = [framed(0, &small), framed(0, &large), framed(0, &random)].concat();
    for encoding in ALL {
        let headers = [(ENCODING, encoding.name())];
        let pieces = body.chunks(700).map(Bytes::copy_from_slice).collect();

        let (headers, received) = sent(&echo(), request(&headers, pieces)).await;

        assert_eq!(headers[ENCODING], encoding.name());
        let contents = contents(&received, encoding);
        assert_eq!(contents[0], (0, small.clone()));
        assert_eq!(contents[1], (1, large.clone()));
        assert_eq!(contents[2].1, random);
        assert!(received.len() <= body.len());
    }
}

#[test]
fn compresses_responses_only_for_clients_that_request_it() {
    let requested_by = |sent: Option<&'static str>, accepted: Option<&'static str>| {
        let mut headers = HeaderMap::new();
        let pairs = [(ENCODING, sent), (ACCEPT_ENCODING, accepted)];
        for (name, value) in pairs {
            headers.extend(value.map(|value| (name, HeaderValue::from_static(value))));
        }
        let declared = declared(&headers).unwrap();
        requested(declared, &headers).map(MessageEncoding::name)
    };
    // What the libraries of C, Java and .NET offer by themselves.
    for offered in ["identity, deflate, gzip", "gzip", "identity,gzip,deflate", "identity", ""] {
        assert_eq!(requested_by(None, Some(offered)), None, "{offered}");
    }
    assert_eq!(requested_by(None, None), None);
    assert_eq!(requested_by(Some("identity"), Some("gzip")), None);
    assert_eq!(requested_by(Some("gzip"), None), Some("gzip"));
    assert_eq!(requested_by(Some("gzip"), Some("identity, deflate, gzip")), Some("gzip"));
    assert_eq!(requested_by(Some("gzip"), Some("identity")), None);
    assert_eq!(requested_by(None, Some("gzip,identity")), Some("gzip"));
    assert_eq!(requested_by(None, Some("gzip,zstd,identity")), Some("gzip"));
    assert_eq!(requested_by(None, Some("zstd")), Some("zstd"));
    assert_eq!(requested_by(None, Some("identity,gzip,zstd")), Some("zstd"));
    assert_eq!(requested_by(Some("gzip"), Some("br,zstd,identity")), Some("zstd"));
}
