//! A page of entities, rendered while it is sent: memory holds the encoded entities once, and never
//! more than a chunk of JSON.

use std::{
    pin::Pin,
    task::{Context, Poll},
    vec,
};

use bytes::Bytes;
use http_body::{Body, Frame};

use super::{
    ResponseOrigin, Select,
    wire::Unreadable,
    write::{PAGE_END, push_entity, push_page_start},
};
use crate::table::level::Level;

/// A chunk is sent when it has this many bytes: two writes to a socket for a connection of usual
/// buffers, and little memory for a thousand clients at a time.
const CHUNK_BYTES: usize = 32 * 1024;

/// Room for the entity that fills a chunk.
const ROOM_BYTES: usize = 4096;

/// Pages of up to so many encoded bytes are rendered at once, so that their length can be declared.
const SMALL_BYTES: usize = 16 * 1024;

/// The body of a page.
pub(crate) struct PageBody {
    origin: ResponseOrigin,
    level: Level,
    select: Option<Select>,
    entities: vec::IntoIter<Bytes>,
    state: PageState,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PageState {
    /// Before the first item.
    Start,
    /// The next entity is the first.
    First,
    /// The next entity follows another one.
    Later,
    /// Everything is rendered.
    Ended,
}

impl PageBody {
    /// The page with these encoded entities.
    pub(crate) fn new(
        entities: Vec<Bytes>,
        origin: ResponseOrigin,
        level: Level,
        select: Option<Select>,
    ) -> Self {
        Self { origin, level, select, entities: entities.into_iter(), state: PageState::Start }
    }

    /// The whole page if it is small.
    ///
    /// # Errors
    /// The page itself, if it is not.
    pub(crate) fn small(mut self) -> Result<Result<Bytes, Unreadable>, Self> {
        let bytes: usize = self.entities.as_slice().iter().map(Bytes::len).sum();
        if bytes > SMALL_BYTES {
            return Err(self);
        }
        Ok(self.render(usize::MAX).map(Bytes::from))
    }

    /// Renders until so many bytes are available or the page ends.
    fn render(&mut self, bytes: usize) -> Result<Vec<u8>, Unreadable> {
        let mut out = Vec::with_capacity(bytes.min(CHUNK_BYTES) + ROOM_BYTES);
        if self.state == PageState::Start {
            push_page_start(&mut out, &self.origin, self.level, self.select.as_ref());
            self.state = PageState::First;
        }
        while out.len() < bytes {
            let Some(encoded) = self.entities.next() else {
                out.extend_from_slice(PAGE_END);
                self.state = PageState::Ended;
                break;
            };
            out.extend_from_slice(if self.state == PageState::First { b"{" } else { b",{" });
            self.state = PageState::Later;
            push_entity(&mut out, &encoded, &self.origin, self.level, self.select.as_ref())?;
            out.push(b'}');
        }
        Ok(out)
    }
}

impl Body for PageBody {
    type Data = Bytes;
    type Error = Unreadable;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Unreadable>>> {
        if self.state == PageState::Ended {
            return Poll::Ready(None);
        }
        let chunk = self.render(CHUNK_BYTES);
        if chunk.is_err() {
            self.state = PageState::Ended;
        }
        Poll::Ready(Some(chunk.map(|bytes| Frame::data(bytes.into()))))
    }

    fn is_end_stream(&self) -> bool {
        self.state == PageState::Ended
    }
}
