//! How fast the store takes likes, what they weigh, and how soon it is back after a kill.
//!
//! `cargo run --release -p tally-embedded --example store_bench -- [likes] [folder]`
//!
//! A like is four rows: the edge, its place in two orderings, and the object's count. As the engine does,
//! the edge and the count are read before they are written. Two batches are in flight.

use std::{
    collections::VecDeque,
    path::{Path, PathBuf},
    process::Command,
    time::{Duration, Instant},
};

use tally_embedded::store::{Batch, Options, Store};

const SUBJECTS: u64 = 1_000_000;
const OBJECTS: u64 = 100_000;

fn main() {
    let mut args = std::env::args().skip(1);
    let first = args.next();
    if first.as_deref() == Some("--until-killed") {
        let folder = PathBuf::from(args.next().expect("a folder"));
        fill_and_die(&folder);
    }
    let likes: u64 = first.map_or(2_000_000, |text| text.parse().expect("a number of likes"));
    let base = args.next().map_or_else(|| std::env::temp_dir().join("tally-store-bench"), PathBuf::from);
    println!("{:>6} {:>10} {:>9} {:>9} {:>9}  bytes/like", "batch", "likes/s", "p50", "p99", "max");
    for batch in [64, 512, 4096] {
        let folder = base.join(batch.to_string());
        drop(std::fs::remove_dir_all(&folder));
        let likes = if batch == 64 { likes / 4 } else { likes };
        run(&folder, batch, likes);
    }
    reads(&base.join("512"), likes);
    restart(&base.join("killed"));
    drop(std::fs::remove_dir_all(&base));
}

fn run(folder: &Path, batch_likes: u64, likes: u64) {
    let store = Store::open(folder, Options::default()).expect("the store opens");
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    let mut source = Likes::new(7);
    let mut batch = Batch::new();
    let mut flying = VecDeque::new();
    let mut took = Vec::new();
    let mut applied = Vec::new();
    let started = Instant::now();
    for _ in 0..likes / batch_likes {
        let began = Instant::now();
        runtime.block_on(store.ready()).expect("the store is ready");
        batch.clear();
        for _ in 0..batch_likes {
            source.like(&store, &mut batch);
        }
        let applying = Instant::now();
        flying.push_back((store.apply(&batch).expect("the batch is taken"), began));
        applied.push(applying.elapsed());
        if flying.len() == 2 {
            let (position, began) = flying.pop_front().expect("two are in flight");
            runtime.block_on(store.wait(position)).expect("the batch is durable");
            took.push(began.elapsed());
        }
    }
    runtime.block_on(store.wait(store.position())).expect("the batch is durable");
    let rate = likes as f64 / started.elapsed().as_secs_f64();
    took.sort_unstable();
    applied.sort_unstable();
    let apply_micros = applied[applied.len() / 2].as_secs_f64() * 1e6 / batch_likes as f64;
    let cpu = cpu_by_thread(likes);
    let stats = settle(&store);
    println!(
        "{batch_likes:>6} {rate:>10.0} {:>9} {:>9} {:>9}  {:.0} (tables {:.0}); apply {apply_micros:.2} µs/like; CPU µs/like: {cpu}",
        millis(took[took.len() / 2]),
        millis(took[took.len() * 99 / 100]),
        millis(took[took.len() - 1]),
        stats.disk_bytes() as f64 / likes as f64,
        stats.tables_bytes as f64 / likes as f64,
    );
}

/// Rates swing with what else a machine does; the processor time of a like does so much less.
fn cpu_by_thread(likes: u64) -> String {
    let mut parts = Vec::new();
    for task in std::fs::read_dir("/proc/self/task").into_iter().flatten().flatten() {
        let read = |name| std::fs::read_to_string(task.path().join(name)).unwrap_or_default();
        let nanos = read("schedstat").split(' ').next().and_then(|text| text.parse().ok()).unwrap_or(0.0);
        let name = read("comm").trim().trim_start_matches("tally-").to_string();
        parts.push(format!("{name} {:.2}", nanos / 1e3 / likes as f64));
    }
    parts.join(", ")
}

/// Waits until the tables no longer change.
fn settle(store: &Store) -> tally_embedded::store::Stats {
    let mut before = store.stats();
    loop {
        std::thread::sleep(Duration::from_millis(700));
        let now = store.stats();
        if now.tables_bytes == before.tables_bytes && now.overlays_frozen == 0 {
            return now;
        }
        before = now;
    }
}

fn reads(folder: &Path, likes: u64) {
    use std::ops::Bound::{Excluded, Unbounded};

    let store = Store::open(folder, Options::default()).expect("the store opens");
    let mut source = Likes::new(7);
    let count = 20_000.min(likes);
    let keys: Vec<_> = (0..count).map(|_| source.draw()).collect();
    let started = Instant::now();
    for like in &keys {
        assert!(store.get(&like.edge()).expect("a read").is_some());
    }
    println!("get, there:       {:>6.2} µs", started.elapsed().as_secs_f64() * 1e6 / count as f64);
    let mut source = Likes::new(8);
    let strangers: Vec<_> = (0..count).map(|_| source.draw()).collect();
    let started = Instant::now();
    for like in &strangers {
        store.get(&like.edge()).expect("a read");
    }
    println!("get, mostly not:  {:>6.2} µs", started.elapsed().as_secs_f64() * 1e6 / count as f64);
    let started = Instant::now();
    for like in keys.iter().take(5_000) {
        let key = like.by_object();
        store.scan((Excluded(&key), Unbounded), 50, false).expect("a read");
    }
    println!("page of 50:       {:>6.2} µs", started.elapsed().as_secs_f64() * 1e6 / 5_000.0);
}

fn restart(folder: &Path) {
    drop(std::fs::remove_dir_all(folder));
    let this = std::env::current_exe().expect("this program");
    let status = Command::new(this).arg("--until-killed").arg(folder).status().expect("a child");
    assert!(!status.success(), "the child dies without closing the store");
    let started = Instant::now();
    let store = Store::open(folder, Options::default()).expect("the store opens");
    let stats = store.stats();
    println!(
        "restart after a kill: {} with {} rows, {} MiB to read from the log",
        millis(started.elapsed()),
        stats.overlay_rows,
        stats.overlay_bytes >> 20
    );
}

fn fill_and_die(folder: &Path) -> ! {
    // Nothing moves into the tables, so that the log is as full as it can get.
    let options = Options { overlay_bytes_max: 1 << 30, ..Options::default() };
    let store = Store::open(folder, options).expect("the store opens");
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    let mut source = Likes::new(7);
    let mut batch = Batch::new();
    loop {
        runtime.block_on(store.ready()).expect("the store is ready");
        batch.clear();
        for _ in 0..512 {
            source.like(&store, &mut batch);
        }
        let position = store.apply(&batch).expect("the batch is taken");
        runtime.block_on(store.wait(position)).expect("the batch is durable");
        if store.stats().overlay_bytes > 128 << 20 {
            std::process::abort();
        }
    }
}

fn millis(duration: Duration) -> String {
    format!("{:.2} ms", duration.as_secs_f64() * 1e3)
}

/// Likes by subjects drawn evenly, of objects drawn by Zipf's law.
struct Likes {
    state: u64,
    at: u64,
}

struct Like {
    subject: u64,
    object: u64,
    at: u64,
}

impl Likes {
    fn new(seed: u64) -> Self {
        Self { state: seed * 0x9E37_79B9_7F4A_7C15, at: 1_700_000_000_000_000 }
    }

    fn random(&mut self) -> u64 {
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        self.state
    }

    fn draw(&mut self) -> Like {
        let even = (self.random() >> 11) as f64 / (1u64 << 53) as f64;
        self.at += 37;
        Like { subject: self.random() % SUBJECTS, object: (OBJECTS as f64).powf(even) as u64, at: self.at }
    }

    fn like(&mut self, store: &Store, batch: &mut Batch) {
        let like = self.draw();
        let (edge, count) = (like.edge(), like.count());
        if store.get(&edge).expect("a read").is_some() {
            return;
        }
        let before = store
            .get(&count)
            .expect("a read")
            .map_or(0, |value| u64::from_le_bytes(value[..8].try_into().expect("eight bytes")));
        let mut value = [1; 20];
        value[..8].copy_from_slice(&like.at.to_le_bytes());
        batch.put(&edge, &value);
        batch.put(&like.by_object(), b"");
        batch.put(&like.by_subject(), b"");
        batch.put(&count, &(before + 1).to_le_bytes());
    }
}

impl Like {
    fn edge(&self) -> Vec<u8> {
        format!("\x01like\x01post:01hq7v9{:013}\x01user:01hq7v9{:016}", self.object, self.subject).into()
    }

    fn by_object(&self) -> Vec<u8> {
        let mut key = format!("\x02like\x01post:01hq7v9{:013}", self.object).into_bytes();
        key.extend_from_slice(&(u64::MAX - self.at).to_be_bytes());
        key.extend_from_slice(format!("{:012}", self.subject).as_bytes());
        key
    }

    fn by_subject(&self) -> Vec<u8> {
        let mut key = format!("\x03like\x01user:01hq7v9{:013}", self.subject).into_bytes();
        key.extend_from_slice(&(u64::MAX - self.at).to_be_bytes());
        key.extend_from_slice(format!("{:012}", self.object).as_bytes());
        key
    }

    fn count(&self) -> Vec<u8> {
        format!("\x04like\x01post:01hq7v9{:013}", self.object).into()
    }
}
