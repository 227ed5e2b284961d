//! Bytes on a socket, for what a well-behaved client would never send.

use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::{ADMIN_KEY, Server};

/// Longest wait for a byte, and for the end of a connection.
const PATIENCE: Duration = Duration::from_secs(60);

/// An answer, cut out of the bytes of a connection.
#[derive(Debug)]
pub struct RawAnswer {
    pub status: u16,
    pub head: String,
    pub body: Vec<u8>,
}

/// A connection of its own.
pub struct Raw(pub TcpStream);

impl Raw {
    pub async fn connect(server: &Server) -> Self {
        Self(TcpStream::connect(server.address()).await.unwrap())
    }

    /// Sends bytes; a server that has hung up already is no error.
    pub async fn send(&mut self, bytes: impl AsRef<[u8]>) -> bool {
        self.0.write_all(bytes.as_ref()).await.is_ok()
    }

    /// Everything until the server closes the connection.
    pub async fn rest(mut self) -> Vec<u8> {
        let mut bytes = Vec::new();
        let reading = self.0.read_to_end(&mut bytes);
        // A reset ends a connection as well as a goodbye does.
        let _ = tokio::time::timeout(PATIENCE, reading).await.expect("the server never ended the connection");
        bytes
    }

    /// Reads until this many bytes of headers and bodies are there, or the end.
    pub async fn read_some(&mut self) -> Vec<u8> {
        let mut bytes = vec![0; 64 * 1024];
        let read = tokio::time::timeout(PATIENCE, self.0.read(&mut bytes)).await.expect("an answer").unwrap_or(0);
        bytes.truncate(read);
        bytes
    }
}

/// Sends a request on a connection of its own, which the server closes, and gives its answer.
pub async fn exchange(server: &Server, request: impl AsRef<[u8]>) -> RawAnswer {
    let mut raw = Raw::connect(server).await;
    raw.send(request).await;
    parse(&raw.rest().await)
}

/// A request without a body, with the admin key: the path goes out exactly as written.
pub async fn ask(server: &Server, method: &str, path: &str) -> RawAnswer {
    let head = format!(
        "{method} {path} HTTP/1.1\r\nhost: tally\r\nauthorization: Bearer {ADMIN_KEY}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
    );
    exchange(server, head).await
}

/// Cuts the first answer out of what a connection gave.
pub fn parse(bytes: &[u8]) -> RawAnswer {
    let end = bytes.windows(4).position(|window| window == b"\r\n\r\n");
    let end = end.unwrap_or_else(|| panic!("no answer in {:?}", String::from_utf8_lossy(bytes)));
    let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok());
    RawAnswer { status: status.unwrap_or_else(|| panic!("{head}")), head, body: bytes[end + 4..].to_vec() }
}

impl RawAnswer {
    pub fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// Checks that this is a problem document with this status and code.
    pub fn problem(&self, status: u16, code: &str) -> serde_json::Value {
        assert_eq!(self.status, status, "{self:?}");
        assert!(self.head.contains("content-type: application/problem+json"), "{self:?}");
        let problem = self.json();
        assert_eq!(problem["code"], code, "{problem}");
        problem
    }
}
