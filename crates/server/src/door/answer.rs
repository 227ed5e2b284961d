//! The body of an answer, which tells the connection whom it waits for.

use std::pin::Pin;
use std::task::{Context, Poll};

use axum::body::{Body, Bytes};
use hyper::body::{Frame, SizeHint};

use super::activity::{Serving, Stage};

/// An answer on its way out.
pub struct Answer {
    body: Body,
    serving: Serving,
}

impl Answer {
    /// Of a request that was handled.
    pub fn new(body: Body, mut serving: Serving) -> Self {
        serving.goes_to(Stage::Offered);
        Self { body, serving }
    }
}

impl hyper::body::Body for Answer {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Self::Data>, Self::Error>>> {
        let polled = Pin::new(&mut self.body).poll_frame(cx);
        self.serving.goes_to(if polled.is_pending() { Stage::Made } else { Stage::Offered });
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
