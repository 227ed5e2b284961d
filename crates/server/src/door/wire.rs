//! The bytes of a connection, as they pass between the socket and the protocol: counted and timed; refusals
//! that the protocol's library would send without a word get their words here.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::http::StatusCode;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio::time::Sleep;

use super::activity::Activity;
use super::framing::Framing;
use crate::http::problem::{Problem, on_the_wire};

const HTTP_2: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// Longest time that a refused client is listened to, so that it gets to read why.
const LINGER: Duration = Duration::from_secs(2);
/// Longest time for a few words to a client that is cut.
const WORDS: Duration = Duration::from_secs(1);

/// A socket, or TLS over one.
pub(super) struct Wire<S> {
    stream: S,
    activity: Arc<Activity>,
    /// What was read to see which protocol is spoken, to be read again.
    again: Vec<u8>,
    /// Unknown until the first bytes are there.
    framing: Option<Framing>,
    words: Words,
    linger: Option<Pin<Box<Sleep>>>,
}

/// What is written instead of a bare refusal.
enum Words {
    None,
    /// Written up to here.
    Writing(Vec<u8>, usize),
}

impl<S: AsyncRead + AsyncWrite + Unpin> Wire<S> {
    /// Over a stream that nothing was read from.
    pub(super) fn new(stream: S, activity: Arc<Activity>) -> Self {
        Self { stream, activity, again: Vec::new(), framing: None, words: Words::None, linger: None }
    }

    /// Whether HTTP/2 is spoken: reads as much as it takes to tell.
    pub(super) async fn speaks_http_2(&mut self) -> io::Result<bool> {
        let mut bytes = [0; HTTP_2.len()];
        let mut filled = 0;
        while filled < bytes.len() && bytes[..filled] == HTTP_2[..filled] {
            let read = self.read(&mut bytes[filled..]).await?;
            if read == 0 {
                break;
            }
            filled += read;
        }
        self.again = bytes[..filled].to_vec();
        let is_http_2 = bytes[..filled] == *HTTP_2;
        if is_http_2 {
            self.framing = Some(Framing::http_2());
        } else {
            self.framing = Some(Framing::http_1());
            self.arrived(&bytes[..filled])?;
        }
        Ok(is_http_2)
    }

    /// Counts what has come.
    fn arrived(&mut self, bytes: &[u8]) -> io::Result<()> {
        let Some(framing) = &mut self.framing else { return Ok(()) };
        if !self.activity.set_unfinished(framing.follow(bytes)) {
            return Err(io::Error::new(io::ErrorKind::OutOfMemory, "unfinished requests hold too much"));
        }
        Ok(())
    }

    /// Tells a client why it is cut, if it listens.
    pub(super) async fn say(&mut self, problem: &Problem) {
        let words = on_the_wire(problem);
        let saying = async {
            self.stream.write_all(&words).await?;
            self.stream.shutdown().await
        };
        // It is cut in any case.
        let _ = tokio::time::timeout(WORDS, saying).await;
    }

    fn poll_words(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while let Words::Writing(bytes, written) = &mut self.words {
            if *written == bytes.len() {
                self.words = Words::None;
                break;
            }
            *written += ready!(Pin::new(&mut self.stream).poll_write(cx, &bytes[*written..]))?;
        }
        Poll::Ready(Ok(()))
    }

    fn written<T>(&self, polled: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        self.activity.set_blocked(polled.is_pending());
        polled
    }
}

/// Where the library's own refusal begins: a head of 4xx that was made without us, at the very end.
fn bare_refusal(bytes: &[u8]) -> Option<(usize, StatusCode)> {
    const START: &[u8] = b"HTTP/1.1 4";
    const SIZE_MAX: usize = 256;
    if !bytes.ends_with(b"\r\n\r\n") {
        return None;
    }
    let from = bytes.len().saturating_sub(SIZE_MAX);
    let at = from + bytes[from..].windows(START.len()).rposition(|window| window == START)?;
    let text = std::str::from_utf8(&bytes[at..]).ok()?;
    let is_bare = text.contains("\r\ncontent-length: 0\r\n") && !text.contains("\r\nx-request-id:");
    let status = StatusCode::from_bytes(text.split(' ').nth(1)?.as_bytes()).ok()?;
    is_bare.then_some((at, status))
}

fn refusal(status: StatusCode) -> Vec<u8> {
    on_the_wire(&match status {
        StatusCode::URI_TOO_LONG | StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE => Problem::large_head(status),
        _ => Problem::bad_request("this is not a request of HTTP"),
    })
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncRead for Wire<S> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        if !self.again.is_empty() {
            let fits = self.again.len().min(buf.remaining());
            buf.put_slice(&self.again[..fits]);
            self.again.drain(..fits);
            return Poll::Ready(Ok(()));
        }
        let before = buf.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(cx, buf))?;
        Poll::Ready(self.arrived(&buf.filled()[before..]))
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Wire<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let bare = if matches!(self.framing, Some(Framing::Http2(_))) { None } else { bare_refusal(buf) };
        let buf = match bare {
            Some((0, status)) => {
                if matches!(self.words, Words::None) {
                    self.activity.set_unread();
                    self.words = Words::Writing(refusal(status), 0);
                }
                let polled = self.poll_words(cx);
                ready!(self.written(polled))?;
                return Poll::Ready(Ok(buf.len()));
            }
            // First what comes before it.
            Some((at, _)) => &buf[..at],
            None => buf,
        };
        let polled = Pin::new(&mut self.stream).poll_write(cx, buf);
        self.written(polled)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        if let [only] = bufs {
            return self.poll_write(cx, only);
        }
        let polled = Pin::new(&mut self.stream).poll_write_vectored(cx, bufs);
        self.written(polled)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let polled = Pin::new(&mut self.stream).poll_flush(cx);
        self.written(polled)
    }

    /// Closes. A client that is still sending is heard out for a moment: closing on unread bytes would
    /// reset the connection, and take the answer with it.
    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.linger.is_none() {
            ready!(Pin::new(&mut self.stream).poll_shutdown(cx))?;
            if !self.activity.is_unread() {
                return Poll::Ready(Ok(()));
            }
            self.linger = Some(Box::pin(tokio::time::sleep(LINGER)));
        }
        let this = &mut *self;
        let mut scratch = [0; 4096];
        loop {
            if this.linger.as_mut().is_none_or(|linger| linger.as_mut().poll(cx).is_ready()) {
                return Poll::Ready(Ok(()));
            }
            let mut buf = ReadBuf::new(&mut scratch);
            match ready!(Pin::new(&mut this.stream).poll_read(cx, &mut buf)) {
                Ok(()) if !buf.filled().is_empty() => {}
                _ => return Poll::Ready(Ok(())),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_librarys_own_refusals_are_replaced() {
        let bare = b"HTTP/1.1 431 Request Header Fields Too Large\r\nconnection: close\r\ncontent-length: 0\r\ndate: Mon, 16 Nov 2026 18:00:00 GMT\r\n\r\n";
        assert_eq!(bare_refusal(bare), Some((0, StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE)));
        let after = [b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}".as_slice(), bare].concat();
        assert_eq!(bare_refusal(&after), Some((40, StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE)));
        let ours = b"HTTP/1.1 404 Not Found\r\nx-request-id: 1\r\ncontent-length: 0\r\n\r\n";
        assert_eq!(bare_refusal(ours), None);
        assert_eq!(bare_refusal(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n"), None);
        assert_eq!(bare_refusal(b"\r\n\r\n"), None);
    }

    #[tokio::test]
    async fn the_preface_tells_the_protocols_apart_however_it_arrives() {
        let cases: [(&[u8], bool); 5] =
            [(HTTP_2, true), (b"GET / HTTP/1.1\r\n", false), (b"PRI * HTTP/1.1", false), (b"P", false), (b"", false)];
        for (sent, is_http_2) in cases {
            let activity = Activity::new(super::super::memory::Memory::new(1 << 20));
            let (mut far, near) = tokio::io::duplex(1);
            let sending = tokio::spawn(async move { far.write_all(sent).await });
            let mut wire = Wire::new(near, activity);
            assert_eq!(wire.speaks_http_2().await.unwrap(), is_http_2, "{sent:?}");
            let mut read = Vec::new();
            wire.read_to_end(&mut read).await.unwrap();
            assert_eq!(read, sent, "nothing is lost");
            sending.await.unwrap().unwrap();
        }
    }
}
