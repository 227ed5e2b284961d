//! Where requests begin and end among the bytes of a connection, so that what is unfinished can be counted and timed.
//!
//! Nothing is decided here: what a request says is for the protocol's library, which gets every byte as it came. It does
//! not tell how much of what it read is still waiting for the rest.

mod http_1;
mod http_2;

use self::http_1::Http1;
use self::http_2::Http2;

/// One connection's bytes, in the protocol that it speaks.
pub(super) enum Framing {
    Http1(Http1),
    Http2(Http2),
}

/// What is there of something that is not whole.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Unfinished {
    /// Bytes that the library has to keep until the rest is there.
    pub bytes: usize,
    /// The head that they are of, counted from 1; none where they are of none.
    pub head: Option<u64>,
}

impl Framing {
    pub(super) fn http_1() -> Self {
        Self::Http1(Http1::default())
    }

    /// After the preface.
    pub(super) fn http_2() -> Self {
        Self::Http2(Http2::default())
    }

    /// Follows more bytes, and says what is unfinished after them.
    pub(super) fn follow(&mut self, bytes: &[u8]) -> Unfinished {
        match self {
            Self::Http1(framing) => framing.follow(bytes),
            Self::Http2(framing) => framing.follow(bytes),
        }
    }
}
