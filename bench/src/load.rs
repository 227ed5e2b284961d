//! Putting a system under load, and measuring it.
//!
//! Every system gets the same kind of client: plain threads, each with a single-threaded tokio and a
//! task per connection, which asks, waits, and asks again. So the client is not the difference.

use crate::histogram::Histogram;
use anyhow::{Context, Result, anyhow};
use std::cell::RefCell;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// How hard and how long.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Load {
    pub(crate) connections: usize,
    pub(crate) threads: usize,
    pub(crate) warmup: Duration,
    pub(crate) measured: Duration,
}

/// What came of it.
#[derive(Clone)]
pub(crate) struct Measured {
    pub(crate) per_s: f64,
    pub(crate) latency: Histogram,
    /// The share of one core that the client itself used: near 1 per thread, the client was the limit.
    pub(crate) client_cores: f64,
}

/// Keeps time and counts for the connections of one thread.
#[derive(Clone)]
pub(crate) struct Recorder(Rc<Recording>);

struct Recording {
    warm_at: Instant,
    stop_at: Instant,
    latency: RefCell<Histogram>,
}

impl Recorder {
    fn new(load: &Load, begun: Instant) -> Self {
        let warm_at = begun + load.warmup;
        let latency = RefCell::new(Histogram::new());
        Self(Rc::new(Recording { warm_at, stop_at: warm_at + load.measured, latency }))
    }

    /// Counts `operations` that were asked at `asked` and answered now. False when time is up.
    pub(crate) fn answered(&self, asked: Instant, operations: u64) -> bool {
        let now = Instant::now();
        // Counted by when the answer came, so that the warm-up and the tail are left out evenly.
        if now >= self.0.warm_at && now < self.0.stop_at {
            self.0.latency.borrow_mut().record(now - asked, operations);
        }
        now < self.0.stop_at
    }
}

/// Runs `worker` for each connection until time is up. The worker loops while the recorder says so.
pub(crate) async fn run<W>(load: Load, worker: W) -> Result<Measured>
where
    W: AsyncFn(usize, Recorder) -> Result<()> + Clone + Send + 'static,
{
    let begun = Instant::now();
    let threads: Vec<_> = (0..load.threads)
        .map(|thread| {
            let worker = worker.clone();
            tokio::task::spawn_blocking(move || run_thread(load, thread, begun, worker))
        })
        .collect();
    let mut latency = Histogram::new();
    let mut client_cores = 0.0;
    for thread in threads {
        let (part, busy) = thread.await??;
        latency.merge(&part);
        client_cores += busy;
    }
    let per_s = latency.total() as f64 / load.measured.as_secs_f64();
    Ok(Measured { per_s, latency, client_cores })
}

fn run_thread<W>(load: Load, thread: usize, begun: Instant, worker: W) -> Result<(Histogram, f64)>
where
    W: AsyncFn(usize, Recorder) -> Result<()> + Clone + 'static,
{
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let recorder = Recorder::new(&load, begun);
    let cpu_before = thread_cpu();
    let local = tokio::task::LocalSet::new();
    let tasks: Vec<_> = (thread..load.connections)
        .step_by(load.threads)
        .map(|connection| {
            let (worker, recorder) = (worker.clone(), recorder.clone());
            local.spawn_local(async move { worker(connection, recorder).await })
        })
        .collect();
    local.block_on(&runtime, async {
        for task in tasks {
            task.await.map_err(|error| anyhow!("a connection's task failed: {error}"))??;
        }
        anyhow::Ok(())
    })?;
    let busy = (thread_cpu().saturating_sub(cpu_before)).as_secs_f64() / begun.elapsed().as_secs_f64();
    let latency = recorder.0.latency.borrow().clone();
    Ok((latency, busy))
}

/// What one connection says and understands.
pub(crate) trait Dialogue {
    /// Writes the next round of requests. Gives how many replies it will bring, and how many
    /// operations they answer.
    fn ask(&mut self, out: &mut Vec<u8>) -> Round;

    /// The length of the first whole reply in `input`, `None` while it is not all there.
    fn reply(&mut self, input: &[u8]) -> Result<Option<usize>>;
}

/// One round of requests, sent together.
#[derive(Clone, Copy)]
pub(crate) struct Round {
    pub(crate) replies: usize,
    pub(crate) operations: u64,
}

/// Holds a dialogue over one connection until time is up.
pub(crate) async fn converse(address: SocketAddr, dialogue: impl Dialogue, recorder: Recorder) -> Result<()> {
    let mut line = Line::open(address, dialogue).await?;
    loop {
        let asked = Instant::now();
        let round = line.round().await?;
        if !recorder.answered(asked, round.operations) {
            return Ok(());
        }
    }
}

/// Holds a dialogue over one connection until it has nothing more to ask.
pub(crate) async fn to_the_end(
    address: SocketAddr,
    dialogue: impl Dialogue,
    mut progress: impl FnMut(u64),
) -> Result<()> {
    let mut line = Line::open(address, dialogue).await?;
    loop {
        let round = line.round().await?;
        if round.operations == 0 {
            return Ok(());
        }
        progress(round.operations);
    }
}

/// A connection with its buffers.
pub(crate) struct Line<D> {
    stream: TcpStream,
    dialogue: D,
    out: Vec<u8>,
    input: Vec<u8>,
    filled: usize,
}

impl<D: Dialogue> Line<D> {
    pub(crate) async fn open(address: SocketAddr, dialogue: D) -> Result<Self> {
        let stream = TcpStream::connect(address).await.with_context(|| format!("connecting to {address}"))?;
        stream.set_nodelay(true)?;
        Ok(Self { stream, dialogue, out: Vec::with_capacity(4096), input: vec![0; 16 * 1024], filled: 0 })
    }

    /// Asks one round and reads all its replies.
    pub(crate) async fn round(&mut self) -> Result<Round> {
        self.out.clear();
        let round = self.dialogue.ask(&mut self.out);
        if round.replies == 0 {
            return Ok(round);
        }
        self.stream.write_all(&self.out).await?;
        let mut missing = round.replies;
        let mut start = 0;
        loop {
            while let Some(length) = self.dialogue.reply(&self.input[start..self.filled])? {
                start += length;
                missing -= 1;
                if missing == 0 {
                    break;
                }
            }
            self.input.copy_within(start..self.filled, 0);
            self.filled -= start;
            start = 0;
            if missing == 0 {
                return Ok(round);
            }
            if self.filled == self.input.len() {
                self.input.resize(self.input.len() * 2, 0);
            }
            let read = self.stream.read(&mut self.input[self.filled..]).await?;
            if read == 0 {
                return Err(anyhow!("the server closed the connection in the middle of a reply"));
            }
            self.filled += read;
        }
    }

    /// The dialogue, for what it learned.
    pub(crate) fn dialogue(&mut self) -> &mut D {
        &mut self.dialogue
    }
}

/// CPU time that this thread used, as Linux counts it; zero elsewhere.
fn thread_cpu() -> Duration {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let nanos = text.split(' ').next().and_then(|first| first.parse().ok()).unwrap_or(0);
    Duration::from_nanos(nanos)
}
