//! The same door in HTTP/2.

use http_body_util::{BodyExt, Full};
use hyper::body::Bytes;
use hyper::client::conn::http2::{Connection, SendRequest, handshake};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::net::TcpStream;

use crate::support::*;

/// What a connection begins with: that it is HTTP/2, and no settings.
pub(crate) const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";
const FRAME_MAX: usize = 16_384;

fn frame(kind: u8, flags: u8, stream: u8, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    [&length[1..], &[kind, flags, 0, 0, 0, stream], payload].concat()
}

/// `GET /healthz`.
pub(crate) fn whole_head(stream: u8) -> Vec<u8> {
    frame(1, 5, stream, b"\x82\x86\x04\x08/healthz\x01\x05tally")
}

/// Frames of `bytes` bytes altogether, of a head whose one value goes on and on.
pub(crate) fn unfinished_head(stream: u8, bytes: usize) -> Vec<u8> {
    const PREFIX: usize = 9;
    let mut block = b"\x82\x86\x04\x08/healthz\x00\x07x-large\x7f\xe1\xd3\x03".to_vec();
    let frames = bytes.div_ceil(PREFIX + FRAME_MAX);
    block.resize(bytes - frames * PREFIX, b'x');
    let parts = block.chunks(FRAME_MAX).enumerate();
    parts.flat_map(|(part, payload)| frame(if part == 0 { 1 } else { 9 }, 0, stream, payload)).collect()
}

type Io = TokioIo<TcpStream>;

async fn connect(server: &Server) -> (SendRequest<Full<Bytes>>, Connection<Io, Full<Bytes>, TokioExecutor>) {
    let stream = TcpStream::connect(server.address()).await.unwrap();
    handshake(TokioExecutor::new(), TokioIo::new(stream)).await.unwrap()
}

fn request(method: &str, path: &str, headers: &[(&str, &str)], body: &'static [u8]) -> hyper::Request<Full<Bytes>> {
    let mut request = hyper::Request::builder().method(method).uri(format!("http://tally{path}"));
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    request.body(Full::new(Bytes::from_static(body))).unwrap()
}

async fn ask(sender: &mut SendRequest<Full<Bytes>>, request: hyper::Request<Full<Bytes>>) -> (u16, Value) {
    let response = sender.send_request(request).await.unwrap();
    let status = response.status().as_u16();
    let body = response.into_body().collect().await.unwrap().to_bytes();
    (status, serde_json::from_slice(&body).unwrap())
}

#[tokio::test]
async fn nobody_and_too_large_headers_are_refused_and_the_connection_goes_on() {
    let server = Server::start("[bounds]\nheader_bytes_max = 16384\n").await;
    let (mut sender, connection) = connect(&server).await;
    tokio::spawn(connection);
    static LARGE: [u8; 900 << 10] = [b' '; 900 << 10];
    for path in ["/v1/batch", "/v1/read", "/v1/counters/views/post:1"] {
        let (status, problem) =
            ask(&mut sender, request("POST", path, &[("content-type", "application/json")], &LARGE)).await;
        assert_eq!((status, &problem["code"]), (401, &json!("unauthenticated")));
    }
    let large = "x".repeat(20_000);
    let (status, problem) = ask(&mut sender, request("GET", "/healthz", &[("x-large", &large)], b"")).await;
    assert_eq!((status, &problem["code"]), (431, &json!("too_large")));
    assert_eq!(ask(&mut sender, request("GET", "/healthz", &[], b"")).await.0, 200);
}

#[tokio::test]
async fn a_connection_that_asks_for_nothing_is_cut_though_it_answers_pings() {
    let server = Server::start("[bounds]\nheader_read_timeout_ms = 300\nidle_timeout_ms = 300\n").await;
    let (_never_asks, silent) = connect(&server).await;
    let (mut sender, asked) = connect(&server).await;
    let (silent, asked) = (tokio::spawn(silent), tokio::spawn(asked));
    assert_eq!(ask(&mut sender, request("GET", "/healthz", &[], b"")).await.0, 200);
    // The client's side ends when the server hangs up; it would answer pings for ever.
    let _ = silent.await.unwrap();
    let _ = asked.await.unwrap();
}
