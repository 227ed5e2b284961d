//! Each switch of the proxy, against a server that gives back what it gets.

#![allow(clippy::unwrap_used, reason = "a test ends at the first thing that is not so")]

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::{Duration, Instant};
use tally_testing::{Cut, Direction, Proxy};

const SOON: Duration = Duration::from_secs(20);
/// Long enough for loopback to carry what should not come.
const QUIET: Duration = Duration::from_millis(150);

/// Gives back everything, and tells of everything that it got; an empty message is the end of a connection.
fn echo_server() -> (SocketAddr, Receiver<Vec<u8>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let (tell, heard) = mpsc::channel();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let (mut stream, tell) = (stream.unwrap(), tell.clone());
            thread::spawn(move || {
                let mut buffer = [0; 4096];
                loop {
                    let bytes = stream.read(&mut buffer).unwrap_or(0);
                    // The test may be over.
                    let _ = tell.send(buffer[..bytes].to_vec());
                    if bytes == 0 || stream.write_all(&buffer[..bytes]).is_err() {
                        return;
                    }
                }
            });
        }
    });
    (address, heard)
}

fn proxied() -> (Proxy, Receiver<Vec<u8>>) {
    let (server, heard) = echo_server();
    (Proxy::start(server).unwrap(), heard)
}

struct Client(TcpStream);

impl Client {
    fn connect(proxy: &Proxy) -> Self {
        let stream = TcpStream::connect(proxy.address()).unwrap();
        stream.set_nodelay(true).unwrap();
        Self(stream)
    }

    /// A connection that is known to work.
    fn talking(proxy: &Proxy, heard: &Receiver<Vec<u8>>) -> Self {
        let mut client = Self::connect(proxy);
        client.send(b"hello");
        client.expect(b"hello");
        assert_eq!(heard.recv_timeout(SOON).unwrap(), b"hello");
        client
    }

    fn send(&mut self, bytes: &[u8]) {
        self.0.write_all(bytes).unwrap();
    }

    fn expect(&mut self, bytes: &[u8]) {
        self.0.set_read_timeout(Some(SOON)).unwrap();
        let mut got = vec![0; bytes.len()];
        self.0.read_exact(&mut got).unwrap();
        assert_eq!(got, bytes);
    }

    fn expect_silence(&mut self) {
        self.0.set_read_timeout(Some(QUIET)).unwrap();
        let error = self.0.read(&mut [0]).unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut), "{error}");
    }

    fn expect_end(&mut self) {
        self.0.set_read_timeout(Some(SOON)).unwrap();
        match self.0.read(&mut [0]) {
            Ok(bytes) => assert_eq!(bytes, 0),
            Err(error) => assert_eq!(error.kind(), ErrorKind::ConnectionReset),
        }
    }
}

fn expect_nothing_heard(heard: &Receiver<Vec<u8>>) {
    assert_eq!(heard.recv_timeout(QUIET), Err(mpsc::RecvTimeoutError::Timeout));
}

#[test]
fn passes_everything_and_counts() {
    let (proxy, heard) = proxied();
    let mut first = Client::talking(&proxy, &heard);
    let second = Client::talking(&proxy, &heard);
    assert_eq!((proxy.connections(), proxy.open_connections()), (2, 2));

    let sent = thread::scope(|scope| {
        let mut writer = first.0.try_clone().unwrap();
        let sent: Vec<u8> = (0..5_000_000_u32).map(|at| at as u8).collect();
        let writing = scope.spawn(move || {
            writer.write_all(&sent).unwrap();
            writer.shutdown(std::net::Shutdown::Write).unwrap();
            sent
        });
        let mut got = Vec::new();
        first.0.read_to_end(&mut got).unwrap();
        let sent = writing.join().unwrap();
        assert!(got == sent);
        sent
    });
    let mut bytes = 0;
    while bytes < sent.len() {
        bytes += heard.recv_timeout(SOON).unwrap().len();
    }
    assert_eq!(heard.recv_timeout(SOON).unwrap(), b"", "the server hears that the client is done");

    drop(second);
    assert_eq!(heard.recv_timeout(SOON).unwrap(), b"");
    assert_eq!(proxy.connections(), 2);
}

#[test]
fn cut_resets_and_refuses_until_it_passes_again() {
    let (proxy, heard) = proxied();
    let mut client = Client::talking(&proxy, &heard);
    proxy.cut();
    client.expect_end();
    assert_eq!(heard.recv_timeout(SOON).unwrap(), b"");
    assert_eq!(proxy.open_connections(), 0);
    let refused = TcpStream::connect(proxy.address()).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::ConnectionRefused);

    proxy.pass();
    Client::talking(&proxy, &heard);
    assert_eq!(proxy.connections(), 2);
}

#[test]
fn hang_holds_both_directions_and_new_connections() {
    let (proxy, heard) = proxied();
    let mut old = Client::talking(&proxy, &heard);
    proxy.hang();
    old.send(b"old");
    let mut new = Client::connect(&proxy);
    new.send(b"new");
    old.expect_silence();
    new.expect_silence();
    expect_nothing_heard(&heard);

    proxy.pass();
    old.expect(b"old");
    new.expect(b"new");
}

#[test]
fn delay_takes_its_time() {
    let (proxy, heard) = proxied();
    let mut client = Client::talking(&proxy, &heard);
    proxy.delay(QUIET);
    let begun = Instant::now();
    client.send(b"there");
    client.expect(b"there");
    assert!(begun.elapsed() >= 2 * QUIET, "there and back");

    proxy.delay(SOON * 1000);
    client.send(b"again");
    client.expect_silence();
    proxy.pass();
    client.expect(b"again");
}

#[test]
fn dropped_answers_are_lost_and_so_is_their_connection() {
    let (proxy, heard) = proxied();
    let mut client = Client::talking(&proxy, &heard);
    let mut bystander = Client::talking(&proxy, &heard);
    proxy.drop_answers();
    client.send(b"commit");
    assert_eq!(heard.recv_timeout(SOON).unwrap(), b"commit");
    client.expect_silence();

    proxy.pass();
    client.expect_end();
    bystander.send(b"still here");
    bystander.expect(b"still here");
}

#[test]
fn cut_before_a_request_loses_it() {
    let (proxy, heard) = proxied();
    let mut client = Client::talking(&proxy, &heard);
    let mut bystander = Client::talking(&proxy, &heard);
    proxy.cut_when(Cut::Before, |direction, bytes| direction == Direction::Request && bytes == b"commit");
    client.send(b"begin");
    client.expect(b"begin");
    assert_eq!(heard.recv_timeout(SOON).unwrap(), b"begin");
    client.send(b"commit");
    client.expect_end();
    assert_eq!(heard.recv_timeout(SOON).unwrap(), b"");
    bystander.send(b"select");
    bystander.expect(b"select");
}

#[test]
fn cut_after_a_request_loses_its_answer_only() {
    let (proxy, heard) = proxied();
    let mut client = Client::talking(&proxy, &heard);
    proxy.cut_when(Cut::After, |direction, bytes| direction == Direction::Request && bytes == b"commit");
    client.send(b"commit");
    client.expect_end();
    assert_eq!(heard.recv_timeout(SOON).unwrap(), b"commit");
    assert_eq!(heard.recv_timeout(SOON).unwrap(), b"");
}

#[test]
fn cut_around_an_answer() {
    for cut in [Cut::Before, Cut::After] {
        let (proxy, heard) = proxied();
        let mut client = Client::talking(&proxy, &heard);
        proxy.cut_when(cut, |direction, _| direction == Direction::Answer);
        client.send(b"commit");
        assert_eq!(heard.recv_timeout(SOON).unwrap(), b"commit");
        if cut == Cut::After {
            client.expect(b"commit");
        }
        client.expect_end();
        assert_eq!(heard.recv_timeout(SOON).unwrap(), b"");
    }
}

#[test]
fn a_rule_may_match_once() {
    let (proxy, heard) = proxied();
    let is_done = AtomicBool::new(false);
    let mut client = Client::talking(&proxy, &heard);
    proxy.cut_when(Cut::Before, move |_, _| !is_done.swap(true, Ordering::SeqCst));
    client.send(b"lost");
    client.expect_end();
    assert_eq!(heard.recv_timeout(SOON).unwrap(), b"");
    Client::talking(&proxy, &heard);
}

#[test]
fn a_server_that_is_away_ends_the_connection() {
    let nobody = tally_testing::free_address().unwrap();
    let proxy = Proxy::start(nobody).unwrap();
    Client::connect(&proxy).expect_end();
}

#[test]
fn a_url_is_told_as_it_is_through_the_proxy() {
    for (before, after) in
        [("postgres://app:word@", "/tally?sslmode=disable"), ("redis://", "?prefix=a"), ("redis://", "")]
    {
        let (proxy, url) = Proxy::before(&format!("{before}127.0.0.1:1{after}")).unwrap();
        assert_eq!(url, format!("{before}{}{after}", proxy.address()));
    }
    assert!(Proxy::before("redis+cluster://127.0.0.1:1,127.0.0.1:2").is_err(), "it is before one server");
}
