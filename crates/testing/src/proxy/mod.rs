//! A network between a client and a server that fails when it is told to.

mod accept;
mod connection;
mod rules;

pub use rules::{holds, once};

use crate::child::listen;
use anyhow::{Context, Result};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::time::Duration;

/// Which way bytes go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// From the client to the server.
    Request,
    /// From the server to the client.
    Answer,
}

/// When a connection is cut: see [`Proxy::cut_when`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cut {
    /// What matched is lost.
    Before,
    /// What matched arrives, and nothing after it.
    After,
}

/// What the network does at the moment.
#[derive(Clone)]
enum Mode {
    Pass,
    Cut,
    Hang,
    Delay(Duration),
    DropAnswers,
    CutWhen(Cut, Rule),
}

type Rule = Arc<dyn Fn(Direction, &[u8]) -> bool + Send + Sync>;

/// A mode to take on, and where to say that it holds.
type Order = (Mode, mpsc::Sender<Result<()>>);

/// Connections, since the beginning and now.
#[derive(Default)]
struct Counts {
    accepted: AtomicUsize,
    open: AtomicUsize,
}

/// A proxy in front of one server. It begins by passing everything on; dropping it cuts everything.
///
/// It runs on a thread of its own, so a test may block while it works. Each switch acts on the connections
/// that there are and on those to come, replaces the one before, and holds when the call returns.
pub struct Proxy {
    address: SocketAddr,
    orders: Option<tokio::sync::mpsc::UnboundedSender<Order>>,
    counts: Arc<Counts>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Proxy {
    /// Listens on a free loopback port for connections to `upstream`.
    pub fn start(upstream: SocketAddr) -> Result<Self> {
        let listener = listen()?;
        let address = listener.local_addr()?;
        let (orders, todo) = tokio::sync::mpsc::unbounded_channel();
        let counts = Arc::new(Counts::default());
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let acceptor = {
            let _inside = runtime.enter();
            accept::Acceptor::new(listener, upstream, counts.clone())?
        };
        let thread = std::thread::Builder::new().name("proxy".into()).spawn(move || {
            runtime.block_on(acceptor.run(todo));
        })?;
        Ok(Self { address, orders: Some(orders), counts, thread: Some(thread) })
    }

    /// In front of the one server that a URL names, and the same URL through it.
    pub fn before(url: &str) -> Result<(Self, String)> {
        let (scheme, rest) = url.split_once("://").context("a URL has a scheme")?;
        let (named, path) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
        let (user, address) = named.rsplit_once('@').map_or(("", named), |(user, address)| (user, address));
        let proxy = Self::start(address.parse().with_context(|| format!("{address} is one server"))?)?;
        let user = if user.is_empty() { String::new() } else { format!("{user}@") };
        let through = format!("{scheme}://{user}{}{path}", proxy.address());
        Ok((proxy, through))
    }

    /// Where clients connect to.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// How many connections were taken since the start.
    pub fn connections(&self) -> usize {
        self.counts.accepted.load(Ordering::SeqCst)
    }

    /// How many connections there are now.
    pub fn open_connections(&self) -> usize {
        self.counts.open.load(Ordering::SeqCst)
    }

    /// Passes everything on.
    pub fn pass(&self) {
        self.switch(Mode::Pass);
    }

    /// Resets every connection, and refuses new ones.
    pub fn cut(&self) {
        self.switch(Mode::Cut);
    }

    /// A partition: connections stay open and new ones are taken, but nothing gets through in either direction.
    /// What was sent meanwhile arrives once the switch is another.
    pub fn hang(&self) {
        self.switch(Mode::Hang);
    }

    /// Holds back whatever arrives, in both directions, each time for this long.
    pub fn delay(&self, by: Duration) {
        self.switch(Mode::Delay(by));
    }

    /// Passes on requests and swallows the answers: what was asked for is done, and nobody hears of it.
    /// A connection that lost an answer is reset at the next switch, because the rest would make no sense.
    pub fn drop_answers(&self) {
        self.switch(Mode::DropAnswers);
    }

    /// Passes everything on until `matches` says yes to some bytes; then cuts the connection that they came on,
    /// before or after them. Bytes come as they were read: a long message in pieces, short ones together.
    ///
    /// It stays in place for other connections. To cut one only, let `matches` say yes once.
    pub fn cut_when(&self, cut: Cut, matches: impl Fn(Direction, &[u8]) -> bool + Send + Sync + 'static) {
        self.switch(Mode::CutWhen(cut, Arc::new(matches)));
    }

    fn switch(&self, mode: Mode) {
        if let Err(error) = self.order(mode) {
            panic!("the proxy on {} could not be switched: {error:#}", self.address);
        }
    }

    fn order(&self, mode: Mode) -> Result<()> {
        let (done, is_done) = mpsc::channel();
        let orders = self.orders.as_ref().context("it is going away")?;
        orders.send((mode, done)).ok().context("its thread ended")?;
        is_done.recv().context("its thread ended")?
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        // Without anybody to give orders the thread ends.
        self.orders = None;
        let _ = self.thread.take().map(std::thread::JoinHandle::join);
    }
}
