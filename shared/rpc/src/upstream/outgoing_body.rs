//! What is sent over a connection to a role.

use std::{
    pin::Pin,
    task::{Context, Poll},
};

use bytes::Bytes;
use http_body::{Frame, SizeHint};
use tonic::{Status, body::Body};

use super::replay::Replay;

/// What is sent over a connection.
pub(super) enum OutgoingBody {
    /// A call of a client.
    Call(Replay),
    /// A call of the link itself.
    Own(Body),
}

impl http_body::Body for OutgoingBody {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        match self.get_mut() {
            Self::Call(body) => Pin::new(body).poll_frame(cx),
            Self::Own(body) => Pin::new(body).poll_frame(cx),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Call(body) => body.is_end_stream(),
            Self::Own(body) => body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Call(body) => body.size_hint(),
            Self::Own(body) => body.size_hint(),
        }
    }
}
