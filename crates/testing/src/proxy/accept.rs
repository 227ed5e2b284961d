//! Takes connections and orders.

use super::connection::connect;
use super::{Counts, Mode, Order};
use anyhow::Result;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;

/// All of the proxy but what a single connection does.
pub(super) struct Acceptor {
    address: SocketAddr,
    upstream: SocketAddr,
    counts: Arc<Counts>,
    /// Nothing while connections are refused.
    listener: Option<TcpListener>,
    connections: JoinSet<()>,
    mode: watch::Sender<Mode>,
}

impl Acceptor {
    /// Inside the runtime that it is going to run on.
    pub(super) fn new(listener: std::net::TcpListener, upstream: SocketAddr, counts: Arc<Counts>) -> Result<Self> {
        let address = listener.local_addr()?;
        listener.set_nonblocking(true)?;
        let listener = Some(TcpListener::from_std(listener)?);
        let mode = watch::Sender::new(Mode::Pass);
        Ok(Self { address, upstream, counts, listener, connections: JoinSet::new(), mode })
    }

    /// Works until nobody can give orders any more.
    pub(super) async fn run(mut self, mut orders: mpsc::UnboundedReceiver<Order>) {
        loop {
            tokio::select! {
                order = orders.recv() => match order {
                    Some((mode, done)) => {
                        let switched = self.switch(mode).await;
                        // Whoever asked may have given up.
                        let _ = done.send(switched);
                    }
                    None => return self.connections.shutdown().await,
                },
                client = accept(self.listener.as_ref()) => self.take(client),
                Some(_) = self.connections.join_next() => {}
            }
        }
    }

    async fn switch(&mut self, mode: Mode) -> Result<()> {
        if matches!(mode, Mode::Cut) {
            self.listener = None;
            self.connections.shutdown().await;
        } else if self.listener.is_none() {
            self.listener = Some(TcpListener::bind(self.address).await?);
        }
        self.mode.send_replace(mode);
        Ok(())
    }

    fn take(&mut self, client: TcpStream) {
        self.counts.accepted.fetch_add(1, Ordering::SeqCst);
        let open = Open::new(self.counts.clone());
        let (upstream, mode) = (self.upstream, self.mode.subscribe());
        self.connections.spawn(async move {
            let _open = open;
            connect(client, upstream, mode).await;
        });
    }
}

async fn accept(listener: Option<&TcpListener>) -> TcpStream {
    match listener {
        // A client that is gone again before it was taken is none.
        Some(listener) => loop {
            if let Ok((client, _)) = listener.accept().await {
                return client;
            }
        },
        None => std::future::pending().await,
    }
}

/// Counts a connection for as long as it lives, however it ends.
struct Open(Arc<Counts>);

impl Open {
    fn new(counts: Arc<Counts>) -> Self {
        counts.open.fetch_add(1, Ordering::SeqCst);
        Self(counts)
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.0.open.fetch_sub(1, Ordering::SeqCst);
    }
}
