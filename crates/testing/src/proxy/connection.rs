//! One connection through the proxy.

use super::{Cut, Direction, Mode};
use std::io;
use std::net::SocketAddr;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::net::tcp::{ReadHalf, WriteHalf};
use tokio::sync::watch;

const CHUNK_BYTES: usize = 64 * 1024;

/// One of the two sockets. Closed with a reset, unless it ended in order.
struct End {
    socket: TcpStream,
    in_order: bool,
}

impl End {
    fn new(socket: TcpStream) -> Self {
        // Without it, small messages would wait for each other. Fails only on a socket that is gone.
        let _ = socket.set_nodelay(true);
        Self { socket, in_order: false }
    }
}

impl Drop for End {
    fn drop(&mut self) {
        if !self.in_order {
            // Fails only on a socket that is gone.
            let _ = self.socket.set_zero_linger();
        }
    }
}

/// Why a connection stopped before both sides had closed it.
enum Stop {
    Broken,
    /// A rule matched. What went in this direction still has to arrive.
    Cut(Cut, Direction),
}

impl From<io::Error> for Stop {
    fn from(_: io::Error) -> Self {
        Self::Broken
    }
}

/// Connects a client and serves it until one side, or the proxy, ends it.
pub(super) async fn connect(client: TcpStream, upstream: SocketAddr, mut mode: watch::Receiver<Mode>) {
    let mut client = End::new(client);
    if mode.wait_for(|mode| !matches!(mode, Mode::Hang)).await.is_err() {
        return;
    }
    let Ok(server) = TcpStream::connect(upstream).await else {
        return;
    };
    let mut server = End::new(server);
    let ended = {
        let (from_client, to_client) = client.socket.split();
        let (from_server, to_server) = server.socket.split();
        let mut requests = Pump::new(Direction::Request, from_client, to_server, mode.clone());
        let mut answers = Pump::new(Direction::Answer, from_server, to_client, mode);
        tokio::try_join!(requests.run(), answers.run())
    };
    match ended {
        Ok(_) => (client.in_order, server.in_order) = (true, true),
        Err(Stop::Cut(Cut::After, Direction::Request)) => {
            drop(client);
            finish(server).await;
        }
        Err(Stop::Cut(Cut::After, Direction::Answer)) => {
            drop(server);
            finish(client).await;
        }
        Err(Stop::Cut(Cut::Before, _) | Stop::Broken) => {}
    }
}

/// Closes one side so that what was sent to it last arrives, which a reset could take back.
async fn finish(mut end: End) {
    end.in_order = end.socket.shutdown().await.is_ok();
    let mut nowhere = vec![0; CHUNK_BYTES];
    while end.socket.read(&mut nowhere).await.is_ok_and(|bytes| bytes > 0) {}
}

/// Carries bytes in one direction.
struct Pump<'a> {
    direction: Direction,
    from: ReadHalf<'a>,
    to: WriteHalf<'a>,
    mode: watch::Receiver<Mode>,
    /// Something was swallowed.
    has_hole: bool,
}

impl<'a> Pump<'a> {
    fn new(direction: Direction, from: ReadHalf<'a>, to: WriteHalf<'a>, mode: watch::Receiver<Mode>) -> Self {
        Self { direction, from, to, mode, has_hole: false }
    }

    /// Until the sender closes its side.
    async fn run(&mut self) -> Result<(), Stop> {
        let mut buffer = vec![0; CHUNK_BYTES];
        loop {
            let mode = self.flowing().await?;
            let bytes = tokio::select! {
                biased;
                _ = self.mode.changed() => continue,
                bytes = self.from.read(&mut buffer) => bytes?,
            };
            if bytes == 0 {
                return self.close(mode).await;
            }
            self.carry(&buffer[..bytes]).await?;
        }
    }

    /// The mode, as soon as it lets bytes through.
    async fn flowing(&mut self) -> Result<Mode, Stop> {
        let mode = self.mode.wait_for(|mode| !matches!(mode, Mode::Hang)).await;
        let mode = mode.map_err(|_| Stop::Broken)?.clone();
        if self.has_hole && !matches!(mode, Mode::DropAnswers) {
            return Err(Stop::Broken);
        }
        Ok(mode)
    }

    /// Judges by the mode what to do with some bytes, and again if it changes before they are all written.
    async fn carry(&mut self, mut bytes: &[u8]) -> Result<(), Stop> {
        while !bytes.is_empty() {
            match self.flowing().await? {
                Mode::DropAnswers if self.direction == Direction::Answer => {
                    self.has_hole = true;
                    return Ok(());
                }
                Mode::Delay(by) => tokio::select! {
                    biased;
                    _ = self.mode.changed() => continue,
                    () = tokio::time::sleep(by) => {}
                },
                Mode::CutWhen(cut, rule) if rule(self.direction, bytes) => {
                    if cut == Cut::After {
                        self.to.write_all(bytes).await?;
                    }
                    return Err(Stop::Cut(cut, self.direction));
                }
                _ => {}
            }
            bytes = self.write(bytes).await?;
        }
        Ok(())
    }

    /// Writes until the mode changes, and gives what is left.
    async fn write<'b>(&mut self, mut bytes: &'b [u8]) -> io::Result<&'b [u8]> {
        while !bytes.is_empty() {
            tokio::select! {
                biased;
                _ = self.mode.changed() => break,
                written = self.to.write(bytes) => bytes = &bytes[written?..],
            }
        }
        Ok(bytes)
    }

    /// Passes on that the sender is done.
    async fn close(&mut self, mode: Mode) -> Result<(), Stop> {
        if matches!(mode, Mode::DropAnswers) && self.direction == Direction::Answer {
            self.has_hole = true;
            // The end of the answers is an answer too.
            while self.mode.changed().await.is_ok() {
                self.flowing().await?;
            }
        }
        Ok(self.to.shutdown().await?)
    }
}
